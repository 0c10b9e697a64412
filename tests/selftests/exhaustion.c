// SPDX-License-Identifier: GPL-2.0-only
/* The arena says no: at once, for the documented reason, and counts it. */
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"

#define SLOTS 3

TEST(the_put_after_the_last_slot_declines_at_once)
{
	struct tensorarena_acquire acq[SLOTS + 1];
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;
	int i;

	arena_create(&a, SLOTS, CHUNK, 0);
	reader_attach(&a, &r);
	for (i = 0; i < SLOTS; i++) {
		ASSERT_EQ(0, acquire(&a, 1, &acq[i]));
		ASSERT_EQ(1, publish(&a, acq[i].slot, acq[i].generation, 1));
	}
	/* A call that blocked would be killed by the harness's clock. */
	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq[SLOTS]));
	EXPECT_EQ(-EAGAIN, acquire(&a, CHUNK, &acq[SLOTS]));
	EXPECT_EQ(2, stats_get(&a).declined_no_slot);

	ASSERT_EQ(0, next(&r, &b));
	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq[SLOTS]));
	ASSERT_EQ(0, release(&r, &b.ticket));
	ASSERT_EQ(0, acquire(&a, 1, &acq[SLOTS]));
	EXPECT_EQ(b.ticket.slot, acq[SLOTS].slot);
	EXPECT_EQ(b.ticket.generation + 1, acq[SLOTS].generation);
	EXPECT_EQ(3, stats_get(&a).declined_no_slot);
}

TEST(a_tensor_larger_than_a_slot_declines)
{
	struct tensorarena_acquire acq;
	struct arena a;

	/* The stride would hold it; the promise was slot_bytes. */
	arena_create(&a, 1, CHUNK - 1, 0);
	EXPECT_EQ(-EMSGSIZE, acquire(&a, CHUNK, &acq));
	EXPECT_EQ(-EMSGSIZE, acquire(&a, ~0ULL, &acq));
	EXPECT_EQ(2, stats_get(&a).declined_oversize);
	EXPECT_EQ(0, stats_get(&a).allocated_bytes);
	EXPECT_EQ(0, acquire(&a, CHUNK - 1, &acq));
	EXPECT_EQ(-EMSGSIZE, acquire(&a, CHUNK, &acq));
	EXPECT_EQ(0, stats_get(&a).declined_no_slot);
}

TEST(sixty_four_readers_and_no_more)
{
	struct reader r[TENSORARENA_MAX_READERS], more;
	struct tensorarena_reader_stats rows[TENSORARENA_MAX_READERS];
	struct tensorarena_stats st = { .readers = (uintptr_t)rows,
					.nr_readers = ARRAY_SIZE(rows),
					.row_bytes = sizeof(rows[0]) };
	struct tensorarena_acquire acq;
	struct arena a;
	uint32_t i;

	arena_create(&a, 1, CHUNK, 3);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		reader_attach(&a, &r[i]);
		EXPECT_EQ(i, r[i].made.seat);
	}
	EXPECT_EQ(-EUSERS, attach(&a, &more));
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_EQ(64, acq.open);
	EXPECT_EQ(64, publish(&a, acq.slot, acq.generation, 1));
	ASSERT_EQ(0, request(a.fd, TENSORARENA_STATS, &st));
	EXPECT_EQ(64, st.nr_readers);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		EXPECT_EQ(r[i].made.reader, rows[i].reader);
		EXPECT_EQ(i, rows[i].seat);
		EXPECT_EQ(1, rows[i].pending);
	}
	EXPECT_EQ(0, detach(&r[41]));
	reader_attach(&a, &more);
	EXPECT_EQ(41, more.made.seat);
	EXPECT_NE(r[41].made.reader, more.made.reader);
}

TEST(memory_limits_are_EDQUOT)
{
	const struct tensorarena_info info = info_get();
	struct arena a, b;

	EXPECT_EQ(-EDQUOT,
		  arena_try(&a, 1, info.max_arena_bytes + CHUNK, 0, 0));
	/* Promises count, not memory in use: nothing is built here. */
	ASSERT_EQ(0,
		  arena_try(&a, 1, info.max_total_bytes / CHUNK * CHUNK - CHUNK,
			    0, 0));
	EXPECT_EQ(-EDQUOT, arena_try(&b, 2, CHUNK, 0, 0));
	EXPECT_EQ(0, arena_try(&b, 1, CHUNK, 0, 0));
	MUST(!close(b.fd));
	MUST(!close(a.fd));
	EXPECT_EQ(0, arena_try(&b, 2, CHUNK, 0, 0));
}

/* Creates arenas until that fails; how many there were and why no more. */
static uint32_t create_all(int *why)
{
	struct arena a;
	uint32_t n;

	for (n = 0; n < 10000; n++) {
		*why = arena_try(&a, 1, 1, 0, 0);
		if (*why)
			break;
	}
	return n;
}

TEST(the_number_of_arenas_is_limited)
{
	const struct tensorarena_info info = info_get();
	int why;

	EXPECT_EQ(info.max_arenas, create_all(&why));
	EXPECT_EQ(-EDQUOT, why);
	EXPECT_EQ(info.max_arenas, info_get().arenas);
}

/* A process that kept the device open while it gave up its privileges. */
static void create_as_nobody(int sock, void *arg)
{
	struct tensorarena_create args = { .slot_bytes = 1, .slots = 1 };
	int control = control_open();
	int64_t made = 0;
	int err;

	(void)arg;
	args.node = TENSORARENA_NODE_LOCAL;
	MUST(!setresuid(65534, 65534, 65534));
	do
		err = request(control, TENSORARENA_CREATE, &args);
	while (!err && ++made < 10000);
	tell(sock, made);
	tell(sock, err);
	wait_for_the_end(sock);
}

TEST(the_number_of_arenas_of_one_user_is_limited)
{
	const struct tensorarena_info info = info_get();
	struct child c;
	struct arena a;

	ASSERT_EQ(0, getuid());
	c = child_start(create_as_nobody, NULL, -1);
	EXPECT_EQ(info.max_arenas_per_uid, must_hear(c.sock));
	EXPECT_EQ(-EDQUOT, must_hear(c.sock));
	/* Somebody else is not affected. */
	EXPECT_EQ(0, arena_try(&a, 1, 1, 0, 0));
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(1, info_get().arenas);
}

TEST_HARNESS_MAIN
