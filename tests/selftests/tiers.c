// SPDX-License-Identifier: GPL-2.0-only
/*
 * What slots are made of, on a machine with memory to spare.  The figures in
 * sysfs are checked against the page tables.
 */
#include <kselftest_harness.h>

#include "machine.h"

#define SLOT (32 * MIB)
#define CONTIGUOUS TENSORARENA_CREATE_CONTIGUOUS
#define FALLBACK_SMALL TENSORARENA_CREATE_FALLBACK_SMALL

/* One slot, acquired; the figures of it agree with what is mapped. */
FIXTURE(tier)
{
	struct arena a;
	struct tensorarena_acquire acq;
};

FIXTURE_VARIANT(tier)
{
	uint32_t flags;
	const char *name;
	uint64_t nbytes; /* to acquire; every tier then has all of SLOT */
};

FIXTURE_VARIANT_ADD(tier, huge){
	.flags = 0,
	.name = "huge",
	.nbytes = SLOT,
};

FIXTURE_VARIANT_ADD(tier, fallback_small){
	.flags = FALLBACK_SMALL,
	.name = "fallback_small",
	.nbytes = SLOT,
};

FIXTURE_VARIANT_ADD(tier, contiguous){
	.flags = CONTIGUOUS,
	.name = "contiguous",
	.nbytes = 1,
};

FIXTURE_SETUP(tier)
{
	MUST(!arena_try(&self->a, 2, SLOT, 0, variant->flags));
	arena_map(&self->a);
	MUST(!acquire_patiently(&self->a, variant->nbytes, &self->acq));
}

FIXTURE_TEARDOWN(tier)
{
}

TEST_F(tier, is_reported)
{
	const struct arena *a = &self->a;

	EXPECT_TRUE(arena_text_is(a, "tier", variant->name));
	EXPECT_EQ(SLOT, stats_get(a).allocated_bytes);
	/* The slot that was never acquired has nothing. */
	EXPECT_EQ(0, slot_figure(a, "slot_extents", 1));
	EXPECT_EQ(0, slot_figure(a, "slot_largest_extent_bytes", 1));
	EXPECT_EQ(0, slot_figure(a, "slot_huge_bytes", 1));
}

TEST_F(tier, is_what_the_page_tables_say)
{
	const struct arena *a = &self->a;
	const struct extents e = extents_of(a->map, SLOT);
	const uint64_t huge = slot_figure(a, "slot_huge_bytes", 0);

	EXPECT_EQ(e.count, slot_figure(a, "slot_extents", 0));
	EXPECT_EQ(e.largest, slot_figure(a, "slot_largest_extent_bytes", 0));
	EXPECT_EQ(maps_huge_pages() ? huge : 0,
		  smaps_bytes(a->map, "FilePmdMapped"));
	if (variant->flags & CONTIGUOUS) {
		EXPECT_EQ(1, e.count);
	} else {
		EXPECT_EQ(SLOT, huge);
	}
	kernel_fact("tier", "%s: %" PRIu64 " extent%s, %" PRIu64 " %% huge",
		    variant->name, e.count, e.count == 1 ? "" : "s",
		    huge * 100 / SLOT);
}

TEST_F(tier, is_zeroed_and_delivers)
{
	static const uint8_t zero[PAGE];
	struct tensorarena_borrow b;
	struct reader r;
	size_t i;

	for (i = 0; i < SLOT; i += PAGE)
		ASSERT_EQ(0, memcmp(self->a.map + i, zero, PAGE));
	MUST(!abort_slot(&self->a, self->acq.slot, self->acq.generation));
	reader_attach(&self->a, &r);
	reader_map(&r);
	put(&self->a, SLOT, 5);
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_TRUE(delivered(&r, &b));
}

TEST_F(tier, is_given_back_by_trim)
{
	const uint64_t before = free_in_peace();

	MUST(!abort_slot(&self->a, self->acq.slot, self->acq.generation));
	EXPECT_EQ(0, trim(&self->a, 0));
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(0, slot_figure(&self->a, "slot_extents", 0));
	EXPECT_TRUE(free_again(before + SLOT, 0));
}

TEST(growing_keeps_what_is_there)
{
	struct tensorarena_acquire acq;
	struct arena a;

	arena_create(&a, 1, SLOT, 0);
	arena_map(&a);
	MUST(!acquire(&a, CHUNK, &acq));
	pattern_fill(a.map, CHUNK, 3);
	MUST(!abort_slot(&a, acq.slot, acq.generation));
	MUST(!acquire(&a, SLOT, &acq));
	EXPECT_TRUE(pattern_matches(a.map, CHUNK, 3));
	EXPECT_EQ(extents_of(a.map, SLOT).count,
		  slot_figure(&a, "slot_extents", 0));
	EXPECT_EQ(SLOT, slot_figure(&a, "slot_huge_bytes", 0));
}

TEST(tiers_exclude_each_other)
{
	struct arena a;

	EXPECT_EQ(-EINVAL,
		  arena_try(&a, 1, SLOT, 0, CONTIGUOUS | FALLBACK_SMALL));
	EXPECT_EQ(0, info_get().arenas);
}

/* The device was opened while it was privileged, as a launcher would do. */
static void create_as_nobody(int sock, void *arg)
{
	struct tensorarena_create args = { .slot_bytes = SLOT, .slots = 1 };
	int control = control_open();

	(void)arg;
	args.node = TENSORARENA_NODE_LOCAL;
	MUST(!setresuid(65534, 65534, 65534));
	args.flags = CONTIGUOUS;
	tell(sock, request(control, TENSORARENA_CREATE, &args));
	args.flags = FALLBACK_SMALL;
	tell(sock, request(control, TENSORARENA_CREATE, &args));
	wait_for_the_end(sock);
}

/* It is charged to nobody, so it is not for everybody. */
TEST(contiguous_memory_takes_a_privilege)
{
	struct child c;

	ASSERT_EQ(0, getuid());
	c = child_start(create_as_nobody, NULL, -1);
	EXPECT_EQ(-EPERM, must_hear(c.sock));
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
}

TEST(the_features_say_what_there_is)
{
	const uint64_t features = info_get().features;

	EXPECT_NE(0, features & TENSORARENA_FEATURE_HUGE);
	EXPECT_NE(0, features & TENSORARENA_FEATURE_CONTIGUOUS);
}

TEST_HARNESS_MAIN
