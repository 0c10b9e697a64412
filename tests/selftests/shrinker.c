// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the machine runs short the memory of idle slots goes, and nobody
 * notices but the next ACQUIRE, which builds it anew.  vm.drop_caches asks
 * every shrinker the way reclaim does.
 */
#include <kselftest_harness.h>
#include <sys/uio.h>

#include "machine.h"

#define SLOTS 6

static void shrink(void)
{
	MUST(!write_to("/proc/sys/vm/drop_caches", "2"));
}

/* All slots built, in the order 0, 1, ...; all free. */
FIXTURE(slots)
{
	struct arena a;
	struct reader r;
};

FIXTURE_SETUP(slots)
{
	struct tensorarena_populate args = { .nbytes = CHUNK, .slots = SLOTS };

	arena_create(&self->a, SLOTS, CHUNK, 0);
	arena_map(&self->a);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	MUST(!request(self->a.fd, TENSORARENA_POPULATE, &args));
	MUST(stats_get(&self->a).allocated_bytes == SLOTS * CHUNK);
}

FIXTURE_TEARDOWN(slots)
{
}

TEST_F(slots, that_are_idle_give_their_memory)
{
	struct tensorarena_borrow b;
	size_t i;

	for (i = 0; i < SLOTS; i++) {
		EXPECT_EQ(0, touch_write(self->a.map + i * CHUNK));
		EXPECT_EQ(0, touch_read(self->r.map + i * CHUNK));
	}
	shrink();
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(SLOTS, stats_get(&self->a).free);
	for (i = 0; i < SLOTS; i++) {
		EXPECT_EQ(0, slot_figure(&self->a, "slot_extents", i));
		EXPECT_EQ(SIGBUS, touch_read(self->r.map + i * CHUNK));
	}

	put(&self->a, CHUNK, 1);
	EXPECT_EQ(CHUNK, stats_get(&self->a).allocated_bytes);
	ASSERT_EQ(0, next(&self->r, &b));
	EXPECT_TRUE(delivered(&self->r, &b));
}

TEST_F(slots, in_use_keep_their_memory)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow seen;
	struct tensorarena_ticket unseen;

	put(&self->a, CHUNK, 1);
	ASSERT_EQ(0, next(&self->r, &seen));
	unseen = put(&self->a, CHUNK, 2);
	ASSERT_EQ(0, acquire(&self->a, CHUNK, &acq));
	pattern_fill(self->a.map + acq.offset, CHUNK, 3);

	shrink();
	EXPECT_EQ(3 * CHUNK, stats_get(&self->a).allocated_bytes);
	EXPECT_TRUE(delivered(&self->r, &seen));
	ASSERT_EQ(0, borrow(&self->r, &unseen, &seen));
	EXPECT_TRUE(delivered(&self->r, &seen));
	EXPECT_TRUE(pattern_matches(self->a.map + acq.offset, CHUNK, 3));
	EXPECT_EQ(1, publish(&self->a, acq.slot, acq.generation, CHUNK));
}

TEST_F(slots, that_are_pinned_keep_their_memory)
{
	uint8_t bytes[PAGE];
	struct iovec iov = { .iov_base = self->a.map + 2 * CHUNK,
			     .iov_len = sizeof(bytes) };
	struct tensorarena_acquire acq;
	int fds[2], i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, acquire(&self->a, CHUNK, &acq));
	ASSERT_EQ(2 * CHUNK, acq.offset);
	pattern_fill(self->a.map + acq.offset, CHUNK, 4);
	MUST(!pipe(fds));
	ASSERT_EQ((ssize_t)PAGE, vmsplice(fds[1], &iov, 1, 0));
	ASSERT_EQ(0, abort_slot(&self->a, acq.slot, acq.generation));

	/* Two are being written, one is idle and pinned. */
	shrink();
	EXPECT_EQ(3 * CHUNK, stats_get(&self->a).allocated_bytes);
	EXPECT_TRUE(pattern_matches(self->a.map + 2 * CHUNK, CHUNK, 4));
	ASSERT_EQ((ssize_t)PAGE, read(fds[0], bytes, sizeof(bytes)));
	EXPECT_TRUE(!memcmp(bytes, self->a.map + 2 * CHUNK, PAGE));
	shrink();
	EXPECT_EQ(2 * CHUNK, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(SIGBUS, touch_read(self->a.map + 2 * CHUNK));
}

TEST_F(slots, of_every_arena_are_asked)
{
	struct tensorarena_acquire acq;
	struct arena second;

	arena_create(&second, 1, CHUNK, 0);
	ASSERT_EQ(0, acquire(&second, CHUNK, &acq));
	ASSERT_EQ(0, abort_slot(&second, acq.slot, acq.generation));
	shrink();
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(0, stats_get(&second).allocated_bytes);
}

TEST_HARNESS_MAIN
