/* SPDX-License-Identifier: MIT */
/*
 * What is measured, in which order, and what came of it.
 *
 * All groups are there from the beginning to the end.  A round is one broadcast
 * of each, in an order drawn anew, so that whatever the machine does in between
 * meets all of them alike; ratios are of medians over the same rounds.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "group.h"

#define SIZES_MAX 16
#define COUNTS_MAX 16
#define ENTRIES_MAX 16
#define GROUPS_MAX 128

/**
 * struct entry - a contender, and the numbers of readers it is to have
 */
struct entry {
	const struct contender *contender;
	uint32_t count[COUNTS_MAX];
	uint32_t counts;
};

/**
 * struct plan - what is to be done
 * @entry: who takes part; the list ends where there is no contender
 * @size: sizes of tensors
 * @count: numbers of readers, for whoever has none of its own
 * @modes: bit mask of enum mode
 * @rounds: most that are measured of each size and mode
 * @warmup: rounds before, that are not
 * @budget_s: stop measuring when it has taken this long, but not before three
 *	rounds of each; 0: no limit
 * @seed: of the bytes and the order
 */
struct plan {
	struct entry entry[ENTRIES_MAX];
	size_t size[SIZES_MAX];
	uint32_t sizes;
	uint32_t count[COUNTS_MAX];
	uint32_t counts;
	uint32_t modes;
	uint32_t rounds;
	uint32_t warmup;
	uint32_t budget_s;
	uint64_t seed;
};

/**
 * struct series - what came of one group, size and mode
 * @about: what was in fact used for it
 * @outcome: one a round
 * @rounds: how many
 */
struct series {
	const struct group *group;
	size_t nbytes;
	enum mode mode;
	char about[ADDRESS_MAX];
	struct outcome *outcome;
	uint32_t rounds;
};

/**
 * struct result - all of it
 * @absent: of each entry of the plan, why it took no part; empty: it did
 * @checked: broadcasts whose bytes were compared, all of them right
 */
struct result {
	struct reason absent[ENTRIES_MAX];
	struct group *group;
	uint32_t groups;
	struct series *series;
	uint32_t nr_series;
	uint32_t checked;
	double seconds;
};

void plan_run(const struct plan *plan, const struct setting *setting,
	      struct result *result);

/* The next number of a row of random ones. */
uint64_t plan_random(uint64_t *state);

#endif /* BENCH_PLAN_H */
