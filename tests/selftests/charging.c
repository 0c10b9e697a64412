// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose memory it is: the writer's memory cgroup pays for its slots until the
 * last page is free, and a cgroup that is full is a decline.
 */
#include <kselftest_harness.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "machine.h"

#define CGROUPS "/sys/fs/cgroup/"
#define WRITERS CGROUPS "tensorarena-writer/"
#define READERS CGROUPS "tensorarena-reader/"
#define SLOT (16 * MIB)
#define LIMIT_S 120 /* against hanging */

FIXTURE(cgroup)
{
	struct arena *a; /* shared with the children */
	uint64_t kills;
};

static uint64_t charge(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), "%smemory.current", cgroup);
	return figure_in(path, "");
}

FIXTURE_SETUP(cgroup)
{
	if (write_to(CGROUPS "cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory controller in cgroup v2");
	MUST(!mkdir(WRITERS, 0755) || errno == EEXIST);
	MUST(!mkdir(READERS, 0755) || errno == EEXIST);
	self->kills = oom_kills();
	self->a = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(self->a != MAP_FAILED);
}

FIXTURE_TEARDOWN(cgroup)
{
	MUST(!rmdir(WRITERS));
	MUST(!rmdir(READERS));
}

/* Whether @value is there or comes within the hang guard, but for noise. */
static bool charge_becomes(const char *cgroup, uint64_t value)
{
	const double end = now_ms() + HANG_MS;
	uint64_t now;

	do {
		now = charge(cgroup);
		if (now + NOISE >= value && now <= value + NOISE)
			return true;
		usleep(10000);
	} while (now_ms() < end);
	printf("# %s has %" PRIu64 " KiB, not %" PRIu64 "\n", cgroup, now >> 10,
	       value >> 10);
	return false;
}

static void write_as_told(int sock, void *arg)
{
	struct arena *a = arg;
	struct tensorarena_acquire acq;

	MUST(!write_to(WRITERS "cgroup.procs", "0"));
	arena_create(a, 2, SLOT, 0);
	tell(sock, 0);
	hear_or_exit(sock);
	MUST(!acquire(a, SLOT, &acq));
	tell(sock, 0);
	hear_or_exit(sock);
	MUST(!abort_slot(a, acq.slot, acq.generation));
	MUST(!trim(a, 0));
	tell(sock, 0);
	hear_or_exit(sock);
	MUST(!acquire(a, SLOT, &acq));
	tell(sock, 0);
	hear_or_exit(sock);
	MUST(!close(a->fd));
	tell(sock, 0);
	wait_for_the_end(sock);
}

static void touch_all(int sock, void *arg)
{
	struct reader r;
	size_t i;

	MUST(!write_to(READERS "cgroup.procs", "0"));
	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, 0);
	hear_or_exit(sock);
	for (i = 0; i < SLOT; i += PAGE)
		MUST(!touch_read(r.map + i));
	tell(sock, 0);
	hear_or_exit(sock);
	MUST(!detach(&r));
	MUST(!munmap(r.map, r.bytes));
	MUST(!close(r.fd));
	tell(sock, 0);
	wait_for_the_end(sock);
}

/* Tells a child to go on and waits until it has. */
static void step(const struct child *c)
{
	tell(c->sock, 0);
	must_hear(c->sock);
}

TEST_F_TIMEOUT(cgroup, of_the_writer_pays_and_no_readers, LIMIT_S)
{
	struct child writer, reader;
	uint64_t w, r;

	writer = child_start(write_as_told, self->a, -1);
	must_hear(writer.sock);
	reader = child_start(touch_all, self->a, -1);
	must_hear(reader.sock);
	w = charge(WRITERS);
	r = charge(READERS);

	step(&writer); /* acquires */
	EXPECT_TRUE(charge_becomes(WRITERS, w + SLOT));
	step(&reader); /* touches */
	EXPECT_TRUE(charge_becomes(WRITERS, w + SLOT));
	EXPECT_TRUE(charge_becomes(READERS, r));
	step(&writer); /* trims */
	EXPECT_TRUE(charge_becomes(WRITERS, w));
	step(&writer); /* acquires */
	EXPECT_TRUE(charge_becomes(WRITERS, w + SLOT));
	step(&reader); /* leaves */
	step(&writer); /* closes */
	EXPECT_TRUE(charge_becomes(WRITERS, w));
	EXPECT_TRUE(child_ended_well(&reader));
	EXPECT_TRUE(child_ended_well(&writer));
}

/* A page of the slot stays in a pipe that the parent has, too. */
static int pipe_fds[2];

static void splice_and_die(int sock, void *arg)
{
	struct arena *a = arg;
	struct tensorarena_acquire acq;
	struct iovec iov;

	MUST(!write_to(WRITERS "cgroup.procs", "0"));
	arena_create(a, 1, SLOT, 0);
	arena_map(a);
	MUST(!acquire(a, SLOT, &acq));
	pattern_fill(a->map, SLOT, 1);
	iov.iov_base = a->map;
	iov.iov_len = PAGE;
	MUST(vmsplice(pipe_fds[1], &iov, 1, 0) == (ssize_t)PAGE);
	tell(sock, 0);
	wait_for_the_end(sock);
}

TEST_F_TIMEOUT(cgroup, pays_for_what_is_pinned_until_it_is_not, LIMIT_S)
{
	uint8_t bytes[PAGE];
	struct child c;

	MUST(!pipe(pipe_fds));
	c = child_start(splice_and_die, self->a, -1);
	must_hear(c.sock);
	EXPECT_LE(SLOT, charge(WRITERS));
	child_kill(&c);
	EXPECT_EQ(0, info_get().arenas);
	/* The folio that the page is of. */
	EXPECT_TRUE(charge_becomes(WRITERS, CHUNK));
	ASSERT_EQ((ssize_t)PAGE, read(pipe_fds[0], bytes, sizeof(bytes)));
	EXPECT_TRUE(pattern_matches(bytes, PAGE, 1));
	EXPECT_TRUE(charge_becomes(WRITERS, 0));
}

static uint32_t create_flags;

static void acquire_more_than_allowed(int sock, void *arg)
{
	struct arena *a = arg;
	const size_t modest = 16 * MIB;
	struct tensorarena_acquire acq;
	uint8_t *p;
	size_t i;

	MUST(!write_to(WRITERS "cgroup.procs", "0"));
	MUST(!arena_try(a, 1, 256 * MIB, 0, create_flags));
	tell(sock, acquire(a, 256 * MIB, &acq));
	tell(sock, (int64_t)stats_get(a).allocated_bytes);
	tell(sock, (int64_t)stats_get(a).declined_no_memory);
	/* Had the failure left something charged, this would be a kill. */
	p = mmap(NULL, modest, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	for (i = 0; i < modest; i += PAGE)
		p[i] = 1;
	tell(sock, acquire(a, SLOT, &acq));
	wait_for_the_end(sock);
}

static bool declines_cleanly(struct arena *a, uint32_t flags)
{
	bool good = true;
	struct child c;

	create_flags = flags;
	c = child_start(acquire_more_than_allowed, a, -1);
	good &= must_hear(c.sock) == -ENOMEM;
	good &= must_hear(c.sock) == 0;
	good &= must_hear(c.sock) == 1;
	good &= must_hear(c.sock) == 0;
	return child_ended_well(&c) && good;
}

TEST_F_TIMEOUT(cgroup, of_64_MiB_declines_256_MiB, LIMIT_S)
{
	ASSERT_EQ(0, write_figure(WRITERS "memory.max", 64 * MIB));
	EXPECT_TRUE(declines_cleanly(self->a, 0));
	EXPECT_TRUE(
		declines_cleanly(self->a, TENSORARENA_CREATE_FALLBACK_SMALL));
	EXPECT_LE(1, figure_in(WRITERS "memory.events", "max "));
	EXPECT_EQ(0, figure_in(WRITERS "memory.events", "oom_kill "));
	EXPECT_EQ(self->kills, oom_kills());
}

/* ---- whatever little is left ---- */

/*
 * Told where to stop by a word in shared memory, since a message would itself
 * be charged.
 */
struct rounds {
	struct arena a;
	_Atomic int go, done;
	int result;
};

static void acquire_again_and_again(int sock, void *arg)
{
	struct rounds *rounds = arg;
	struct tensorarena_acquire acq;
	int round;

	MUST(!write_to(WRITERS "cgroup.procs", "0"));
	MUST(!arena_try(&rounds->a, 1, SLOT, 0,
			TENSORARENA_CREATE_FALLBACK_SMALL));
	tell(sock, 0);
	for (round = 1;; round++) {
		rounds->done = round - 1;
		while (rounds->go < round)
			sched_yield();
		rounds->result = acquire(&rounds->a, SLOT, &acq);
	}
}

TEST_F_TIMEOUT(cgroup, with_a_few_pages_left_declines_too, LIMIT_S)
{
	struct rounds *rounds = (struct rounds *)self->a;
	const int last = 24;
	struct child c;
	int round;

	c = child_start(acquire_again_and_again, rounds, -1);
	must_hear(c.sock);
	for (round = 1; round <= last; round++) {
		const double end = now_ms() + HANG_MS;

		ASSERT_EQ(0, write_to(WRITERS "memory.max", "max"));
		usleep(2000);
		ASSERT_EQ(0,
			  write_figure(WRITERS "memory.max",
				       charge(WRITERS) + (round - 1) * PAGE));
		rounds->go = round;
		while (rounds->done < round && now_ms() < end &&
		       !waitpid(c.pid, NULL, WNOHANG))
			usleep(1000);
		ASSERT_EQ(round, (int)rounds->done);
		EXPECT_EQ(-ENOMEM, rounds->result);
	}
	EXPECT_EQ(0, figure_in(WRITERS "memory.events", "oom_kill "));
	EXPECT_EQ(self->kills, oom_kills());
	child_kill(&c);
}

TEST_HARNESS_MAIN
