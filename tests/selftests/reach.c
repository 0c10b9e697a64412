// SPDX-License-Identifier: GPL-2.0-only
/*
 * How far readers and writers reach.  Some of this is allowed on purpose: an
 * arena is one community, whose readers can read all of it and have to trust
 * its writer.
 */
#include <kselftest_harness.h>

#include "arena.h"

FIXTURE(reach)
{
	struct arena a;
	struct reader r, other;
};

FIXTURE_SETUP(reach)
{
	arena_create(&self->a, 1, CHUNK, 2);
	arena_map(&self->a);
	reader_attach(&self->a, &self->r);
	reader_attach(&self->a, &self->other);
	reader_map(&self->r);
	reader_map(&self->other);
}

FIXTURE_TEARDOWN(reach)
{
	MUST(!close(self->other.fd));
	MUST(!close(self->r.fd));
	MUST(!close(self->a.fd));
}

/* One publication for the first reader only. */
static struct tensorarena_ticket put_to_first(struct arena *a,
					      const struct reader *r)
{
	struct tensorarena_acquire acq;
	struct tensorarena_ticket ticket = { .arena = a->made.arena,
					     .nbytes = 100 };
	uint64_t reader = r->made.reader;

	MUST(!acquire(a, 100, &acq));
	pattern_fill(a->map + acq.offset, 100, 1);
	MUST(publish_to(a, acq.slot, acq.generation, 100, &reader, 1) == 1);
	ticket.slot = acq.slot;
	ticket.generation = acq.generation;
	return ticket;
}

TEST_F(reach, any_reader_can_read_every_slot)
{
	struct tensorarena_ticket ticket = put_to_first(&self->a, &self->r);
	struct tensorarena_borrow b;

	/* It is not told of it, and cannot hold it, but it can look. */
	EXPECT_EQ(-EAGAIN, next(&self->other, &b));
	EXPECT_EQ(-ENXIO, borrow(&self->other, &ticket, &b));
	EXPECT_TRUE(pattern_matches(self->other.map, 100, 1));
}

TEST_F(reach, a_reader_cannot_release_for_another)
{
	struct tensorarena_ticket ticket = put_to_first(&self->a, &self->r);
	struct tensorarena_acquire acq;

	EXPECT_EQ(-ENXIO, release(&self->other, &ticket));
	EXPECT_EQ(-EAGAIN, acquire(&self->a, 1, &acq));
	EXPECT_EQ(0, release(&self->r, &ticket));
	EXPECT_EQ(-ESTALE, release(&self->r, &ticket));
	EXPECT_EQ(0, acquire(&self->a, 1, &acq));
}

TEST_F(reach, a_writer_can_change_what_it_has_published)
{
	struct tensorarena_borrow b;

	put(&self->a, 100, 1);
	ASSERT_EQ(0, next(&self->r, &b));
	EXPECT_TRUE(delivered(&self->r, &b));
	pattern_fill(self->a.map + b.offset, 100, 2);
	EXPECT_TRUE(pattern_matches(self->r.map + b.offset, 100, 2));
}

/* Neither can it take memory away that somebody still looks at. */
TEST_F(reach, a_writer_cannot_make_a_view_fault)
{
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_detach detach = { 0 };
	struct tensorarena_borrow b;

	put(&self->a, CHUNK, 1);
	ASSERT_EQ(0, next(&self->r, &b));
	EXPECT_EQ(0, request(self->a.fd, TENSORARENA_TRIM, &trim));
	EXPECT_EQ(0, trim.freed_bytes);
	EXPECT_EQ(-1, ftruncate(self->a.fd, 0));
	EXPECT_EQ(-1, fallocate(self->a.fd, 0x3, 0, CHUNK)); /* punch a hole */
	EXPECT_EQ(-1, madvise(self->a.map, CHUNK, MADV_REMOVE));
	EXPECT_EQ(0, munmap(self->a.map, self->a.bytes));
	EXPECT_TRUE(delivered(&self->r, &b));
	EXPECT_EQ(0, request(self->a.fd, TENSORARENA_DETACH, &detach));
	EXPECT_TRUE(delivered(&self->r, &b));
}

TEST_HARNESS_MAIN
