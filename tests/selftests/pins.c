// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of a slot held by the kernel for a device, as a GPU's driver would:
 * registered io_uring buffers are pinned for long and for writing, which is
 * just what a driver asks for; vmsplice and O_DIRECT pin for short.
 */
#include <kselftest_harness.h>
#include <sys/uio.h>

#include "arena.h"
#include "proc.h"
#include "text.h"
#include "uring.h"

#define PAGE 4096

/* A slot of two chunks that a reader in this process has borrowed. */
FIXTURE(pins)
{
	struct arena a;
	struct reader r;
	struct tensorarena_borrow b;
	uint8_t *written; /* where the slot is in the writer's mapping */
	const uint8_t *read;
	struct uring ring;
	int no_ring;
};

FIXTURE_SETUP(pins)
{
	struct tensorarena_ticket ticket;

	arena_create(&self->a, 1, 2 * CHUNK, 0);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	ticket = put(&self->a, 2 * CHUNK, 1);
	MUST(!borrow(&self->r, &ticket, &self->b));
	self->written = self->a.map + self->b.offset;
	self->read = self->r.map + self->b.offset;
	self->no_ring = uring_open(&self->ring);
}

FIXTURE_TEARDOWN(pins)
{
}

/* Before 6.5 io_uring refuses every shared mapping of a file. */
static bool registration_possible(void)
{
	return kernel_at_least(6, 5);
}

static int file_with_pattern(size_t nbytes, uint32_t seed)
{
	char name[] = "/tmp/tensorarena-pins-XXXXXX";
	int fd = mkstemp(name);
	uint8_t *bytes = malloc(nbytes);

	MUST(fd >= 0 && bytes);
	MUST(!unlink(name));
	pattern_fill(bytes, nbytes, seed);
	MUST(pwrite(fd, bytes, nbytes, 0) == (ssize_t)nbytes);
	free(bytes);
	return fd;
}

static bool file_matches(int fd, size_t nbytes, uint32_t seed)
{
	uint8_t *bytes = malloc(nbytes);
	bool same;

	MUST(bytes);
	same = pread(fd, bytes, nbytes, 0) == (ssize_t)nbytes &&
	       pattern_matches(bytes, nbytes, seed);
	free(bytes);
	return same;
}

/* Everything that refers to the arena but the pins. */
static void forget_the_arena(FIXTURE_DATA(pins) * self)
{
	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!munmap(self->r.map, self->r.bytes));
	MUST(!close(self->a.fd));
	MUST(!close(self->r.fd));
	MUST(!arena_exists(self->a.made.arena));
}

TEST_F(pins, the_writers_mapping_registers_as_a_buffer)
{
	const int expected = registration_possible() ? 0 : -EOPNOTSUPP;

	if (self->no_ring)
		SKIP(return, "no io_uring: %s", strerror(-self->no_ring));
	EXPECT_EQ(expected,
		  uring_register(&self->ring, self->written, 2 * CHUNK));
}

TEST_F(pins, untouched_pages_register_too)
{
	struct arena a;
	struct tensorarena_acquire acq;

	if (self->no_ring || !registration_possible())
		SKIP(return, "io_uring cannot register mappings of files here");
	arena_create(&a, 1, CHUNK, 0);
	arena_map(&a);
	ASSERT_EQ(0, acquire(&a, CHUNK, &acq));
	EXPECT_EQ(0, uring_register(&self->ring, a.map, CHUNK));
}

TEST_F(pins, unbuilt_memory_does_not_register)
{
	struct arena a;

	if (self->no_ring)
		SKIP(return, "no io_uring: %s", strerror(-self->no_ring));
	arena_create(&a, 1, CHUNK, 0);
	arena_map(&a);
	EXPECT_EQ(-EFAULT, uring_register(&self->ring, a.map, CHUNK));
}

TEST_F(pins, a_readers_mapping_is_not_pinned_for_writing)
{
	if (self->no_ring)
		SKIP(return, "no io_uring: %s", strerror(-self->no_ring));
	EXPECT_EQ(-EFAULT,
		  uring_register(&self->ring, (void *)self->read, 2 * CHUNK));
}

TEST_F(pins, fixed_buffers_move_the_right_bytes)
{
	const int from = file_with_pattern(2 * CHUNK, 7);
	const int to = file_with_pattern(1, 0);

	if (self->no_ring || !registration_possible())
		SKIP(return, "io_uring cannot register mappings of files here");
	ASSERT_EQ(0, uring_register(&self->ring, self->written, 2 * CHUNK));
	ASSERT_EQ((int)(2 * CHUNK), uring_io(&self->ring, IORING_OP_READ_FIXED,
					     from, self->written, 2 * CHUNK));
	EXPECT_TRUE(pattern_matches(self->read, 2 * CHUNK, 7));
	ASSERT_EQ((int)CHUNK, uring_io(&self->ring, IORING_OP_WRITE_FIXED, to,
				       self->written, CHUNK));
	EXPECT_TRUE(file_matches(to, CHUNK, 7));
}

TEST_F(pins, a_registered_buffer_outlives_the_arena)
{
	const int to = file_with_pattern(1, 0);

	if (self->no_ring || !registration_possible())
		SKIP(return, "io_uring cannot register mappings of files here");
	ASSERT_EQ(0, uring_register(&self->ring, self->written, 2 * CHUNK));
	forget_the_arena(self);
	ASSERT_EQ((int)(2 * CHUNK), uring_io(&self->ring, IORING_OP_WRITE_FIXED,
					     to, self->written, 2 * CHUNK));
	EXPECT_TRUE(file_matches(to, 2 * CHUNK, 1));
}

TEST_F(pins, a_registered_buffer_does_not_delay_reuse)
{
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_ticket ticket;

	if (self->no_ring || !registration_possible())
		SKIP(return, "io_uring cannot register mappings of files here");
	ASSERT_EQ(0, uring_register(&self->ring, self->written, 2 * CHUNK));
	ASSERT_EQ(0, release(&self->r, &self->b.ticket));
	ticket = put(&self->a, 1000, 2);
	EXPECT_EQ(self->b.ticket.slot, ticket.slot);
	ASSERT_EQ(0, release(&self->r, &ticket));
	EXPECT_EQ(-EBUSY, request(self->a.fd, TENSORARENA_TRIM, &trim));
	MUST(!close(self->ring.fd));
}

TEST(pages_in_a_pipe_outlive_the_arena_whatever_it_is_made_of)
{
	static const uint32_t tier[] = { 0, TENSORARENA_CREATE_CONTIGUOUS,
					 TENSORARENA_CREATE_FALLBACK_SMALL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tier); i++) {
		struct tensorarena_trim trim = { 0 };
		uint8_t bytes[2 * PAGE], expected[2 * PAGE];
		struct tensorarena_ticket ticket;
		struct iovec iov = { .iov_len = sizeof(bytes) };
		struct reader r;
		struct arena a;
		int fds[2];

		MUST(!arena_try(&a, 1, 2 * CHUNK, 0, tier[i]));
		reader_attach(&a, &r);
		reader_map(&r);
		ticket = put(&a, 2 * CHUNK, 1);
		/* The last page of one chunk and the first of the next. */
		iov.iov_base = r.map + CHUNK - PAGE;
		memcpy(expected, a.map + CHUNK - PAGE, sizeof(expected));
		MUST(!pipe(fds));
		ASSERT_EQ((ssize_t)sizeof(bytes), vmsplice(fds[1], &iov, 1, 0));
		ASSERT_EQ(0, release(&r, &ticket));
		EXPECT_EQ(-EBUSY, request(a.fd, TENSORARENA_TRIM, &trim));
		EXPECT_TRUE(pattern_matches(a.map, 2 * CHUNK, 1));

		MUST(!munmap(a.map, a.bytes));
		MUST(!munmap(r.map, r.bytes));
		MUST(!close(a.fd));
		MUST(!close(r.fd));
		EXPECT_FALSE(arena_exists(a.made.arena));
		ASSERT_EQ((ssize_t)sizeof(bytes),
			  read(fds[0], bytes, sizeof(bytes)));
		EXPECT_EQ(0, memcmp(expected, bytes, sizeof(bytes)));
	}
}

/* Another process's way in goes through the same page tables and pins. */
TEST_F(pins, process_vm_calls_reach_both_mappings)
{
	uint8_t bytes[PAGE];
	struct iovec local = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct iovec remote = { .iov_base = (void *)self->read,
				.iov_len = sizeof(bytes) };

	EXPECT_EQ((ssize_t)sizeof(bytes),
		  process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_TRUE(pattern_matches(bytes, sizeof(bytes), 1));
	EXPECT_EQ(-1, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(EFAULT, errno);
	remote.iov_base = self->written;
	pattern_fill(bytes, sizeof(bytes), 9);
	EXPECT_EQ((ssize_t)sizeof(bytes),
		  process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_TRUE(pattern_matches(self->read, sizeof(bytes), 9));
}

/* The first of the disks that are there to be written to, or -1. */
static int direct_file(void)
{
	const char *disks = getenv("TENSORARENA_TEST_DISKS");
	char path[64];

	if (!disks || sscanf(disks, "%63s", path) != 1)
		return -1;
	return open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
}

TEST_F(pins, direct_io_writes_from_a_reader_and_reads_into_the_writer)
{
	const int disk = direct_file();

	if (disk < 0)
		SKIP(return, "no disk in this machine");
	ASSERT_EQ((ssize_t)CHUNK, pwrite(disk, self->read, CHUNK, 0));
	memset(self->written, 0, CHUNK);
	ASSERT_EQ((ssize_t)CHUNK, pread(disk, self->written, CHUNK, 0));
	EXPECT_TRUE(pattern_matches(self->read, CHUNK, 1));
	/* Into read-only memory no device may write. */
	EXPECT_EQ(-1, pread(disk, (void *)self->read, CHUNK, 0));
	EXPECT_EQ(EFAULT, errno);
}

TEST_HARNESS_MAIN
