// SPDX-License-Identifier: MIT
/* See plan.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan.h"
#include "roudi.h"

/* Of a size and mode, whatever the budget: fewer have no median to speak of. */
#define ROUNDS_MIN 3
/* Chunks of the daemon's pool for each group: one held, one being written. */
#define CHUNKS 2

uint64_t plan_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + now.tv_nsec / 1e9;
}

/* ---- who takes part ---- */

/* The daemon's pool is for all groups that use it. */
static bool present(const struct setting *setting, const struct entry *entry,
		    struct reason *why)
{
	const struct contender *c = entry->contender;
	const char *text = c->absent ? c->absent() : NULL;

	why->text[0] = '\0';
	if (c->gpu_only && !setting->gpu)
		reason_set(why, "there is no GPU");
	else if (text)
		reason_set(why, "%s", text);
	else if (c == &contender_iceoryx)
		roudi_start(setting->dir, setting->max_bytes,
			    entry->counts * CHUNKS, why);
	return !why->text[0];
}

static void add_group(struct result *result, const struct contender *c,
		      uint32_t readers)
{
	struct group *group = &result->group[result->groups];

	if (result->groups == GROUPS_MAX)
		die("too many groups", 0);
	memset(group, 0, sizeof(*group));
	group->contender = c;
	group->number = result->groups++;
	group->readers = readers;
}

static void start_groups(const struct plan *plan, const struct setting *setting,
			 struct result *result)
{
	const struct entry *entry;
	uint32_t i, j;

	for (i = 0; plan->entry[i].contender; i++) {
		entry = &plan->entry[i];
		if (!present(setting, entry, &result->absent[i]))
			continue;
		if (!entry->contender->open_reader &&
		    !entry->contender->program)
			add_group(result, entry->contender, 0);
		else
			for (j = 0; j < entry->counts; j++)
				add_group(result, entry->contender,
					  entry->count[j]);
	}
	for (i = 0; i < result->groups; i++)
		group_start(&result->group[i], setting);
}

/* ---- rounds ---- */

static bool takes_part(const struct group *group, enum mode mode)
{
	if (group->contender->gpu_only)
		return mode == MODE_GPU;
	return !group->contender->message || mode == MODE_POINTER;
}

/* Every group once with every byte checked, which also warms it up. */
static void check(const struct setting *setting, struct result *result,
		  size_t nbytes, uint64_t *random)
{
	const struct contender *c;
	struct outcome outcome;
	struct group *group;
	uint32_t i;

	for (i = 0; i < result->groups; i++) {
		group = &result->group[i];
		c = group->contender;
		if (takes_part(group, MODE_POINTER))
			group_round(group, c->floor ? MODE_POINTER : MODE_CHECK,
				    nbytes, plan_random(random), &outcome);
		if (setting->gpu && group->readers &&
		    takes_part(group, MODE_GPU))
			group_round(group, c->floor ? MODE_GPU : MODE_CHECK_GPU,
				    nbytes, plan_random(random), &outcome);
		if (!c->floor)
			result->checked += setting->gpu ? 2 : 1;
	}
}

static void add_series(struct result *result, const struct group *group,
		       size_t nbytes, enum mode mode, uint32_t rounds)
{
	struct series *s;

	result->series =
		realloc(result->series, (result->nr_series + 1) * sizeof(*s));
	if (!result->series)
		die("series", ENOMEM);
	s = &result->series[result->nr_series++];
	*s = (struct series){
		.group = group,
		.nbytes = nbytes,
		.mode = mode,
		.outcome = calloc(rounds, sizeof(*s->outcome)),
	};
	if (!s->outcome)
		die("series", ENOMEM);
}

static void shuffle(uint32_t *order, uint32_t nr, uint64_t *random)
{
	uint32_t i, j, swap;

	for (i = nr; i > 1; i--) {
		j = (uint32_t)(plan_random(random) % i);
		swap = order[i - 1];
		order[i - 1] = order[j];
		order[j] = swap;
	}
}

/* One broadcast of each group, recorded in @series unless it is NULL. */
static void round_of_all(struct result *result, struct series *series,
			 size_t nbytes, enum mode mode, uint64_t *random)
{
	uint32_t order[GROUPS_MAX], i, nr = 0;
	struct series *of[GROUPS_MAX];
	struct outcome unused;
	struct group *group;

	for (i = 0; i < result->groups; i++) {
		if (!takes_part(&result->group[i], mode))
			continue;
		of[i] = series ? series++ : NULL;
		order[nr++] = i;
	}
	shuffle(order, nr, random);
	for (i = 0; i < nr; i++) {
		struct series *s = of[order[i]];

		group = &result->group[order[i]];
		group_round(group, mode, nbytes, plan_random(random),
			    s ? &s->outcome[s->rounds++] : &unused);
		if (s)
			memcpy(s->about, group->about, sizeof(s->about));
	}
}

static void measure(const struct plan *plan, struct result *result,
		    size_t nbytes, enum mode mode, double share_s,
		    uint64_t *random)
{
	double until = now_s() + share_s;
	uint32_t first = result->nr_series, i;

	for (i = 0; i < plan->warmup; i++)
		round_of_all(result, NULL, nbytes, mode, random);
	for (i = 0; i < result->groups; i++)
		if (takes_part(&result->group[i], mode))
			add_series(result, &result->group[i], nbytes, mode,
				   plan->rounds);
	for (i = 0; i < plan->rounds; i++) {
		if (plan->budget_s && i >= ROUNDS_MIN && now_s() > until)
			break;
		round_of_all(result, &result->series[first], nbytes, mode,
			     random);
	}
}

static void measure_all(const struct plan *plan, const struct setting *setting,
			struct result *result)
{
	uint64_t random = plan->seed;
	size_t all = 0;
	enum mode mode;
	double share;
	uint32_t i;

	for (i = 0; i < plan->sizes; i++)
		all += plan->size[i];
	for (i = 0; i < plan->sizes; i++) {
		share = (double)plan->budget_s * plan->size[i] / all /
			__builtin_popcount(plan->modes);
		check(setting, result, plan->size[i], &random);
		for (mode = 0; mode < MODES; mode++)
			if (plan->modes >> mode & 1)
				measure(plan, result, plan->size[i], mode,
					share, &random);
	}
}

void plan_run(const struct plan *plan, const struct setting *setting,
	      struct result *result)
{
	double start = now_s();
	uint32_t i;

	memset(result, 0, sizeof(*result));
	result->group = calloc(GROUPS_MAX, sizeof(*result->group));
	if (!result->group)
		die("groups", ENOMEM);
	start_groups(plan, setting, result);
	measure_all(plan, setting, result);
	for (i = 0; i < result->groups; i++)
		group_end(&result->group[i]);
	roudi_stop();
	result->seconds = now_s() - start;
}
