// SPDX-License-Identifier: GPL-2.0-only
/* DETACH: the end of a role though its file lives on, here or elsewhere. */
#include <kselftest_harness.h>
#include <pthread.h>
#include <stdatomic.h>

#include "arena.h"
#include "proc.h"
#include "text.h"

static int detach_fd(int fd)
{
	struct tensorarena_detach args = { 0 };
	int err = request(fd, TENSORARENA_DETACH, &args);

	return err ? err : (int)args.freed;
}

static int map_error(int fd)
{
	void *p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? -errno : 0;
}

TEST(a_detached_reader_is_done)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;

	arena_create(&a, 2, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	put(&a, 1, 1);
	ticket = put(&a, 1, 2);
	EXPECT_EQ(0, touch_read(r.map));

	EXPECT_EQ(2, detach(&r));
	EXPECT_EQ(SIGBUS, touch_read(r.map));
	EXPECT_EQ(2, stats_get(&a).free);
	EXPECT_EQ(0, stats_get(&a).nr_readers);
	EXPECT_EQ(1, stats_get(&a).detached);
	EXPECT_EQ(0, stats_get(&a).released);
	EXPECT_EQ(-ESHUTDOWN, next(&r, &b));
	EXPECT_EQ(-ESHUTDOWN, borrow(&r, &ticket, &b));
	EXPECT_EQ(-ESHUTDOWN, release(&r, &ticket));
	EXPECT_EQ(-ESHUTDOWN, detach(&r));
	EXPECT_EQ(-ESHUTDOWN, map_error(r.fd));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(r.fd));

	/* Its close is not a second leaving. */
	MUST(!munmap(r.map, r.bytes));
	MUST(!close(r.fd));
	EXPECT_EQ(1, stats_get(&a).detached);
}

TEST(a_detached_writer_is_done)
{
	struct tensorarena_populate populate = { 0 };
	struct tensorarena_stats st = { 0 };
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r, late;
	struct arena a;
	uint64_t id;

	/* One slot published, one in writing; one seat is not taken. */
	arena_create(&a, 3, CHUNK, 2);
	id = a.made.arena;
	reader_attach(&a, &r);
	reader_map(&r);
	put(&a, 1000, 1);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	ASSERT_EQ(0, touch_read(a.map));

	EXPECT_EQ(1, detach_fd(a.fd));
	EXPECT_EQ(SIGBUS, touch_read(a.map));
	EXPECT_EQ(-ESHUTDOWN, publish(&a, acq.slot, acq.generation, 1));
	EXPECT_EQ(-ESHUTDOWN, abort_slot(&a, acq.slot, acq.generation));
	EXPECT_EQ(-ESHUTDOWN, retract(&a, 0, 1));
	EXPECT_EQ(-ESHUTDOWN, acquire(&a, 1, &acq));
	EXPECT_EQ(-ESHUTDOWN, request(a.fd, TENSORARENA_POPULATE, &populate));
	EXPECT_EQ(-ESHUTDOWN, request(a.fd, TENSORARENA_TRIM, &trim));
	EXPECT_EQ(-ESHUTDOWN, request(a.fd, TENSORARENA_STATS, &st));
	EXPECT_EQ(-ESHUTDOWN, evict(&a, r.made.reader, 0));
	EXPECT_EQ(-ESHUTDOWN, detach_fd(a.fd));
	EXPECT_EQ(-ESHUTDOWN, map_error(a.fd));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(a.fd));
	EXPECT_EQ(-EPIPE, attach(&a, &late));
	EXPECT_EQ(1, arena_figure(id, "readers"));
	EXPECT_EQ(2, arena_figure(id, "free"));

	/* The reader reads on and is then told. */
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_TRUE(delivered(&r, &b));
	EXPECT_EQ(0, release(&r, &b.ticket));
	EXPECT_EQ(POLLHUP, poll_now(r.fd));
	EXPECT_EQ(-EPIPE, next(&r, &b));
	EXPECT_EQ(3, arena_figure(id, "free"));
}

/* Keeps a copy of whatever descriptors there are. */
static void keep_copies(int sock, void *arg)
{
	(void)arg;
	tell(sock, 1);
	wait_for_the_end(sock);
}

TEST(copies_in_other_processes_do_not_matter)
{
	struct tensorarena_borrow b;
	struct reader r, second;
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	reader_attach(&a, &second);
	put(&a, 10, 1);
	c = child_start(keep_copies, NULL, -1);
	must_hear(c.sock);

	EXPECT_EQ(0, detach(&r));
	MUST(!close(r.fd));
	EXPECT_EQ(1, stats_get(&a).nr_readers);
	EXPECT_EQ(0, detach_fd(a.fd));
	MUST(!munmap(a.map, a.bytes));
	MUST(!close(a.fd));
	EXPECT_EQ(0, next(&second, &b));
	EXPECT_EQ(-EPIPE, next(&second, &b));
	EXPECT_TRUE(child_ended_well(&c));
}

/* ---- in the middle of another thread's call ---- */

struct race {
	struct arena a;
	atomic_bool started;
	int last_error;
};

static void *build_until_refused(void *arg)
{
	struct race *race = arg;
	struct tensorarena_acquire acq;
	int err;

	do {
		struct tensorarena_trim trim = { 0 };

		err = acquire(&race->a, 4 * CHUNK, &acq);
		if (!err)
			err = abort_slot(&race->a, acq.slot, acq.generation);
		if (!err)
			err = request(race->a.fd, TENSORARENA_TRIM, &trim);
		atomic_store(&race->started, true);
	} while (!err);
	race->last_error = err;
	return NULL;
}

TEST(while_another_thread_builds_and_trims)
{
	double end = now_ms() + HANG_MS;
	int round;

	for (round = 0; round < 8; round++) {
		struct race race = { 0 };
		pthread_t thread;

		arena_create(&race.a, 2, 4 * CHUNK, 0);
		MUST(!pthread_create(&thread, NULL, build_until_refused,
				     &race));
		while (!atomic_load(&race.started))
			sched_yield();
		usleep((useconds_t)round * 3571 % 20000);
		EXPECT_LE(0, detach_fd(race.a.fd));
		MUST(!pthread_join(thread, NULL));
		/* Caught while building, or before the call. */
		EXPECT_TRUE(race.last_error == -ESHUTDOWN ||
			    race.last_error == -EPIPE)
		{
			TH_LOG("error %d", race.last_error);
		}
		while (arena_figure(race.a.made.arena, "allocated_bytes") &&
		       now_ms() < end)
			usleep(1000);
		EXPECT_EQ(0,
			  arena_figure(race.a.made.arena, "allocated_bytes"));
		EXPECT_EQ(2, arena_figure(race.a.made.arena, "free"));
		MUST(!close(race.a.fd));
	}
	EXPECT_EQ(0, info_get().arenas);
}

TEST_HARNESS_MAIN
