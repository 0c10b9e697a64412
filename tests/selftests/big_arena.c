// SPDX-License-Identifier: GPL-2.0-only
/* Large arenas cost what is in them, by the kernel's count of free memory. */
#include <kselftest_harness.h>

#include "machine.h"

#define PARAMETER "/sys/module/tensorarena/parameters/max_total_bytes"
#define LIMIT_S 120 /* against hanging */

FIXTURE(arena)
{
	struct arena a;
	struct reader r;
	uint64_t before;
};

FIXTURE_VARIANT(arena)
{
	uint32_t slots;
	uint64_t slot_bytes;
};

/* On a machine of 2 GiB. */
FIXTURE_VARIANT_ADD(arena, of_1_GiB){
	.slots = 4,
	.slot_bytes = 256 * MIB,
};

FIXTURE_VARIANT_ADD(arena, of_2_GiB){
	.slots = 8,
	.slot_bytes = 256 * MIB,
};

FIXTURE_SETUP(arena)
{
	MUST(!write_figure(PARAMETER, 4096 * MIB));
	self->before = free_in_peace();
	arena_create(&self->a, variant->slots, variant->slot_bytes, 0);
	arena_map(&self->a);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
}

FIXTURE_TEARDOWN(arena)
{
	MUST(!write_figure(PARAMETER, 0));
}

TEST_F_TIMEOUT(arena, costs_nothing_until_it_is_used, LIMIT_S)
{
	EXPECT_EQ(variant->slots * variant->slot_bytes, self->a.bytes);
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_F_TIMEOUT(arena, costs_what_is_put_into_each_slot, LIMIT_S)
{
	const uint64_t slot_cost = 16 * MIB;
	uint32_t i;

	for (i = 1; i <= variant->slots; i++) {
		put(&self->a, 9000000, i);
		EXPECT_EQ(i * slot_cost, stats_get(&self->a).allocated_bytes);
		EXPECT_TRUE(free_again(self->before, i * slot_cost));
	}
	for (i = 1; i <= variant->slots; i++) {
		struct tensorarena_borrow b;

		ASSERT_EQ(0, next(&self->r, &b));
		EXPECT_TRUE(delivered(&self->r, &b));
		ASSERT_EQ(0, release(&self->r, &b.ticket));
	}
	EXPECT_EQ(0, trim(&self->a, 0));
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_F_TIMEOUT(arena, is_gone_with_its_last_file, LIMIT_S)
{
	put(&self->a, 9000000, 1);
	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!close(self->a.fd));
	MUST(!munmap(self->r.map, self->r.bytes));
	MUST(!close(self->r.fd));
	EXPECT_EQ(0, info_get().arenas);
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_HARNESS_MAIN
