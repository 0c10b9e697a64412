// SPDX-License-Identifier: MIT
/*
 * From rounds to the figures that sum them up.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "broadcast.h"
#include "median.h"

/*
 * The median of one figure over the warm rounds.  The first round builds the
 * slot and maps it; a lone one must do.  @at: where the figure is in a round.
 */
static double warm_median(const struct broadcast *b, size_t at, double *value)
{
	uint32_t first = b->rounds > 1 ? 1 : 0;
	uint32_t i;

	for (i = first; i < b->rounds; i++)
		memcpy(&value[i - first], (const char *)&b->round[i] + at,
		       sizeof(*value));
	return median(value, b->rounds - first);
}

#define WARM_MEDIAN(b, figure, value)                                          \
	warm_median(b, offsetof(struct broadcast_round, figure), value)

double broadcast_worker_gbps(const struct broadcast *b, const struct worker *w)
{
	uint32_t first = w->verified > 1 ? 1 : 0;

	if (!w->verified)
		return 0;
	return b->in.nbytes / 1e6 /
	       median(w->h2d_ms + first, w->verified - first);
}

static int gpu_figures(const struct broadcast *b, struct broadcast_figures *f)
{
	double *gbps = calloc(b->crew.nr, sizeof(*gbps));
	uint32_t i;

	if (!gbps)
		return -1;
	f->pin_ms = 0;
	for (i = 0; i < b->crew.nr; i++) {
		gbps[i] = broadcast_worker_gbps(b, &b->crew.worker[i]);
		if (b->crew.worker[i].pin_ms > f->pin_ms)
			f->pin_ms = b->crew.worker[i].pin_ms;
	}
	f->h2d_gbps = median(gbps, b->crew.nr);
	free(gbps);
	return 0;
}

int broadcast_figures(const struct broadcast *b, struct broadcast_figures *f)
{
	double *value = calloc(b->rounds, sizeof(*value));
	uint32_t i;

	if (!value)
		return -1;
	f->put_ms = WARM_MEDIAN(b, put_ms, value);
	f->all_verified_ms = WARM_MEDIAN(b, all_verified_ms, value);
	f->bare.memcpy_ms = WARM_MEDIAN(b, bare.memcpy_ms, value);
	f->bare.checksum_ms = WARM_MEDIAN(b, bare.checksum_ms, value);
	f->bare.passes_ms = WARM_MEDIAN(b, bare.passes_ms, value);
	f->slot_free_ms = WARM_MEDIAN(b, slot_free_ms, value);
	free(value);

	f->bound_ms = f->bare.memcpy_ms + f->bare.passes_ms;
	f->over_bound = f->all_verified_ms / f->bound_ms - 1;
	f->declined = 0;
	for (i = 0; i < b->rounds; i++)
		f->declined += b->round[i].declined;
	f->verified = 0;
	for (i = 0; i < b->crew.nr; i++)
		f->verified += b->crew.worker[i].verified == b->rounds;
	return b->options->gpu ? gpu_figures(b, f) : 0;
}

bool broadcast_all_verified(const struct broadcast *b)
{
	uint32_t i;

	for (i = 0; i < b->rounds; i++) {
		if (b->round[i].verified != b->options->readers)
			return false;
	}
	return true;
}
