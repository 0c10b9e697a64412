// SPDX-License-Identifier: GPL-2.0-only
/*
 * Races about waking: whatever a poller waits for may come at any moment of its
 * going to sleep, and must wake it.  A wake-up that is lost shows as a poll that
 * never ends.
 */
#include <kselftest_harness.h>

#include "race.h"

struct waiting {
	struct arena a; /* of one slot */
	struct reader r;
	struct tensorarena_acquire acq;
	void (*happens)(struct waiting *w);
	short writer_events, reader_events;
};

static void side_wait_as_writer(void *arg)
{
	struct waiting *w = arg;

	w->writer_events = poll_for(w->a.fd, POLLOUT, HANG_MS);
}

static void side_wait_as_reader(void *arg)
{
	struct waiting *w = arg;

	w->reader_events = poll_for(w->r.fd, POLLIN, HANG_MS);
}

static void side_it_happens(void *arg)
{
	struct waiting *w = arg;

	w->happens(w);
}

static void acquire_it(struct waiting *w)
{
	MUST(!acquire(&w->a, 100, &w->acq));
}

static void publish_it(struct waiting *w)
{
	MUST(publish(&w->a, w->acq.slot, w->acq.generation, 100) == 1);
}

/* ---- the slot becomes free ---- */

static void it_is_released(struct waiting *w)
{
	const struct tensorarena_ticket ticket = {
		.slot = w->acq.slot, .generation = w->acq.generation
	};

	MUST(!release(&w->r, &ticket));
}

static void the_reader_leaves(struct waiting *w)
{
	MUST(detach(&w->r) == 1);
}

static void the_reader_closes(struct waiting *w)
{
	MUST(!close(w->r.fd));
	w->r.fd = -1;
}

static void the_reader_is_evicted(struct waiting *w)
{
	MUST(evict(&w->a, w->r.made.reader, 0) == 1);
}

static void it_is_called_back(struct waiting *w)
{
	MUST(!retract(&w->a, w->acq.slot, w->acq.generation));
}

static void it_is_aborted(struct waiting *w)
{
	MUST(!abort_slot(&w->a, w->acq.slot, w->acq.generation));
}

TEST(a_free_slot_wakes_the_writer_at_any_moment)
{
	static void (*const ways[])(struct waiting * w) = {
		it_is_released,	       the_reader_leaves, the_reader_closes,
		the_reader_is_evicted, it_is_aborted,	  it_is_called_back,
	};
	const unsigned int rounds = race_rounds(200);
	struct waiting w;
	struct race race = { .nr = 2,
			     .side = { side_wait_as_writer, side_it_happens },
			     .arg = &w };
	unsigned int i;

	arena_create(&w.a, 1, CHUNK, 0);
	for (i = 0; i < rounds; i++) {
		w.happens = ways[i % ARRAY_SIZE(ways)];
		reader_attach(&w.a, &w.r);
		acquire_it(&w);
		if (w.happens != it_is_aborted)
			publish_it(&w);
		race_run(&race, i);
		ASSERT_EQ(POLLOUT, w.writer_events);
		if (w.r.fd >= 0)
			MUST(!close(w.r.fd));
	}
	race_fact("poll against a slot's release", rounds);
	MUST(!close(w.a.fd));
}

/* ---- something is published ---- */

TEST(a_publication_wakes_the_reader_at_any_moment)
{
	const unsigned int rounds = race_rounds(200);
	struct waiting w = { .happens = publish_it };
	struct race race = { .nr = 2,
			     .side = { side_wait_as_reader, side_it_happens },
			     .arg = &w };
	struct tensorarena_borrow b;
	unsigned int i;

	arena_create(&w.a, 1, CHUNK, 0);
	reader_attach(&w.a, &w.r);
	for (i = 0; i < rounds; i++) {
		acquire_it(&w);
		race_run(&race, i);
		ASSERT_EQ(POLLIN, w.reader_events);
		MUST(!next(&w.r, &b));
		MUST(!release(&w.r, &b.ticket));
	}
	race_fact("poll against publish", rounds);
	MUST(!close(w.r.fd));
	MUST(!close(w.a.fd));
}

/* ---- somebody gets it, or it comes back ---- */

struct calling_back {
	struct arena a; /* of one slot */
	struct reader r;
	struct tensorarena_ticket t;
	int taken, left;
};

static void side_take(void *arg)
{
	struct calling_back *c = arg;
	struct tensorarena_borrow b = { .ticket = c->t };

	c->taken = request(c->r.fd, TENSORARENA_BORROW, &b);
}

static void side_next(void *arg)
{
	struct calling_back *c = arg;
	struct tensorarena_borrow b;

	c->taken = next(&c->r, &b);
}

static void side_retract(void *arg)
{
	struct calling_back *c = arg;

	c->left = retract(&c->a, c->t.slot, c->t.generation);
}

TEST(a_publication_is_called_back_or_taken_never_both)
{
	const unsigned int rounds = race_rounds(200);
	struct calling_back c;
	struct race race = { .nr = 2, .arg = &c };
	unsigned int i;

	arena_create(&c.a, 1, CHUNK, 0);
	reader_attach(&c.a, &c.r);
	race.side[1] = side_retract;
	for (i = 0; i < rounds; i++) {
		c.t = put(&c.a, 100, i);
		race.side[0] = i % 2 ? side_take : side_next;
		race_run(&race, i);
		if (c.left) {
			ASSERT_EQ(1, c.left);
			ASSERT_EQ(0, c.taken);
			ASSERT_EQ(0, release(&c.r, &c.t));
		} else {
			ASSERT_EQ(i % 2 ? -ESTALE : -EAGAIN, c.taken);
			ASSERT_EQ(-ESTALE, release(&c.r, &c.t));
		}
		ASSERT_EQ(1, stats_get(&c.a).free);
	}
	race_fact("retract against next and borrow", rounds);
	MUST(!close(c.r.fd));
	MUST(!close(c.a.fd));
}

TEST_HARNESS_MAIN
