// SPDX-License-Identifier: MIT
/* See campaign.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "campaign.h"

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static void from_environment(const char *name, uint64_t *value)
{
	const char *text = getenv(name);

	if (text && *text)
		*value = number(text);
}

struct campaign campaign_start(int argc, char **argv, uint64_t rounds)
{
	struct campaign c = {
		.rounds = rounds,
		.only = ~0ULL,
		.seed = 1,
	};
	uint64_t length = 1;
	int i;

	from_environment("TENSORARENA_LENGTH", &length);
	c.rounds *= length;
	from_environment("TENSORARENA_ROUNDS", &c.rounds);
	from_environment("TENSORARENA_SEED", &c.seed);
	for (i = 1; i < argc; i += 2) {
		uint64_t *value = !strcmp(argv[i], "--rounds") ? &c.rounds :
				  !strcmp(argv[i], "--seed")   ? &c.seed :
				  !strcmp(argv[i], "--only")   ? &c.only :
								 NULL;

		if (!value || i + 1 == argc) {
			fprintf(stderr,
				"usage: %s [--rounds N] [--seed S] [--only "
				"ROUND]\n",
				argv[0]);
			exit(2);
		}
		*value = number(argv[i + 1]);
	}
	printf("# seed %" PRIu64 "\n", c.seed);
	fflush(stdout);
	return c;
}

uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

uint64_t random_below(uint64_t *state, uint64_t n)
{
	return random_next(state) % n;
}

uint64_t campaign_random(const struct campaign *c, uint64_t round,
			 uint64_t purpose)
{
	uint64_t state = c->seed;

	state = random_next(&state) ^ round;
	state = random_next(&state) ^ purpose;
	return random_next(&state);
}

double random_fraction(uint64_t number)
{
	return (double)(number >> 11) / (double)(1ULL << 53);
}

double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double campaign_end(void)
{
	uint64_t seconds = 1000000000;

	from_environment("TENSORARENA_SECONDS", &seconds);
	return now_seconds() + (double)seconds;
}

void campaign_fact(const char *name, uint64_t count, const char *unit,
		   uint64_t failed)
{
	printf("# reliability: %s\t%" PRIu64 "\t%s\t%" PRIu64 "\n", name, count,
	       unit, failed);
	fflush(stdout);
}
