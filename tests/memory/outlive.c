// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned pages outlive everything that they came from: mapping, file, arena and
 * module.  They are freed when the pin goes, and nothing else is kept.
 */
#include <kselftest_harness.h>
#include <sys/uio.h>

#include "pinned.h"

#define SLOT (16 * CHUNK)
#define PINNED (4 * CHUNK)

FIXTURE(module)
{
	struct arena a;
	struct reader r;
	uint64_t before;
};

FIXTURE_VARIANT(module)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(module, huge){
	.flags = 0,
};

FIXTURE_VARIANT_ADD(module, contiguous){
	.flags = TENSORARENA_CREATE_CONTIGUOUS,
};

FIXTURE_SETUP(module)
{
	pin_module_load();
	MUST(!module_load("tensorarena"));
	self->before = free_in_peace();
	MUST(!arena_try(&self->a, 1, SLOT, 0, variant->flags));
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	put(&self->a, SLOT, 1);
}

FIXTURE_TEARDOWN(module)
{
}

/* Ends the arena with all its files and mappings, and removes the module. */
static int end(FIXTURE_DATA(module) * self)
{
	const double limit = now_ms() + HANG_MS;
	int err;

	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!munmap(self->r.map, self->r.bytes));
	MUST(!close(self->r.fd));
	MUST(!close(self->a.fd));
	/* Another process may just be looking at it. */
	do
		err = module_unload("tensorarena");
	while (err == -EWOULDBLOCK && now_ms() < limit);
	return err;
}

/* @kept: what is meant to be in use once all but the pins is gone */
static void check(struct __test_metadata *_metadata,
		  FIXTURE_DATA(module) * self, int fd, size_t nbytes,
		  uint64_t kept)
{
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, end(self));
	EXPECT_TRUE(free_again(self->before, kept));
	EXPECT_TRUE(pin_matches(fd, nbytes, 1));
	MUST(!close(fd));
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_F(module, is_outlived_by_a_pin_for_writing)
{
	int fd = pin(self->a.map, PINNED, true);

	check(_metadata, self, fd, PINNED, PINNED);
}

TEST_F(module, is_outlived_by_a_pin_for_reading)
{
	int fd = pin(self->r.map, PINNED, false);

	check(_metadata, self, fd, PINNED, PINNED);
}

TEST_F(module, is_outlived_by_a_device_that_writes)
{
	int fd = pin(self->a.map, PINNED, true);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, end(self));
	EXPECT_EQ(0, pin_fill(fd, PINNED, 7));
	EXPECT_TRUE(pin_matches(fd, PINNED, 7));
	MUST(!close(fd));
	EXPECT_TRUE(free_again(self->before, 0));
}

/* One page keeps no more than the folio that it is of. */
TEST_F(module, is_outlived_by_a_page_in_a_pipe)
{
	struct iovec iov = { .iov_base = self->r.map + CHUNK, .iov_len = PAGE };
	uint8_t expected[PAGE], bytes[PAGE];
	int fds[2];

	memcpy(expected, self->a.map + CHUNK, PAGE);
	MUST(!pipe(fds));
	ASSERT_EQ((ssize_t)PAGE, vmsplice(fds[1], &iov, 1, 0));
	ASSERT_EQ(0, end(self));
	EXPECT_LE(self->before, free_bytes() + CHUNK + NOISE);
	ASSERT_EQ((ssize_t)PAGE, read(fds[0], bytes, sizeof(bytes)));
	EXPECT_EQ(0, memcmp(expected, bytes, PAGE));
	EXPECT_TRUE(free_again(self->before, 0));
}

/* Loaded again it finds nothing of the one before. */
TEST_F(module, comes_back_while_pins_of_its_last_life_are_held)
{
	int fd = pin(self->a.map, PINNED, true);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, end(self));
	ASSERT_EQ(0, module_load("tensorarena"));
	EXPECT_EQ(0, info_get().arenas);
	MUST(!arena_try(&self->a, 1, SLOT, 0, variant->flags));
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	put(&self->a, SLOT, 9);
	EXPECT_TRUE(pin_matches(fd, PINNED, 1));
	EXPECT_TRUE(pattern_matches(self->r.map, SLOT, 9));
	ASSERT_EQ(0, end(self));
	MUST(!close(fd));
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_HARNESS_MAIN
