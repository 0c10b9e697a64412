// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module comes and goes: it cannot be removed while anybody uses it, and
 * having been removed it leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>
#include <uapi/tensorarena.h>

#include "memory.h"

#define MODULE_PATH "/lib/modules/tensorarena.ko"
#define ROUNDS 100
#define SLOT_BYTES (4UL << 20)
#define SLOTS 3
#define READERS 2

static int load(void)
{
	int fd = open(MODULE_PATH, O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensorarena", O_NONBLOCK) < 0 ?
		       -errno :
		       0;
}

/* One arena with everything that holds on to the module. */
struct arena {
	int control;
	int writer;
	int reader[READERS];
	unsigned char *in;
	const unsigned char *out[READERS];
	struct tensorarena_create create;
};

static int arena_open(struct arena *arena)
{
	size_t bytes;

	memset(arena, 0, sizeof(*arena));
	arena->control = open("/dev/tensorarena", O_RDWR | O_CLOEXEC);
	if (arena->control < 0)
		return -errno;
	arena->create.slot_bytes = SLOT_BYTES;
	arena->create.slots = SLOTS;
	arena->create.seats = READERS;
	arena->create.node = TENSORARENA_NODE_LOCAL;
	if (ioctl(arena->control, TENSORARENA_CREATE, &arena->create) < 0)
		return -errno;
	arena->writer = arena->create.fd;
	bytes = SLOTS * arena->create.stride;
	arena->in = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 arena->writer, 0);
	if (arena->in == MAP_FAILED)
		return -errno;

	for (int i = 0; i < READERS; i++) {
		struct tensorarena_attach attach = {
			.arena = arena->create.arena,
		};

		memcpy(attach.cookie, arena->create.cookie,
		       sizeof(attach.cookie));
		if (ioctl(arena->control, TENSORARENA_ATTACH, &attach) < 0)
			return -errno;
		arena->reader[i] = attach.fd;
		arena->out[i] =
			mmap(NULL, bytes, PROT_READ, MAP_SHARED, attach.fd, 0);
		if (arena->out[i] == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static void arena_close(struct arena *arena)
{
	size_t bytes = SLOTS * arena->create.stride;

	for (int i = 0; i < READERS; i++) {
		munmap((void *)arena->out[i], bytes);
		close(arena->reader[i]);
	}
	munmap(arena->in, bytes);
	close(arena->writer);
	close(arena->control);
}

/* Publishes a slot full of @value, which every reader sees; nobody releases. */
static int arena_use(struct arena *arena, unsigned char value)
{
	struct tensorarena_acquire acquire = { .nbytes = SLOT_BYTES };
	struct tensorarena_publish publish = { .nbytes = SLOT_BYTES };

	if (ioctl(arena->writer, TENSORARENA_ACQUIRE, &acquire) < 0)
		return -errno;
	memset(arena->in + acquire.offset, value, SLOT_BYTES);
	publish.slot = acquire.slot;
	publish.generation = acquire.generation;
	if (ioctl(arena->writer, TENSORARENA_PUBLISH, &publish) < 0)
		return -errno;
	if (publish.addressed != READERS)
		return -ENOTCONN;

	for (int i = 0; i < READERS; i++) {
		struct tensorarena_borrow next = { 0 };

		if (ioctl(arena->reader[i], TENSORARENA_NEXT, &next) < 0)
			return -errno;
		if (arena->out[i][next.offset] != value ||
		    arena->out[i][next.offset + SLOT_BYTES - 1] != value)
			return -EBADMSG;
	}
	return 0;
}

/* Uses an arena in a process that ends without cleaning up. */
static int use_and_die(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		struct arena arena;
		int err = arena_open(&arena);

		for (int i = 0; !err && i < SLOTS; i++)
			err = arena_use(&arena, i + 1);
		if (err)
			_exit(-err);
		kill(getpid(), SIGKILL);
	}
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFSIGNALED(status) ? 0 : -WEXITSTATUS(status);
}

static int use_and_close(void)
{
	struct arena arena;
	int err = arena_open(&arena);

	if (!err)
		err = arena_use(&arena, 0x5a);
	if (!err)
		arena_close(&arena);
	return err;
}

static int round_trip(void)
{
	int err = load();

	if (err)
		return err;
	err = use_and_close();
	if (!err)
		err = use_and_die();
	return err ? err : unload();
}

TEST(module_stays_while_a_file_is_open)
{
	struct arena arena;

	ASSERT_EQ(0, load());
	ASSERT_EQ(0, arena_open(&arena));
	EXPECT_EQ(-EWOULDBLOCK, unload());
	arena_close(&arena);

	arena.control = open("/dev/tensorarena", O_RDWR | O_CLOEXEC);
	ASSERT_GE(arena.control, 0);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(arena.control);
	EXPECT_EQ(0, unload());
}

TEST(module_stays_while_only_a_writer_is_open)
{
	struct arena arena;

	ASSERT_EQ(0, load());
	ASSERT_EQ(0, arena_open(&arena));
	for (int i = 0; i < READERS; i++) {
		munmap((void *)arena.out[i], SLOTS * arena.create.stride);
		close(arena.reader[i]);
	}
	munmap(arena.in, SLOTS * arena.create.stride);
	close(arena.control);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(arena.writer);
	EXPECT_EQ(0, unload());
}

TEST(module_stays_while_only_a_mapping_is_left)
{
	struct arena arena;

	ASSERT_EQ(0, load());
	ASSERT_EQ(0, arena_open(&arena));
	ASSERT_EQ(0, arena_use(&arena, 0x77));
	close(arena.control);
	close(arena.writer);
	for (int i = 0; i < READERS; i++)
		close(arena.reader[i]);
	munmap(arena.in, SLOTS * arena.create.stride);
	munmap((void *)arena.out[0], SLOTS * arena.create.stride);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0x77, arena.out[1][0]);
	munmap((void *)arena.out[1], SLOTS * arena.create.stride);
	EXPECT_EQ(0, unload());
}

/*
 * A leak grows with every round; a machine in peace differs by a few pages and
 * by a slab or two in caches that the kernel happens to be using.  So what grew
 * by an object in every second round is only suspected, and convicted when it
 * has grown as much in each of several hundred rounds.
 */
#define STAGES 5

static bool grew(const char *what, long by)
{
	if (by < ROUNDS / 2)
		return false;
	printf("# %d rounds: %ld %s more in use\n", ROUNDS, by, what);
	return true;
}

FIXTURE(rounds)
{
	struct memory before;
	struct memory after;
	bool pages_suspected;
	bool suspected[MAX_CACHES];
};

FIXTURE_SETUP(rounds)
{
	self->pages_suspected = true;
	for (size_t i = 0; i < MAX_CACHES; i++)
		self->suspected[i] = true;
}

FIXTURE_TEARDOWN(rounds)
{
}

/* Clears whatever did not grow in this stage; false when nothing is left. */
static bool still_suspected(FIXTURE_DATA(rounds) * self)
{
	const struct memory *before = &self->before;
	const struct memory *after = &self->after;
	bool any;

	self->pages_suspected &=
		grew("pages", before->free_pages - after->free_pages);
	any = self->pages_suspected;
	for (size_t i = 0; i < after->nr_caches; i++) {
		const char *name = after->name[i];

		self->suspected[i] &= grew(
			name, after->objects[i] - memory_objects(before, name));
		any |= self->suspected[i];
	}
	return any;
}

/* The time limit is against hanging. */
TEST_F_TIMEOUT(rounds, leave_nothing_behind, 880)
{
	bool suspected = true;

	/* What is allocated once and kept is no leak. */
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(0, round_trip());
	ASSERT_TRUE(memory_measure(&self->before));
	for (int stage = 0; suspected && stage < STAGES; stage++) {
		for (int i = 0; i < ROUNDS; i++)
			ASSERT_EQ(0, round_trip());
		ASSERT_TRUE(memory_measure(&self->after));
		suspected = still_suspected(self);
		self->before = self->after;
	}
	EXPECT_FALSE(suspected);
}

TEST_HARNESS_MAIN
