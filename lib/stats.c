// SPDX-License-Identifier: MIT
/* Figures on their way from an engine to the caller; see stats.h. */
#include <stddef.h>

#include "stats.h"

#define SAME_FIELD(ours, theirs, field)                                        \
	(offsetof(struct ours, field) == offsetof(struct theirs, field) &&     \
	 sizeof(((struct ours *)0)->field) ==                                  \
		 sizeof(((struct theirs *)0)->field))

_Static_assert(
	sizeof(struct ta_reader_stats) ==
			sizeof(struct tensorarena_reader_stats) &&
		SAME_FIELD(ta_reader_stats, tensorarena_reader_stats, reader) &&
		SAME_FIELD(ta_reader_stats, tensorarena_reader_stats,
			   oldest_ns) &&
		SAME_FIELD(ta_reader_stats, tensorarena_reader_stats, seat) &&
		SAME_FIELD(ta_reader_stats, tensorarena_reader_stats, pid) &&
		SAME_FIELD(ta_reader_stats, tensorarena_reader_stats, pending),
	"the engine fills in the caller's rows directly");

void ta_stats_take(struct ta_stats *stats, const struct tensorarena_stats *st)
{
	*stats = (struct ta_stats){
		.slots = st->slots,
		.free = st->free,
		.writing = st->writing,
		.published = st->published,
		.readers = st->nr_readers,
		.allocated_bytes = st->allocated_bytes,
		.oldest_ns = st->oldest_ns,
		.puts = st->puts,
		.put_bytes = st->put_bytes,
		.unaddressed = st->unaddressed,
		.aborted = st->aborted,
		.released = st->released,
		.declined_no_slot = st->declined_no_slot,
		.declined_oversize = st->declined_oversize,
		.declined_no_memory = st->declined_no_memory,
		.attached = st->attached,
		.detached = st->detached,
		.evicted = st->evicted,
		.reclaimed_dead_readers = st->reclaimed_dead_readers,
		.retracted = st->retracted,
	};
}
