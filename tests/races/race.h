/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two things at the same time, many times over.
 *
 * Each side runs on a processor of its own, if there are enough; both start at
 * the same moment, but for a delay that a seed decides, so that over the rounds
 * every part of one meets every part of the other.
 */
#ifndef TA_RACES_RACE_H
#define TA_RACES_RACE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/selftests/machine.h"

#define RACE_SIDES 4

/**
 * struct race - what runs against what
 * @nr: sides
 * @side: called in each round, in a thread of its own
 * @arg: for all of them
 */
struct race {
	unsigned int nr;
	void (*side[RACE_SIDES])(void *arg);
	void *arg;
	atomic_uint arrived;
	uint32_t seed;
};

struct race_side {
	struct race *race;
	unsigned int nr;
	pthread_t thread;
};

/* TENSORARENA_LENGTH times as many as make check has time for. */
static inline unsigned int race_rounds(unsigned int rounds)
{
	const char *text = getenv("TENSORARENA_LENGTH");

	return text && *text ? rounds * (unsigned int)atoi(text) : rounds;
}

/* Up to a few thousand turns of a loop, which is some microseconds. */
static inline void race_delay(uint32_t seed, unsigned int nr)
{
	uint32_t x = (seed * 2654435761U) ^ (nr * 0x9e3779b9U);
	volatile uint32_t turns = (x >> 7) % (1U << (x % 13));

	while (turns)
		turns--;
}

static inline void *race_run_side(void *arg)
{
	struct race_side *s = arg;
	struct race *race = s->race;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(s->nr % (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	atomic_fetch_add(&race->arrived, 1);
	while (atomic_load(&race->arrived) < race->nr)
		sched_yield();
	race_delay(race->seed, s->nr);
	race->side[s->nr](race->arg);
	return NULL;
}

/* One round; returns when all sides have. */
static inline void race_run(struct race *race, uint32_t seed)
{
	struct race_side side[RACE_SIDES];
	unsigned int i;

	race->seed = seed;
	atomic_store(&race->arrived, 0);
	for (i = 0; i < race->nr; i++) {
		side[i].race = race;
		side[i].nr = i;
		MUST(!pthread_create(&side[i].thread, NULL, race_run_side,
				     &side[i]));
	}
	for (i = 0; i < race->nr; i++)
		MUST(!pthread_join(side[i].thread, NULL));
}

/* Until @condition holds; false when it never does. */
#define RACE_AWAIT(condition)                                                  \
	({                                                                     \
		const double end_ = now_ms() + HANG_MS;                        \
                                                                               \
		while (!(condition) && now_ms() < end_)                        \
			usleep(100);                                           \
		(condition);                                                   \
	})

static inline void race_fact(const char *name, uint64_t rounds)
{
	printf("# reliability: race, %s\t%" PRIu64 "\trounds\t0\n", name,
	       rounds);
}

#endif /* TA_RACES_RACE_H */
