// SPDX-License-Identifier: MIT
/* An end's dealings with CUDA: life, errors, figures; see cuda.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cuda.h"

void ta_cuda_init(struct ta_cuda *cuda, uint8_t *base, uint64_t stride,
		  uint32_t slots, bool read_only)
{
	memset(cuda, 0, sizeof(*cuda));
	cuda->base = base;
	cuda->stride = stride;
	cuda->slots = slots;
	cuda->read_only = read_only;
	cuda->stats.pin_budget = UINT64_MAX;
	LIST_INIT(&cuda->pool);
}

void ta_cuda_destroy(struct ta_cuda *cuda, bool forked)
{
	uint32_t i;

	for (i = 0; i < cuda->slots && !forked; i++)
		ta_cuda_unpin(cuda, i);
	ta_cuda_drop_events(cuda, &cuda->pool, forked);
	/* A child's loader may have been copied in the middle of its work. */
	if (!forked)
		ta_cuda_unbind(&cuda->api);
}

int ta_cuda_failed(struct ta_cuda *cuda, const char *call, int err)
{
	const char *name = NULL;

	cuda->api.error_name(err, &name);
	cuda->stats.errors++;
	cuda->stats.error = err;
	snprintf(cuda->stats.error_text, sizeof(cuda->stats.error_text),
		 "%s: %s (%d)", call, name ? name : "unknown error", err);
	return -EREMOTEIO;
}

void ta_cuda_report(const struct ta_cuda *cuda, struct ta_cuda_stats *stats,
		    struct ta_cuda_slot *rows, uint32_t nr)
{
	int version = 0;
	uint32_t i;

	*stats = cuda->stats;
	stats->slots = cuda->slots;
	if (cuda->api.driver && !cuda->api.version(&version))
		stats->cuda_version = (uint32_t)version;
	for (i = 0; i < cuda->slots && rows && i < nr; i++)
		rows[i] = (struct ta_cuda_slot){
			.state = cuda->pin[i].state,
			.bytes = cuda->pin[i].bytes,
			.ns = cuda->pin[i].ns,
		};
}
