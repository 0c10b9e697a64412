// SPDX-License-Identifier: MIT
/* The table of plans; docs/performance.md has the measurements behind it. */
#include "copy_plan.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Ascending. */
static const struct ta_copy_plan plans[] = {
	{ 0, 1, 0 },
	{ 2 * MIB, 2, 256 * KIB },
	{ 4 * MIB, 4, 256 * KIB },
	{ 16 * MIB, 8, 512 * KIB },
	{ 64 * MIB, 16, MIB },
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
