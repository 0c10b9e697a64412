/* SPDX-License-Identifier: MIT */
/*
 * What the campaigns share: how long they go on, randomness that can be had
 * again, and the figures that docs/reliability.md is made of.
 */
#ifndef TA_CAMPAIGN_H
#define TA_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct campaign - how much to do
 * @rounds: rounds, or operations; what a campaign counts is its own matter
 * @only: do this round and no other, ~0: all
 * @seed: with the number of a round decides everything that is random in it
 */
struct campaign {
	uint64_t rounds;
	uint64_t only;
	uint64_t seed;
};

/*
 * From the environment: TENSORARENA_LENGTH times @rounds are done, or
 * TENSORARENA_ROUNDS; TENSORARENA_SEED.  Then --rounds N, --seed S and
 * --only ROUND.  Prints the seed.  Ends the program when it is called wrongly.
 */
struct campaign campaign_start(int argc, char **argv, uint64_t rounds);

/*
 * The latest now_seconds() at which another round may begin:
 * TENSORARENA_SECONDS, from the environment, after this call, or never.
 */
double campaign_end(void);

/* A number for a purpose: the same for the same three, else unrelated. */
uint64_t campaign_random(const struct campaign *c, uint64_t round,
			 uint64_t purpose);

/* A stream of numbers from a beginning. */
uint64_t random_next(uint64_t *state);
/* Below @n. */
uint64_t random_below(uint64_t *state, uint64_t n);
/* In [0, 1). */
double random_fraction(uint64_t number);

double now_seconds(void);

/*
 * One line of the table: @count @unit of campaign @name, @failed of which
 * failed.  tests/campaign/collect looks for it.
 */
void campaign_fact(const char *name, uint64_t count, const char *unit,
		   uint64_t failed);

#endif /* TA_CAMPAIGN_H */
