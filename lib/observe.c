// SPDX-License-Identifier: MIT
/* An arena's figures for who has its handle. */
#include <errno.h>
#include <string.h>

#include "embedded.h"
#include "handle.h"
#include "stats.h"

static void take_rows(struct ta_reader_stats *rows, uint32_t nr,
		      const struct ta_wire_observe *seen)
{
	if (nr > seen->nr_rows)
		nr = seen->nr_rows;
	/* The same structure: see stats.c. */
	if (rows && nr)
		memcpy(rows, seen->rows, nr * sizeof(*rows));
}

int ta_observe(const char *handle, struct ta_observation *observation,
	       struct ta_reader_stats *rows, uint32_t nr)
{
	struct ta_wire_observe seen;
	struct ta_handle h;
	int err;

	memset(observation, 0, sizeof(*observation));
	err = ta_handle_parse(handle, &h);
	if (err)
		return err;
	observation->engine = h.engine;
	observation->arena = h.arena;
	if (h.engine == TA_ENGINE_DEVICE)
		return -EOPNOTSUPP;
	err = ta_embedded_observe(&h, &seen);
	if (err)
		return err;
	observation->slot_bytes = seen.slot_bytes;
	observation->stride = seen.stride;
	observation->writer_pid = seen.writer_pid;
	ta_stats_take(&observation->stats, &seen.st);
	take_rows(rows, nr, &seen);
	return 0;
}
