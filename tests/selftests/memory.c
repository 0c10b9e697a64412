// SPDX-License-Identifier: GPL-2.0-only
/* Slot memory: built when needed, as much as needed, zeroed, given back. */
#include <kselftest_harness.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "arena.h"
#include "proc.h"
#include "text.h"
#include "waiter.h"

static uint64_t allocated(const struct arena *a)
{
	return stats_get(a).allocated_bytes;
}

static int trim_to(const struct arena *a, uint64_t keep_bytes,
		   struct tensorarena_trim *args)
{
	memset(args, 0, sizeof(*args));
	args->keep_bytes = keep_bytes;
	return request(a->fd, TENSORARENA_TRIM, args);
}

static int populate(const struct arena *a, uint32_t slots, uint64_t nbytes,
		    uint32_t *ready)
{
	struct tensorarena_populate args = { .nbytes = nbytes, .slots = slots };
	int err = request(a->fd, TENSORARENA_POPULATE, &args);

	*ready = args.ready;
	return err;
}

/* Acquires and aborts: builds the slot and leaves it free. */
static void build(const struct arena *a, uint64_t nbytes)
{
	struct tensorarena_acquire acq;

	MUST(!acquire(a, nbytes, &acq));
	MUST(!abort_slot(a, acq.slot, acq.generation));
}

static bool is_zero(const uint8_t *p, size_t nbytes)
{
	const uint64_t *word = (const uint64_t *)p;
	size_t i;

	for (i = 0; i < nbytes / sizeof(*word); i++)
		if (word[i])
			return false;
	return true;
}

TEST(nothing_is_held_before_the_first_acquire)
{
	struct reader r;
	struct arena a;

	arena_create(&a, 8, 64 * MIB, 0);
	arena_map(&a);
	reader_attach(&a, &r);
	reader_map(&r);
	EXPECT_EQ(0, allocated(&a));
}

TEST(eight_tensors_of_9_MB_hold_eight_times_16_MiB)
{
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;
	int i;

	arena_create(&a, 8, 64 * MIB, 0);
	reader_attach(&a, &r);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, acquire(&a, 9000000, &acq));
		EXPECT_EQ(16 * MIB * (i + 1), allocated(&a));
		ASSERT_EQ(1, publish(&a, acq.slot, acq.generation, 9000000));
	}
}

TEST(a_slot_grows_by_powers_of_two_up_to_its_stride)
{
	struct arena a;

	arena_create(&a, 1, 5 * CHUNK - 1, 0);
	build(&a, 0);
	EXPECT_EQ(0, allocated(&a));
	build(&a, 1);
	EXPECT_EQ(CHUNK, allocated(&a));
	build(&a, CHUNK);
	EXPECT_EQ(CHUNK, allocated(&a));
	build(&a, CHUNK + 1);
	EXPECT_EQ(2 * CHUNK, allocated(&a));
	build(&a, 2 * CHUNK + 1);
	EXPECT_EQ(4 * CHUNK, allocated(&a));
	build(&a, 4 * CHUNK + 1);
	EXPECT_EQ(5 * CHUNK, allocated(&a));
	/* Kept for reuse. */
	build(&a, 1);
	EXPECT_EQ(5 * CHUNK, allocated(&a));
}

TEST(small_tensors_reuse_the_slots_there_are)
{
	struct reader r;
	struct arena a;
	uint32_t i;

	arena_create(&a, 4, 4 * CHUNK, 0);
	reader_attach(&a, &r);
	for (i = 0; i < 20; i++) {
		struct tensorarena_ticket ticket = put(&a, 100, i);

		ASSERT_EQ(0, release(&r, &ticket));
	}
	EXPECT_EQ(CHUNK, allocated(&a));
}

TEST(new_memory_is_zero)
{
	struct tensorarena_acquire acq;
	struct tensorarena_trim trim;
	struct arena a;

	arena_create(&a, 1, 2 * CHUNK, 0);
	arena_map(&a);
	ASSERT_EQ(0, acquire(&a, CHUNK, &acq));
	EXPECT_TRUE(is_zero(a.map, CHUNK));
	memset(a.map, 0xee, CHUNK);
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));
	ASSERT_EQ(0, acquire(&a, 2 * CHUNK, &acq));
	EXPECT_TRUE(is_zero(a.map + CHUNK, CHUNK));
	memset(a.map, 0xee, 2 * CHUNK);
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));

	/* Memory given back does not come again with its old contents. */
	ASSERT_EQ(0, trim_to(&a, 0, &trim));
	ASSERT_EQ(0, acquire(&a, 2 * CHUNK, &acq));
	EXPECT_TRUE(is_zero(a.map, 2 * CHUNK));
}

TEST(populate_builds_free_slots_ahead)
{
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;
	uint32_t ready;

	arena_create(&a, 4, 2 * CHUNK, 0);
	reader_attach(&a, &r);
	ASSERT_EQ(0, populate(&a, 3, CHUNK, &ready));
	EXPECT_EQ(3, ready);
	EXPECT_EQ(3 * CHUNK, allocated(&a));
	EXPECT_EQ(4, stats_get(&a).free);
	ASSERT_EQ(0, populate(&a, 2, CHUNK, &ready));
	EXPECT_EQ(3, ready);
	EXPECT_EQ(3 * CHUNK, allocated(&a));
	EXPECT_EQ(-EINVAL, populate(&a, 1, 2 * CHUNK + 1, &ready));
	EXPECT_EQ(-EINVAL, populate(&a, 5, CHUNK, &ready));

	/* A slot in use is not touched, only counted when it has enough. */
	ASSERT_EQ(0, acquire(&a, CHUNK, &acq));
	ASSERT_EQ(0, populate(&a, 4, 2 * CHUNK, &ready));
	EXPECT_EQ(3, ready);
	EXPECT_EQ(7 * CHUNK, allocated(&a));
	EXPECT_EQ(0, stats_get(&a).aborted);
}

TEST(trim_gives_idle_memory_back)
{
	struct tensorarena_ticket held;
	struct tensorarena_borrow b;
	struct tensorarena_trim trim;
	struct reader r;
	struct arena a;
	uint32_t ready;

	arena_create(&a, 4, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	held = put(&a, 1000, 1);
	ASSERT_EQ(0, borrow(&r, &held, &b));
	ASSERT_EQ(0, populate(&a, 4, CHUNK, &ready));
	EXPECT_EQ(0, touch_read(r.map + 3 * CHUNK));

	ASSERT_EQ(0, trim_to(&a, 3 * CHUNK, &trim));
	EXPECT_EQ(CHUNK, trim.freed_bytes);
	EXPECT_EQ(3 * CHUNK, trim.allocated_bytes);
	EXPECT_EQ(3 * CHUNK, allocated(&a));
	ASSERT_EQ(0, trim_to(&a, 4 * CHUNK, &trim));
	EXPECT_EQ(0, trim.freed_bytes);

	/* A publication is not idle. */
	ASSERT_EQ(0, trim_to(&a, 0, &trim));
	EXPECT_EQ(2 * CHUNK, trim.freed_bytes);
	EXPECT_EQ(CHUNK, trim.allocated_bytes);
	EXPECT_EQ(0, trim.busy);
	EXPECT_TRUE(delivered(&r, &b));
	EXPECT_EQ(SIGBUS, touch_read(r.map + 3 * CHUNK));
	EXPECT_EQ(SIGBUS, touch_write(a.map + 3 * CHUNK));
	EXPECT_EQ(4, stats_get(&a).free + stats_get(&a).published);

	/* Built anew, it is there for mappings that are older than it. */
	ASSERT_EQ(0, release(&r, &held));
	ASSERT_EQ(0, trim_to(&a, 0, &trim));
	EXPECT_EQ(0, trim.allocated_bytes);
	EXPECT_EQ(SIGBUS, touch_read(r.map));
	put(&a, 1000, 2);
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_TRUE(delivered(&r, &b));
}

/* A page of memory, for as long as it waits in a pipe. */
static void pin(int *fds, void *p)
{
	struct iovec iov = { .iov_base = p, .iov_len = 4096 };

	MUST(!pipe(fds));
	MUST(vmsplice(fds[1], &iov, 1, 0) == 4096);
}

static void unpin(const int *fds)
{
	char bytes[4096];

	MUST(read(fds[0], bytes, sizeof(bytes)) == sizeof(bytes));
	close(fds[0]);
	close(fds[1]);
}

TEST(trim_leaves_pinned_slots_and_asks_for_them)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct tensorarena_trim trim;
	struct reader r;
	struct arena a;
	int fds[2];

	arena_create(&a, 2, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	ticket = put(&a, CHUNK, 1);
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_EQ(0, b.wanted);
	pin(fds, r.map + b.offset + 4096);
	ASSERT_EQ(0, release(&r, &ticket));

	EXPECT_EQ(-EBUSY, trim_to(&a, 0, &trim));
	EXPECT_EQ(1, trim.busy);
	EXPECT_EQ(0, trim.freed_bytes);
	EXPECT_EQ(CHUNK, trim.allocated_bytes);
	/* It was asked to keep as much: not busy, not wanted. */
	EXPECT_EQ(0, trim_to(&a, CHUNK, &trim));
	EXPECT_EQ(-EBUSY, trim_to(&a, CHUNK - 1, &trim));

	/* All of it is still there, reuse is not hindered. */
	EXPECT_TRUE(pattern_matches(a.map + b.offset, CHUNK, 1));
	ticket = put(&a, 1000, 2);
	EXPECT_EQ(b.ticket.slot, ticket.slot);
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_NE(0, b.wanted);
	EXPECT_TRUE(delivered(&r, &b));
	/* Once is enough. */
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_EQ(0, b.wanted);
	ASSERT_EQ(0, release(&r, &ticket));

	/* One that finds nothing pinned does not want it any more. */
	EXPECT_EQ(-EBUSY, trim_to(&a, 0, &trim));
	unpin(fds);
	EXPECT_EQ(0, trim_to(&a, 0, &trim));
	EXPECT_EQ(CHUNK, trim.freed_bytes);
	ticket = put(&a, 1000, 3);
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_EQ(0, b.wanted);
}

TEST(trim_wakes_readers_for_whom_there_is_nothing_else)
{
	struct tensorarena_borrow b;
	struct tensorarena_trim trim;
	struct reader idle, other;
	struct waiter waiter;
	struct arena a;
	void *unwritable;
	int fds[2];

	unwritable = mmap(NULL, sizeof(b), PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(unwritable != MAP_FAILED);
	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &idle);
	reader_attach(&a, &other);
	reader_map(&idle);
	put(&a, CHUNK, 1);
	ASSERT_EQ(0, next(&other, &b));
	ASSERT_EQ(0, release(&other, &b.ticket));
	ASSERT_EQ(0, next(&idle, &b));
	pin(fds, idle.map + b.offset);
	ASSERT_EQ(0, release(&idle, &b.ticket));
	ASSERT_EQ(-EAGAIN, next(&idle, &b));
	EXPECT_EQ(0, b.wanted);

	waiter_start(&waiter, idle.fd, POLLIN);
	EXPECT_EQ(-EBUSY, trim_to(&a, 0, &trim));
	EXPECT_EQ(POLLIN, waiter_result(&waiter));
	/* Who cannot be told is told again. */
	EXPECT_EQ(-EFAULT, request(idle.fd, TENSORARENA_NEXT, unwritable));
	EXPECT_EQ(POLLIN, poll_now(idle.fd));
	EXPECT_EQ(-EAGAIN, next(&idle, &b));
	EXPECT_NE(0, b.wanted);
	EXPECT_EQ(0, poll_now(idle.fd));
	EXPECT_EQ(-EAGAIN, next(&idle, &b));
	EXPECT_EQ(0, b.wanted);

	/* Each for himself. */
	EXPECT_EQ(POLLIN, poll_now(other.fd));
	/* The end is more than that. */
	EXPECT_EQ(-EBUSY, trim_to(&a, 0, &trim));
	MUST(!close(a.fd));
	MUST(!munmap(a.map, a.bytes));
	EXPECT_EQ(POLLHUP, poll_now(idle.fd));
	EXPECT_EQ(-EPIPE, next(&idle, &b));
	unpin(fds);
}

TEST(trim_that_finds_nothing_pinned_wants_nothing_any_more)
{
	struct tensorarena_borrow b;
	struct tensorarena_trim trim;
	struct reader r;
	struct arena a;
	int fds[2];

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	put(&a, CHUNK, 1);
	ASSERT_EQ(0, next(&r, &b));
	pin(fds, r.map + b.offset);
	ASSERT_EQ(0, release(&r, &b.ticket));
	EXPECT_EQ(-EBUSY, trim_to(&a, 0, &trim));
	EXPECT_EQ(POLLIN, poll_now(r.fd));
	unpin(fds);
	EXPECT_EQ(0, trim_to(&a, 0, &trim));
	EXPECT_EQ(0, poll_now(r.fd));
	EXPECT_EQ(-EAGAIN, next(&r, &b));
	EXPECT_EQ(0, b.wanted);
}

TEST(readers_that_left_do_not_keep_memory)
{
	struct reader detached, evicted;
	struct tensorarena_trim trim;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &detached);
	reader_map(&detached);
	reader_attach(&a, &evicted);
	reader_map(&evicted);
	put(&a, 1000, 1);
	EXPECT_EQ(0, touch_read(detached.map));
	EXPECT_EQ(0, touch_read(evicted.map));
	EXPECT_EQ(0, detach(&detached));
	EXPECT_EQ(1, evict(&a, evicted.made.reader, 0));
	/* Their mappings still stand, empty. */
	EXPECT_EQ(0, trim_to(&a, 0, &trim));
	EXPECT_EQ(0, trim.busy);
	EXPECT_EQ(CHUNK, trim.freed_bytes);
}

TEST(an_orphaned_arena_keeps_only_what_is_still_held)
{
	struct tensorarena_borrow b;
	double start = now_ms();
	struct reader r;
	struct arena a;
	uint32_t ready;

	arena_create(&a, 4, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	put(&a, 1000, 1);
	MUST(!populate(&a, 4, CHUNK, &ready));
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_EQ(4 * CHUNK, arena_figure(a.made.arena, "allocated_bytes"));
	MUST(!munmap(a.map, a.bytes));
	MUST(!close(a.fd));
	while (arena_figure(a.made.arena, "allocated_bytes") != CHUNK &&
	       now_ms() < start + HANG_MS)
		usleep(1000);
	EXPECT_EQ(CHUNK, arena_figure(a.made.arena, "allocated_bytes"));
	EXPECT_TRUE(delivered(&r, &b));
	ASSERT_EQ(0, release(&r, &b.ticket));
	while (arena_figure(a.made.arena, "allocated_bytes") &&
	       now_ms() < start + HANG_MS)
		usleep(1000);
	EXPECT_EQ(0, arena_figure(a.made.arena, "allocated_bytes"));
	EXPECT_EQ(SIGBUS, touch_read(r.map));
}

/* ---- a memory cgroup that is too small ---- */

#define CGROUP "/sys/fs/cgroup/tensorarena-test"

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	MUST(!close(fd));
	return n == (ssize_t)strlen(text);
}

/* An own cgroup with a limit; false where there is no such controller. */
static bool cgroup_create(const char *limit)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK))
		return false;
	if (!write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		return false;
	if (mkdir(CGROUP, 0755) && errno != EEXIST)
		return false;
	return write_text(CGROUP "/memory.max", limit);
}

static void acquire_more_than_there_is(int sock, void *arg)
{
	struct tensorarena_acquire acq;
	struct arena a;
	uint32_t ready;

	(void)arg;
	MUST(write_text(CGROUP "/cgroup.procs", "0"));
	arena_create(&a, 2, 64 * MIB, 0);
	tell(sock, acquire(&a, 64 * MIB, &acq));
	tell(sock, (int64_t)allocated(&a));
	tell(sock, (int64_t)stats_get(&a).declined_no_memory);
	tell(sock, stats_get(&a).free);
	tell(sock, populate(&a, 1, 64 * MIB, &ready));
	tell(sock, (int64_t)allocated(&a));
	/* What fits still works; nothing of the failure is charged. */
	tell(sock, acquire(&a, 4 * MIB, &acq));
	hear_or_exit(sock);
}

TEST(a_full_cgroup_is_a_decline_and_not_a_kill)
{
	struct child c;

	if (!cgroup_create("24M"))
		SKIP(return, "no memory controller in cgroup v2");
	c = child_start(acquire_more_than_there_is, NULL, -1);
	EXPECT_EQ(-ENOMEM, must_hear(c.sock));
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_EQ(1, must_hear(c.sock));
	EXPECT_EQ(2, must_hear(c.sock));
	EXPECT_EQ(-ENOMEM, must_hear(c.sock));
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(0, rmdir(CGROUP));
}

struct poller {
	int fd;
	atomic_bool stop;
	bool lost;
};

static void *poll_again_and_again(void *arg)
{
	struct poller *p = arg;

	while (!p->lost && !atomic_load(&p->stop))
		p->lost = !poll_for(p->fd, POLLOUT, HANG_MS);
	return NULL;
}

static void decline_while_somebody_waits(int sock, void *arg)
{
	struct tensorarena_acquire acq;
	struct poller p = { 0 };
	pthread_t thread;
	struct arena a;
	int i;

	(void)arg;
	MUST(write_text(CGROUP "/cgroup.procs", "0"));
	arena_create(&a, 1, 64 * MIB, 0);
	p.fd = a.fd;
	MUST(!pthread_create(&thread, NULL, poll_again_and_again, &p));
	for (i = 0; i < 20; i++)
		MUST(acquire(&a, 64 * MIB, &acq) == -ENOMEM);
	atomic_store(&p.stop, true);
	MUST(!pthread_join(thread, NULL));
	tell(sock, p.lost);
	hear_or_exit(sock);
}

/* While it is being built the slot is not free; when that fails it is again. */
TEST(a_decline_for_want_of_memory_wakes_who_waits_for_a_slot)
{
	struct child c;

	if (!cgroup_create("24M"))
		SKIP(return, "no memory controller in cgroup v2");
	c = child_start(decline_while_somebody_waits, NULL, -1);
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(0, rmdir(CGROUP));
}

TEST_HARNESS_MAIN
