// SPDX-License-Identifier: MIT
/* The table of plans; docs/performance.md has the measurements behind it. */
#include "copy_plan.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/*
 * Ascending.  What is small is likely to be in a cache, where streaming is
 * slower; more threads pay when each has half a MiB to copy, because waking
 * them takes as long as some 200 KiB.
 */
static const struct ta_copy_plan plans[] = {
	{ 0, 1, 0, false },
	{ MIB, 1, 0, true },
	{ 2 * MIB, 4, 256 * KIB, true },
	{ 4 * MIB, 8, 256 * KIB, true },
	{ 8 * MIB, 16, 512 * KIB, true },
	{ 64 * MIB, 16, MIB, true },
};

const struct ta_copy_plan *ta_copy_plan_for(size_t n)
{
	const struct ta_copy_plan *plan = plans;
	size_t i;

	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		if (n >= plans[i].from)
			plan = &plans[i];
	return plan;
}
