// SPDX-License-Identifier: GPL-2.0-only
/* The writer throws out a reader, or stops waiting for one. */
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"

/* A worker that maps, reads, and on each message tells what a touch brings. */
static void read_and_touch(int sock, void *arg)
{
	struct tensorarena_borrow b, again;
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, (int64_t)r.made.reader);
	MUST(poll_for(r.fd, POLLIN, HANG_MS) == POLLIN);
	MUST(!next(&r, &b));
	MUST(delivered(&r, &b));
	tell(sock, 1);
	for (;;) {
		hear_or_exit(sock);
		tell(sock, touch_read(r.map + b.offset));
		tell(sock, next(&r, &again));
		tell(sock, borrow(&r, &b.ticket, &again));
		tell(sock, release(&r, &b.ticket));
		tell(sock, detach(&r));
		tell(sock, mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, r.fd, 0) ==
					   MAP_FAILED ?
				   -errno :
				   0);
		tell(sock, poll_now(r.fd));
	}
}

TEST(an_evicted_reader_is_cut_off)
{
	struct tensorarena_acquire acq;
	struct child c;
	struct arena a;
	int64_t reader;
	int i;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(read_and_touch, &a, a.fd);
	reader = must_hear(c.sock);
	put(&a, 1000, 1);
	must_hear(c.sock);
	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq));

	EXPECT_EQ(1, evict(&a, (uint64_t)reader, 0));
	EXPECT_EQ(1, stats_get(&a).evicted);
	EXPECT_EQ(0, stats_get(&a).nr_readers);
	EXPECT_EQ(-ESTALE, evict(&a, (uint64_t)reader, 0));
	/* At once, though the worker has not noticed yet. */
	EXPECT_EQ(0, acquire(&a, 1, &acq));

	tell(c.sock, 1);
	EXPECT_EQ(SIGBUS, must_hear(c.sock));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(-EOWNERDEAD, must_hear(c.sock));
	EXPECT_EQ(POLLERR | POLLHUP, must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
	/* It left once, by eviction; its exit is not a second time. */
	EXPECT_EQ(1, stats_get(&a).evicted);
	EXPECT_EQ(0, stats_get(&a).reclaimed_dead_readers);
	EXPECT_EQ(0, stats_get(&a).detached);
}

TEST(nobody_else_is_affected)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader other;
	struct child c;
	struct arena a;
	int64_t reader;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &other);
	reader_map(&other);
	c = child_start(read_and_touch, &a, a.fd);
	reader = must_hear(c.sock);
	put(&a, 1000, 1);
	must_hear(c.sock);
	ASSERT_EQ(0, next(&other, &b));
	EXPECT_EQ(0, touch_read(other.map));

	EXPECT_EQ(0, evict(&a, (uint64_t)reader, 0));
	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq));
	EXPECT_TRUE(delivered(&other, &b));
	EXPECT_EQ(0, touch_write(a.map));
	EXPECT_EQ(0, release(&other, &b.ticket));
	EXPECT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_TRUE(child_ended_well(&c));
}

TEST(the_seat_is_there_for_the_next_reader)
{
	struct tensorarena_borrow b;
	struct reader old, new;
	struct arena a;

	arena_create(&a, 2, CHUNK, 1);
	reader_attach(&a, &old);
	put(&a, 10, 1);
	put(&a, 10, 2);
	EXPECT_EQ(2, evict(&a, old.made.reader, 0));
	reader_attach(&a, &new);
	reader_map(&new);
	EXPECT_EQ(old.made.seat, new.made.seat);
	EXPECT_NE(old.made.reader, new.made.reader);
	EXPECT_EQ(-EAGAIN, next(&new, &b));
	put(&a, 10, 3);
	EXPECT_EQ(0, next(&new, &b));
	EXPECT_TRUE(delivered(&new, &b));
	/* The old file's end does not end the new reader. */
	MUST(!close(old.fd));
	EXPECT_EQ(1, stats_get(&a).nr_readers);
	EXPECT_EQ(1, stats_get(&a).published);
}

TEST(an_unclaimed_seat_is_closed)
{
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 2);
	reader_attach(&a, &r);
	put(&a, 10, 1);
	EXPECT_EQ(1, detach(&r) + stats_get(&a).published);
	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq));

	EXPECT_EQ(-ESTALE, evict(&a, 0, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(1, evict(&a, 1, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(-ESTALE, evict(&a, 1, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_EQ(0, acq.open);
	/* Nobody was thrown out. */
	EXPECT_EQ(0, stats_get(&a).evicted);
}

TEST(only_unclaimed_seats_are_closed_by_number)
{
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 1);
	reader_attach(&a, &r);
	EXPECT_EQ(-ESTALE, evict(&a, 0, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(-ESTALE, evict(&a, 63, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(-EINVAL, evict(&a, 64, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(-EINVAL, evict(&a, 1ULL << 32, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(-ESTALE, evict(&a, 0, 0));
	EXPECT_EQ(-ESTALE, evict(&a, ~0ULL, 0));
	EXPECT_EQ(1, stats_get(&a).nr_readers);
}

/* Faults all the time, so that evictions meet faults half way. */
static void fault_for_ever(int sock, void *arg)
{
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, (int64_t)r.made.reader);
	while (!touch_read(r.map))
		MUST(!madvise(r.map, CHUNK, MADV_DONTNEED));
	/* Once revoked, always revoked. */
	tell(sock, touch_read(r.map));
	tell(sock, touch_read(r.map + CHUNK - 1));
}

TEST(eviction_and_faults_may_race)
{
	struct arena a;
	int round;

	arena_create(&a, 2, CHUNK, 1);
	put(&a, 10, 1);
	MUST(evict(&a, 0, TENSORARENA_EVICT_SEAT) == 1);
	for (round = 0; round < 20; round++) {
		struct child c = child_start(fault_for_ever, &a, a.fd);
		int64_t reader = must_hear(c.sock);

		usleep((useconds_t)round * 311 % 3000);
		EXPECT_EQ(0, evict(&a, (uint64_t)reader, 0));
		EXPECT_EQ(SIGBUS, must_hear(c.sock));
		EXPECT_EQ(SIGBUS, must_hear(c.sock));
		EXPECT_TRUE(child_ended_well(&c));
	}
	EXPECT_EQ(20, stats_get(&a).evicted);
}

TEST_HARNESS_MAIN
