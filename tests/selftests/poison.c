// SPDX-License-Identifier: GPL-2.0-only
/* Memory that fails: nobody is given it, neither here nor elsewhere. */
#include <kselftest_harness.h>

#include "machine.h"
#include "proc.h"

/* As /proc/kpageflags has them. */
#define KPF_COMPOUND ((1ULL << 15) | (1ULL << 16))
#define KPF_HWPOISON (1ULL << 19)

static uint64_t flags_of(uint64_t frame)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags;

	MUST(fd >= 0);
	MUST(pread(fd, &flags, sizeof(flags), (off_t)(frame * 8)) == 8);
	MUST(!close(fd));
	return flags;
}

/*
 * Has a page fail, and returns whether the kernel can; that it does not know
 * what to do about it is no matter.
 */
static bool poison(void *page)
{
	if (!madvise(page, PAGE, MADV_HWPOISON))
		return true;
	MUST(errno == EBUSY || errno == EIO || errno == EHWPOISON ||
	     errno == EINVAL);
	return errno != EINVAL;
}

FIXTURE(poison)
{
	struct arena a;
	struct reader r;
	uint64_t frame[CHUNK / PAGE];
	size_t bad;
	bool possible;
};

FIXTURE_SETUP(poison)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	size_t i;

	arena_create(&self->a, 1, CHUNK, 0);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	ticket = put(&self->a, CHUNK, 1);
	MUST(!borrow(&self->r, &ticket, &b));
	for (i = 0; i < CHUNK; i += PAGE)
		MUST(!touch_read(self->r.map + i));
	frames_of(self->r.map, self->frame, CHUNK / PAGE);
	self->bad = 77;
	self->possible = poison(self->r.map + self->bad * PAGE);
	MUST(!self->possible ||
	     flags_of(self->frame[self->bad]) & KPF_HWPOISON);
	MUST(!release(&self->r, &ticket));
}

FIXTURE_TEARDOWN(poison)
{
}

TEST_F(poison, is_not_mapped)
{
	struct reader other;

	if (!self->possible)
		SKIP(return, "memory cannot be made to fail here");
	reader_attach(&self->a, &other);
	reader_map(&other);
	EXPECT_EQ(SIGBUS, touch_read(other.map + self->bad * PAGE));
	/* What is mapped with it at once, neither. */
	EXPECT_EQ(SIGBUS, touch_read(other.map));
}

TEST_F(poison, is_not_given_back)
{
	uint64_t flags;
	size_t i;

	if (!self->possible)
		SKIP(return, "memory cannot be made to fail here");
	EXPECT_EQ(0, trim(&self->a, 0));
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	/* All of it is what it was, and no free memory. */
	for (i = 0; i < CHUNK / PAGE; i++) {
		flags = flags_of(self->frame[i]);
		ASSERT_NE(0, flags & KPF_COMPOUND);
	}
	/* The slot is built of other memory. */
	put(&self->a, CHUNK, 2);
	EXPECT_EQ(0, touch_read(self->r.map + self->bad * PAGE));
	EXPECT_TRUE(pattern_matches(self->r.map, CHUNK, 2));
}

TEST_HARNESS_MAIN
