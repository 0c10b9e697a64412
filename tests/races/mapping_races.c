// SPDX-License-Identifier: GPL-2.0-only
/* Races about memory: evictions, trims and closing against faults and pins. */
#include <kselftest_harness.h>
#include <sys/uio.h>

#include "race.h"

#define SLOTS 2

static __thread sigjmp_buf cut_off;

static void on_cut_off(int sig)
{
	(void)sig;
	siglongjmp(cut_off, 1);
}

static void survive_revocation(void)
{
	struct sigaction action = { .sa_handler = on_cut_off };

	MUST(!sigaction(SIGBUS, &action, NULL));
}

/* ---- evict against fault ---- */

struct eviction {
	struct arena a;
	struct reader r;
	struct tensorarena_borrow b;
	atomic_int foreign; /* bytes seen that are not the publication's */
	int freed;
};

static void side_evict_and_reuse(void *arg)
{
	struct eviction *e = arg;
	struct tensorarena_acquire acq;

	e->freed = evict(&e->a, e->r.made.reader, 0);
	/* Now it is free, somebody else's bytes may go there. */
	while (!acquire(&e->a, CHUNK, &acq)) {
		memset(e->a.map + acq.offset, 0xee, CHUNK);
		MUST(publish(&e->a, acq.slot, acq.generation, CHUNK) == 0);
		if (acq.slot == e->b.ticket.slot)
			break;
	}
}

static void side_look(void *arg)
{
	struct eviction *e = arg;
	volatile uint8_t *p = e->r.map + e->b.offset;
	unsigned int i;

	if (sigsetjmp(cut_off, 1))
		return;
	for (i = 0; i < 4000; i++)
		if (p[i * 64 % CHUNK] != 0x11)
			atomic_fetch_add(&e->foreign, 1);
}

TEST(an_evicted_reader_never_sees_the_next_tensor)
{
	const unsigned int rounds = race_rounds(150);
	struct eviction e;
	struct race race = { .nr = 3,
			     .side = { side_evict_and_reuse, side_look,
				       side_look },
			     .arg = &e };
	struct tensorarena_acquire acq;
	unsigned int i;

	survive_revocation();
	arena_create(&e.a, SLOTS, CHUNK, 0);
	arena_map(&e.a);
	e.foreign = 0;
	for (i = 0; i < rounds; i++) {
		reader_attach(&e.a, &e.r);
		reader_map(&e.r);
		MUST(!acquire(&e.a, CHUNK, &acq));
		memset(e.a.map + acq.offset, 0x11, CHUNK);
		MUST(publish(&e.a, acq.slot, acq.generation, CHUNK) == 1);
		MUST(!next(&e.r, &e.b));
		race_run(&race, i);
		ASSERT_EQ(1, e.freed);
		ASSERT_EQ(0, atomic_load(&e.foreign));
		MUST(!munmap(e.r.map, e.r.bytes));
		MUST(!close(e.r.fd));
	}
	race_fact("evict against fault", rounds);
	MUST(!munmap(e.a.map, e.a.bytes));
	MUST(!close(e.a.fd));
}

/* ---- close against mmap ---- */

struct closing {
	struct reader r;
	void *p;
	int err;
};

static void side_close(void *arg)
{
	struct closing *c = arg;

	MUST(!close(c->r.fd));
}

static void side_mmap(void *arg)
{
	struct closing *c = arg;

	c->p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, c->r.fd, 0);
	c->err = c->p == MAP_FAILED ? errno : 0;
}

TEST(the_last_close_against_mmap)
{
	const unsigned int rounds = race_rounds(300);
	unsigned int i, mapped = 0;
	struct closing c;
	struct race race = { .nr = 2,
			     .side = { side_close, side_mmap },
			     .arg = &c };
	struct arena a;

	survive_revocation();
	arena_create(&a, SLOTS, CHUNK, 0);
	for (i = 0; i < rounds; i++) {
		reader_attach(&a, &c.r);
		put(&a, CHUNK, i);
		race_run(&race, i);
		ASSERT_TRUE(c.err == 0 || c.err == EBADF);
		if (!c.err) {
			mapped++;
			/* The mapping is what keeps the reader now. */
			ASSERT_EQ(1, stats_get(&a).nr_readers);
			MUST(!munmap(c.p, CHUNK));
		}
		ASSERT_TRUE(RACE_AWAIT(!stats_get(&a).nr_readers));
		ASSERT_EQ(SLOTS, stats_get(&a).free);
	}
	TH_LOG("%u of %u mapped", mapped, rounds);
	race_fact("close against mmap", rounds);
	MUST(!close(a.fd));
}

/* ---- trim against acquire, and against faults ---- */

struct trimming {
	struct arena a;
	struct reader r;
	unsigned int rounds;
	atomic_int lost; /* bytes written that were not there any more */
	atomic_int wrong;
	atomic_bool done;
};

static void side_acquire(void *arg)
{
	struct trimming *t = arg;
	struct tensorarena_acquire acq;
	volatile uint8_t *p;
	unsigned int i, j;
	int err;

	for (i = 0; i < t->rounds; i++) {
		err = acquire(&t->a, CHUNK, &acq);
		/* While it is being trimmed a slot is not to be had. */
		if (err == -EAGAIN)
			continue;
		if (err) {
			atomic_fetch_add(&t->wrong, 1);
			continue;
		}
		p = t->a.map + acq.offset;
		for (j = 0; j < 16; j++)
			p[j * PAGE] = (uint8_t)(i + j);
		for (j = 0; j < 16; j++)
			if (p[j * PAGE] != (uint8_t)(i + j))
				atomic_fetch_add(&t->lost, 1);
		MUST(!abort_slot(&t->a, acq.slot, acq.generation));
	}
	t->done = true;
}

static void side_trim(void *arg)
{
	struct trimming *t = arg;
	int err;

	while (!t->done) {
		err = trim(&t->a, 0);
		if (err && err != -EBUSY)
			atomic_fetch_add(&t->wrong, 1);
	}
}

/* Looks into slots that are nobody's at the moment. */
static void side_peek(void *arg)
{
	struct trimming *t = arg;
	volatile uint8_t *p = t->r.map;
	volatile unsigned int i = 0;

	sigsetjmp(cut_off, 1);
	while (!t->done) {
		i++;
		(void)p[i % SLOTS * CHUNK + i % 512 * PAGE];
	}
}

TEST(trim_against_acquire_and_faults)
{
	struct trimming t = { .rounds = race_rounds(300) };
	struct race race = { .nr = 4,
			     .side = { side_acquire, side_trim, side_peek,
				       side_peek },
			     .arg = &t };

	survive_revocation();
	arena_create(&t.a, SLOTS, CHUNK, 0);
	arena_map(&t.a);
	reader_attach(&t.a, &t.r);
	reader_map(&t.r);
	race_run(&race, 1);
	EXPECT_EQ(0, atomic_load(&t.lost));
	EXPECT_EQ(0, atomic_load(&t.wrong));
	EXPECT_TRUE(RACE_AWAIT(!trim(&t.a, 0)));
	EXPECT_EQ(0, stats_get(&t.a).allocated_bytes);
	race_fact("trim against acquire and fault", t.rounds);
	MUST(!munmap(t.r.map, t.r.bytes));
	MUST(!munmap(t.a.map, t.a.bytes));
	MUST(!close(t.r.fd));
	MUST(!close(t.a.fd));
}

/* ---- trim against a pin ---- */

struct pinning {
	struct arena a;
	int pipe[2];
	ssize_t pinned;
	int trimmed;
};

static void side_pin(void *arg)
{
	struct pinning *p = arg;
	struct iovec iov = { .iov_base = p->a.map, .iov_len = PAGE };

	p->pinned = vmsplice(p->pipe[1], &iov, 1, 0);
}

static void side_trim_once(void *arg)
{
	struct pinning *p = arg;

	p->trimmed = trim(&p->a, 0);
}

/* What somebody may be reading from, or writing to, stays the slot's. */
TEST(a_pin_and_a_trim_never_both_succeed)
{
	const unsigned int rounds = race_rounds(300);
	unsigned int i, pinned = 0;
	struct pinning p;
	struct race race = { .nr = 2,
			     .side = { side_pin, side_trim_once },
			     .arg = &p };
	struct tensorarena_acquire acq;
	uint8_t bytes[PAGE];

	arena_create(&p.a, 1, CHUNK, 0);
	arena_map(&p.a);
	MUST(!pipe(p.pipe));
	for (i = 0; i < rounds; i++) {
		MUST(!acquire(&p.a, CHUNK, &acq));
		/* Mapped, so that it can be pinned without a fault. */
		memset(p.a.map, (int)i, PAGE);
		MUST(!abort_slot(&p.a, acq.slot, acq.generation));
		race_run(&race, i);
		if (p.pinned == (ssize_t)PAGE) {
			pinned++;
			ASSERT_EQ(-EBUSY, p.trimmed);
			MUST(read(p.pipe[0], bytes, PAGE) == (ssize_t)PAGE);
			ASSERT_EQ((uint8_t)i, bytes[PAGE - 1]);
		}
		ASSERT_TRUE(RACE_AWAIT(!trim(&p.a, 0)));
		ASSERT_EQ(0, stats_get(&p.a).allocated_bytes);
	}
	TH_LOG("%u of %u pinned", pinned, rounds);
	race_fact("trim against a pin", rounds);
	MUST(!close(p.pipe[0]));
	MUST(!close(p.pipe[1]));
	MUST(!munmap(p.a.map, p.a.bytes));
	MUST(!close(p.a.fd));
}

TEST_HARNESS_MAIN
