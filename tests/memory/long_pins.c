// SPDX-License-Identifier: GPL-2.0-only
/*
 * pin_user_pages(FOLL_LONGTERM) as a GPU's driver calls it: with FOLL_WRITE by
 * default, without it where the mapping is registered as read-only.
 */
#include <kselftest_harness.h>

#include "pinned.h"

#define SLOT (4 * CHUNK)

/* A slot published to a reader in this process. */
FIXTURE(pins)
{
	struct arena a;
	struct reader r;
	struct tensorarena_ticket ticket;
};

FIXTURE_VARIANT(pins)
{
	uint32_t flags;
	const char *name;
};

FIXTURE_VARIANT_ADD(pins, huge){
	.flags = 0,
	.name = "huge",
};

FIXTURE_VARIANT_ADD(pins, contiguous){
	.flags = TENSORARENA_CREATE_CONTIGUOUS,
	.name = "contiguous",
};

FIXTURE_SETUP(pins)
{
	pin_module_load();
	MUST(!arena_try(&self->a, 1, SLOT, 0, variant->flags));
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	self->ticket = put(&self->a, SLOT, 1);
}

FIXTURE_TEARDOWN(pins)
{
}

/* Pins, checks what the device sees, unpins: 0 or why it did not pin. */
static int try_pin(const void *address, size_t nbytes, bool write)
{
	int fd = pin(address, nbytes, write);

	if (fd < 0)
		return fd;
	MUST(pin_matches(fd, nbytes, 1));
	MUST(!close(fd));
	return 0;
}

static const char *outcome(int err)
{
	return err ? strerrorname_np(-err) : "ok";
}

TEST_F(pins, of_either_kind_work_where_they_may)
{
	int w = try_pin(self->a.map, SLOT, true);
	int r = try_pin(self->r.map, SLOT, true);

	EXPECT_EQ(0, w);
	/* No device may write what its process may not. */
	EXPECT_EQ(-EFAULT, r);
	kernel_fact("pin_default", "writer %s, reader %s", outcome(w),
		    outcome(r));
	w = try_pin(self->a.map, SLOT, false);
	r = try_pin(self->r.map, SLOT, false);
	EXPECT_EQ(0, w);
	EXPECT_EQ(0, r);
	kernel_fact("pin_readonly", "writer %s, reader %s", outcome(w),
		    outcome(r));
}

TEST_F(pins, move_the_right_bytes)
{
	int w = pin(self->a.map, SLOT, true);
	int r = pin(self->r.map, SLOT, false);

	ASSERT_LE(0, w);
	ASSERT_LE(0, r);
	EXPECT_EQ(-EPERM, pin_fill(r, SLOT, 2));
	ASSERT_EQ(0, pin_fill(w, SLOT, 2));
	EXPECT_TRUE(pattern_matches(self->r.map, SLOT, 2));
	EXPECT_TRUE(pin_matches(r, SLOT, 2));
	/* The pin shows whatever the slot holds next. */
	ASSERT_EQ(0, release(&self->r, &self->ticket));
	self->ticket = put(&self->a, SLOT, 3);
	EXPECT_TRUE(pin_matches(r, SLOT, 3));
	EXPECT_TRUE(pin_matches(w, SLOT, 3));
}

/* A driver may well be the first to touch. */
TEST_F(pins, need_no_page_to_be_mapped_before)
{
	struct tensorarena_acquire acq;
	struct arena a;
	struct reader r;
	int fd;

	MUST(!arena_try(&a, 1, SLOT, 0, variant->flags));
	arena_map(&a);
	reader_attach(&a, &r);
	reader_map(&r);
	EXPECT_EQ(-EFAULT, pin(a.map, SLOT, true));
	EXPECT_EQ(-EFAULT, pin(r.map, SLOT, false));
	ASSERT_EQ(0, acquire_patiently(&a, SLOT, &acq));
	fd = pin(r.map, SLOT, false);
	EXPECT_LE(0, fd);
	pattern_fill(a.map, SLOT, 4);
	EXPECT_TRUE(pin_matches(fd, SLOT, 4));
	EXPECT_LE(0, pin(a.map, SLOT, true));
}

TEST_F(pins, of_a_part_do_as_well)
{
	int fd = pin(self->r.map + CHUNK - PAGE, 2 * PAGE, false);
	uint8_t bytes[2 * PAGE];

	ASSERT_LE(0, fd);
	ASSERT_EQ((ssize_t)sizeof(bytes), pread(fd, bytes, sizeof(bytes), 0));
	EXPECT_EQ(0, memcmp(bytes, self->a.map + CHUNK - PAGE, sizeof(bytes)));
}

TEST_F(pins, keep_the_slot_from_being_freed_and_not_from_being_used)
{
	const bool write[] = { false, true };
	size_t i;

	ASSERT_EQ(0, release(&self->r, &self->ticket));
	for (i = 0; i < ARRAY_SIZE(write); i++) {
		struct tensorarena_ticket ticket;
		int fd = pin(self->a.map, PAGE, write[i]);

		ASSERT_LE(0, fd);
		EXPECT_EQ(-EBUSY, trim(&self->a, 0));
		MUST(!write_to("/proc/sys/vm/drop_caches", "2"));
		EXPECT_EQ(SLOT, stats_get(&self->a).allocated_bytes);
		ticket = put(&self->a, SLOT, 5);
		EXPECT_TRUE(pin_matches(fd, PAGE, 5));
		ASSERT_EQ(0, release(&self->r, &ticket));
		MUST(!close(fd));
	}
	EXPECT_EQ(0, trim(&self->a, 0));
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
}

TEST(a_reader_that_may_write_pins_for_writing)
{
	struct reader r;
	struct arena a;
	int fd;

	pin_module_load();
	MUST(!arena_try(&a, 1, CHUNK, 0, TENSORARENA_CREATE_WRITABLE_READERS));
	reader_attach(&a, &r);
	put(&a, CHUNK, 1);
	r.map = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd,
		     0);
	ASSERT_NE(MAP_FAILED, r.map);
	fd = pin(r.map, CHUNK, true);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, pin_fill(fd, CHUNK, 2));
	EXPECT_TRUE(pattern_matches(a.map, CHUNK, 2));
}

/* Its DMA may go on, into memory that is nobody else's. */
TEST_F(pins, of_an_evicted_reader_stay_memory)
{
	int fd = pin(self->r.map, SLOT, false);

	ASSERT_LE(0, fd);
	EXPECT_EQ(1, evict(&self->a, self->r.made.reader, 0));
	EXPECT_EQ(SIGBUS, touch_read(self->r.map));
	EXPECT_EQ(-EFAULT, pin(self->r.map, SLOT, false));
	EXPECT_TRUE(pin_matches(fd, SLOT, 1));
	EXPECT_EQ(-EBUSY, trim(&self->a, 0));
	MUST(!close(fd));
	EXPECT_EQ(0, trim(&self->a, 0));
}

TEST_HARNESS_MAIN
