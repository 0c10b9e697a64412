// SPDX-License-Identifier: GPL-2.0-only
/* What may be mapped, how, by whom, and what a touch finds there. */
#include <kselftest_harness.h>

#include "arena.h"
#include "machine.h"
#include "proc.h"
#include "text.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* Two slots of two chunks; nothing is built yet. */
FIXTURE(mapping)
{
	struct arena a;
	struct reader r;
};

FIXTURE_SETUP(mapping)
{
	arena_create(&self->a, 2, 2 * CHUNK, 0);
	reader_attach(&self->a, &self->r);
}

FIXTURE_TEARDOWN(mapping)
{
	MUST(!close(self->a.fd));
	MUST(!close(self->r.fd));
}

/* Maps and says how that went: 0 or a negative error number. */
static int try_map(int fd, size_t bytes, int prot, int flags, off_t offset)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	MUST(!munmap(p, bytes));
	return 0;
}

TEST_F(mapping, private_mappings_are_refused)
{
	EXPECT_EQ(-EINVAL, try_map(self->a.fd, CHUNK, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL,
		  try_map(self->r.fd, CHUNK, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL, try_map(self->r.fd, CHUNK, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, 0));
}

TEST_F(mapping, a_reader_cannot_get_at_write_access)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char byte = 1;

	put(&self->a, 100, 1);
	EXPECT_EQ(-EACCES, try_map(self->r.fd, CHUNK, PROT_READ | PROT_WRITE,
				   MAP_SHARED, 0));
	EXPECT_EQ(-EACCES,
		  try_map(self->r.fd, CHUNK, PROT_WRITE, MAP_SHARED, 0));
	reader_map(&self->r);
	EXPECT_EQ(-1, mprotect(self->r.map, CHUNK, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, touch_write(self->r.map));
	/* Nor by the debugger's way, which may write to read-only text. */
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &byte, 1, (off_t)(uintptr_t)self->r.map));
	EXPECT_TRUE(pattern_matches(self->r.map, 100, 1));
}

TEST_F(mapping, the_writer_writes)
{
	arena_map(&self->a);
	EXPECT_EQ(SIGBUS, touch_write(self->a.map));
	put(&self->a, 100, 1);
	EXPECT_EQ(0, touch_write(self->a.map));
	EXPECT_EQ(0, mprotect(self->a.map, CHUNK, PROT_READ));
	EXPECT_EQ(0, mprotect(self->a.map, CHUNK, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, touch_write(self->a.map));
}

TEST(readers_write_where_the_arena_allows_it)
{
	struct reader r;
	struct arena a;

	MUST(!arena_try(&a, 1, CHUNK, 0, TENSORARENA_CREATE_WRITABLE_READERS));
	reader_attach(&a, &r);
	put(&a, 100, 1);
	r.map = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd,
		     0);
	ASSERT_NE(MAP_FAILED, r.map);
	r.map[50] = 0x5a;
	EXPECT_EQ(0x5a, a.map[50]);
}

TEST_F(mapping, nothing_can_be_executed)
{
	/* As on any file system that is mounted noexec. */
	EXPECT_EQ(-EPERM, try_map(self->r.fd, CHUNK, PROT_READ | PROT_EXEC,
				  MAP_SHARED, 0));
	EXPECT_EQ(-EPERM, try_map(self->a.fd, CHUNK, PROT_READ | PROT_EXEC,
				  MAP_SHARED, 0));
	reader_map(&self->r);
	EXPECT_EQ(-1, mprotect(self->r.map, CHUNK, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	arena_map(&self->a);
	EXPECT_EQ(-1, mprotect(self->a.map, CHUNK, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(mapping, any_page_aligned_range_of_the_arena_and_no_other)
{
	const off_t end = (off_t)self->a.bytes;
	const long page = sysconf(_SC_PAGESIZE);
	const int fd[] = { self->a.fd, self->r.fd };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		EXPECT_EQ(0, try_map(fd[i], page, PROT_READ, MAP_SHARED, 0));
		EXPECT_EQ(0, try_map(fd[i], page, PROT_READ, MAP_SHARED,
				     end - page));
		EXPECT_EQ(0, try_map(fd[i], 3 * page, PROT_READ, MAP_SHARED,
				     CHUNK - page));
		EXPECT_EQ(0, try_map(fd[i], end, PROT_READ, MAP_SHARED, 0));

		EXPECT_EQ(-EINVAL,
			  try_map(fd[i], end + 1, PROT_READ, MAP_SHARED, 0));
		EXPECT_EQ(-EINVAL,
			  try_map(fd[i], page, PROT_READ, MAP_SHARED, end));
		EXPECT_EQ(-EINVAL, try_map(fd[i], 2 * page, PROT_READ,
					   MAP_SHARED, end - page));
		EXPECT_EQ(-EINVAL, try_map(fd[i], page, PROT_READ, MAP_SHARED,
					   end + (off_t)CHUNK));
		EXPECT_EQ(-EINVAL, try_map(fd[i], page, PROT_READ, MAP_SHARED,
					   (off_t)info_get().ctl_offset));
		EXPECT_EQ(-EINVAL,
			  try_map(fd[i], page, PROT_READ, MAP_SHARED, 1));
		EXPECT_EQ(-EINVAL, try_map(fd[i], 0, PROT_READ, MAP_SHARED, 0));
		/* The core may call this one an overflow. */
		EXPECT_NE(0, try_map(fd[i], 2 * page, PROT_READ, MAP_SHARED,
				     INT64_MAX / page * page));
	}
}

/* How a child that touches the mapping ends: 0, or the signal it got. */
static int touched_by_a_child(const uint8_t *p)
{
	struct child c;

	c.pid = fork();
	MUST(c.pid >= 0);
	if (!c.pid)
		_exit(touch_read(p));
	return WEXITSTATUS(child_wait(&c));
}

TEST_F(mapping, a_forked_child_does_not_inherit_it)
{
	put(&self->a, 100, 1);
	reader_map(&self->r);
	EXPECT_EQ(0, touch_read(self->r.map));
	EXPECT_EQ(SIGSEGV, touched_by_a_child(self->r.map));
	EXPECT_EQ(SIGSEGV, touched_by_a_child(self->a.map));
}

TEST_F(mapping, a_child_that_was_made_to_inherit_it_gets_SIGBUS)
{
	put(&self->a, 100, 1);
	reader_map(&self->r);
	EXPECT_EQ(0, touch_read(self->r.map));
	if (madvise(self->r.map, self->r.bytes, MADV_DOFORK)) {
		/* Newer kernels refuse at once, which is as good. */
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(SIGSEGV, touched_by_a_child(self->r.map));
		return;
	}
	EXPECT_EQ(SIGBUS, touched_by_a_child(self->r.map));
	EXPECT_EQ(0, touch_read(self->r.map));
}

TEST_F(mapping, it_moves_but_does_not_grow)
{
	uint8_t *moved;

	put(&self->a, 100, 1);
	reader_map(&self->r);
	EXPECT_EQ(MAP_FAILED, mremap(self->r.map, self->r.bytes,
				     self->r.bytes + CHUNK, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED,
		  mremap(self->r.map, 0, self->r.bytes, MREMAP_MAYMOVE));
	moved = mmap(NULL, self->r.bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, moved);
	ASSERT_EQ(moved, mremap(self->r.map, self->r.bytes, self->r.bytes,
				MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	EXPECT_TRUE(pattern_matches(moved, 100, 1));
	EXPECT_EQ(SIGSEGV, touch_read(self->r.map));
}

TEST_F(mapping, holes_can_be_punched_into_it)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	put(&self->a, CHUNK, 1);
	reader_map(&self->r);
	EXPECT_EQ(0, touch_read(self->r.map));
	ASSERT_EQ(0, munmap(self->r.map + 5 * page, 3 * page));
	EXPECT_EQ(SIGSEGV, touch_read(self->r.map + 5 * page));
	EXPECT_EQ(SIGSEGV, touch_read(self->r.map + 8 * page - 1));
	EXPECT_TRUE(pattern_matches(self->r.map, 5 * page, 1));
	EXPECT_EQ(0, memcmp(self->r.map + 8 * page, self->a.map + 8 * page,
			    CHUNK - 8 * page));
	/* Dropping the page tables loses nothing, either. */
	ASSERT_EQ(0, madvise(self->r.map, 5 * page, MADV_DONTNEED));
	EXPECT_TRUE(pattern_matches(self->r.map, 5 * page, 1));
}

TEST_F(mapping, memory_that_was_not_built_is_SIGBUS)
{
	struct tensorarena_acquire acq;

	arena_map(&self->a);
	reader_map(&self->r);
	EXPECT_EQ(SIGBUS, touch_read(self->a.map));
	EXPECT_EQ(SIGBUS, touch_read(self->r.map));
	EXPECT_EQ(-1, madvise(self->r.map, CHUNK, MADV_POPULATE_READ));
	EXPECT_EQ(EFAULT, errno);

	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	EXPECT_EQ(0, touch_write(self->a.map + acq.offset));
	EXPECT_EQ(0, touch_read(self->r.map + acq.offset + CHUNK - 1));
	EXPECT_EQ(SIGBUS, touch_read(self->r.map + acq.offset + CHUNK));
	EXPECT_EQ(0,
		  madvise(self->r.map + acq.offset, CHUNK, MADV_POPULATE_READ));
	/* The other slot has none. */
	EXPECT_EQ(SIGBUS, touch_read(self->r.map + self->r.made.stride));
}

TEST_F(mapping, slots_lie_a_stride_apart)
{
	struct tensorarena_acquire first, second;
	struct arena odd;

	ASSERT_EQ(0, acquire(&self->a, 1, &first));
	ASSERT_EQ(0, acquire(&self->a, 1, &second));
	EXPECT_EQ(2 * CHUNK, self->a.made.stride);
	EXPECT_EQ(first.slot * self->a.made.stride, first.offset);
	EXPECT_EQ(second.slot * self->a.made.stride, second.offset);
	EXPECT_NE(first.slot, second.slot);

	arena_create(&odd, 1, CHUNK + 1, 0);
	EXPECT_EQ(2 * CHUNK, odd.made.stride);
	MUST(!close(odd.fd));
	arena_create(&odd, 1, 1, 0);
	EXPECT_EQ(CHUNK, odd.made.stride);
}

TEST_F(mapping, it_is_aligned_and_made_of_huge_pages)
{
	size_t i;

	if (!maps_huge_pages())
		SKIP(return, "this kernel maps single pages");
	MUST(put(&self->a, 2 * CHUNK, 1).slot !=
	     put(&self->a, 2 * CHUNK, 2).slot);
	reader_map(&self->r);
	EXPECT_EQ(0, (uintptr_t)self->a.map % CHUNK);
	EXPECT_EQ(0, (uintptr_t)self->r.map % CHUNK);
	for (i = 0; i < self->r.bytes; i += CHUNK)
		EXPECT_EQ(0, touch_read(self->r.map + i));
	EXPECT_EQ(self->a.bytes, smaps_bytes(self->a.map, "FilePmdMapped"));
	EXPECT_EQ(self->r.bytes, smaps_bytes(self->r.map, "FilePmdMapped"));
	EXPECT_EQ(self->r.bytes, smaps_bytes(self->r.map, "Rss"));
}

TEST_F(mapping, it_is_not_for_core_dumps_or_children_or_to_be_expanded)
{
	char flags[256];

	reader_map(&self->r);
	ASSERT_TRUE(smaps_line(self->r.map, "VmFlags", flags, sizeof(flags)));
	EXPECT_NE(NULL, strstr(flags, " dd"));
	EXPECT_NE(NULL, strstr(flags, " dc"));
	EXPECT_NE(NULL, strstr(flags, " de"));
	EXPECT_EQ(NULL, strstr(flags, " mw"));
	EXPECT_EQ(NULL, strstr(flags, " io"));
	EXPECT_EQ(NULL, strstr(flags, " pf"));
}

TEST_F(mapping, the_writer_and_its_readers_see_the_same_bytes)
{
	struct reader second;

	reader_attach(&self->a, &second);
	reader_map(&second);
	reader_map(&self->r);
	put(&self->a, 2 * CHUNK, 7);
	EXPECT_TRUE(pattern_matches(self->r.map, 2 * CHUNK, 7));
	EXPECT_TRUE(pattern_matches(second.map, 2 * CHUNK, 7));
	self->a.map[CHUNK + 5] ^= 0xff;
	EXPECT_EQ(self->a.map[CHUNK + 5], self->r.map[CHUNK + 5]);
	EXPECT_EQ(self->a.map[CHUNK + 5], second.map[CHUNK + 5]);
}

TEST_HARNESS_MAIN
