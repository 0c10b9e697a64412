// SPDX-License-Identifier: MIT
/*
 * From rounds to the figures that sum them up.
 */
#include <stdlib.h>

#include "broadcast.h"
#include "median.h"

int broadcast_figures(const struct broadcast *b, struct broadcast_figures *f)
{
	/* The first round builds the slot and maps it; a lone one must do. */
	uint32_t first = b->rounds > 1 ? 1 : 0;
	uint32_t n = b->rounds - first;
	double *value = calloc(n, sizeof(*value));
	uint32_t i;

	if (!value)
		return -1;
	for (i = 0; i < n; i++)
		value[i] = b->round[first + i].put_ms;
	f->put_ms = median(value, n);
	for (i = 0; i < n; i++)
		value[i] = b->round[first + i].all_verified_ms;
	f->all_verified_ms = median(value, n);
	free(value);

	f->bound_ms = b->baseline.memcpy_ms + b->baseline.passes_ms;
	f->over_bound = f->all_verified_ms / f->bound_ms - 1;
	f->declined = 0;
	for (i = 0; i < b->rounds; i++)
		f->declined += b->round[i].declined;
	f->verified = 0;
	for (i = 0; i < b->crew.nr; i++)
		f->verified += b->crew.worker[i].verified == b->rounds;
	return 0;
}
