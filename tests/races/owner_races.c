// SPDX-License-Identifier: GPL-2.0-only
/* Races about who holds what: releases, exits, attachments, publications. */
#include <kselftest_harness.h>

#include "race.h"

#define SLOTS 4

/* Everything is free, and everybody who came has left. */
static bool is_quiet(const struct arena *a)
{
	struct tensorarena_stats st = stats_get(a);

	return st.free == SLOTS && !st.nr_readers &&
	       st.attached ==
		       st.detached + st.evicted + st.reclaimed_dead_readers;
}

/* ---- release against the owner's exit ---- */

struct leaver {
	struct reader r;
	struct tensorarena_ticket ticket[SLOTS];
};

static void side_release(void *arg)
{
	struct leaver *l = arg;
	int i;

	for (i = 0; i < SLOTS; i++)
		release(&l->r, &l->ticket[i]);
}

static void side_exit(void *arg)
{
	(void)arg;
	_exit(0);
}

struct exit_plan {
	struct arena *a;
	uint32_t seed;
};

static void be_leaver(int sock, void *arg)
{
	struct exit_plan *plan = arg;
	struct leaver l;
	struct race race = { .nr = 2,
			     .side = { side_release, side_exit },
			     .arg = &l };
	int i;

	reader_attach(plan->a, &l.r);
	reader_map(&l.r);
	tell(sock, 1);
	for (i = 0; i < SLOTS; i++) {
		struct tensorarena_borrow b;

		MUST(hear_or_exit(sock));
		MUST(!next(&l.r, &b));
		l.ticket[i] = b.ticket;
	}
	race_run(&race, plan->seed);
}

TEST(a_release_against_the_exit_of_its_owner)
{
	const unsigned int rounds = race_rounds(60);
	struct arena a;
	unsigned int i, j;

	arena_create(&a, SLOTS, CHUNK, 0);
	arena_map(&a);
	for (i = 0; i < rounds; i++) {
		struct exit_plan plan = { &a, i };
		struct child c = child_start(be_leaver, &plan, a.fd);

		must_hear(c.sock);
		for (j = 0; j < SLOTS; j++) {
			put(&a, 64, i);
			tell(c.sock, 1);
		}
		child_wait(&c);
		MUST(!close(c.sock));
		ASSERT_TRUE(RACE_AWAIT(is_quiet(&a)));
	}
	race_fact("release against owner exit", rounds);
	MUST(!close(a.fd));
}

/* ---- one publication, released by many threads ---- */

struct releasers {
	struct reader r;
	struct tensorarena_ticket ticket;
	atomic_int released;
	atomic_int wrong;
};

static void side_release_once(void *arg)
{
	struct releasers *x = arg;
	int err = release(&x->r, &x->ticket);

	if (!err)
		atomic_fetch_add(&x->released, 1);
	else if (err != -ESTALE)
		atomic_fetch_add(&x->wrong, 1);
}

TEST(a_publication_is_released_once)
{
	const unsigned int rounds = race_rounds(200);
	struct releasers x;
	struct race race = { .nr = 3,
			     .side = { side_release_once, side_release_once,
				       side_release_once },
			     .arg = &x };
	struct tensorarena_borrow b;
	struct arena a;
	unsigned int i;

	arena_create(&a, SLOTS, CHUNK, 0);
	reader_attach(&a, &x.r);
	for (i = 0; i < rounds; i++) {
		put(&a, 64, i);
		MUST(!next(&x.r, &b));
		x.ticket = b.ticket;
		x.released = 0;
		x.wrong = 0;
		race_run(&race, i);
		ASSERT_EQ(1, atomic_load(&x.released));
		ASSERT_EQ(0, atomic_load(&x.wrong));
		ASSERT_EQ(SLOTS, stats_get(&a).free);
	}
	race_fact("release against release", rounds);
	MUST(!close(x.r.fd));
	MUST(!close(a.fd));
}

/* ---- publications against readers that come and go ---- */

struct traffic {
	struct arena a;
	unsigned int rounds;
	uint32_t seed;
	atomic_int wrong;
};

static void side_put(void *arg)
{
	struct traffic *t = arg;
	struct tensorarena_acquire acq;
	unsigned int i;
	int n;

	for (i = 0; i < t->rounds; i++) {
		if (acquire(&t->a, 64, &acq))
			continue;
		n = publish(&t->a, acq.slot, acq.generation, 64);
		if (n < 0)
			atomic_fetch_add(&t->wrong, 1);
	}
}

static void side_come_and_go(void *arg)
{
	struct traffic *t = arg;
	struct tensorarena_borrow b;
	struct reader r;
	unsigned int i;

	for (i = 0; i < t->rounds; i++) {
		if (attach(&t->a, &r)) {
			atomic_fetch_add(&t->wrong, 1);
			continue;
		}
		if (!next(&r, &b) && i % 3)
			release(&r, &b.ticket);
		if (i % 2)
			detach(&r);
		MUST(!close(r.fd));
	}
}

static void side_evict(void *arg)
{
	struct traffic *t = arg;
	unsigned int i;

	for (i = 0; i < t->rounds; i++) {
		struct tensorarena_reader_stats row[8];
		struct tensorarena_stats st = { .readers = (uintptr_t)row,
						.row_bytes = sizeof(row[0]),
						.nr_readers = 8 };
		int n;

		MUST(!request(t->a.fd, TENSORARENA_STATS, &st));
		if (!st.nr_readers || !row[0].reader || i % 4)
			continue;
		n = evict(&t->a, row[0].reader, 0);
		if (n < 0 && n != -ESTALE)
			atomic_fetch_add(&t->wrong, 1);
	}
}

TEST(publications_against_readers_that_come_and_go)
{
	struct traffic t = { .rounds = race_rounds(200) };
	struct race race = { .nr = 4,
			     .side = { side_put, side_come_and_go,
				       side_come_and_go, side_evict },
			     .arg = &t };

	arena_create(&t.a, SLOTS, CHUNK, 0);
	race_run(&race, 1);
	EXPECT_EQ(0, atomic_load(&t.wrong));
	ASSERT_TRUE(RACE_AWAIT(is_quiet(&t.a)));
	race_fact("publish against attach, leave and evict", t.rounds);
	MUST(!close(t.a.fd));
}

TEST_HARNESS_MAIN
