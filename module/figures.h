/* SPDX-License-Identifier: GPL-2.0-only */
/* What there is to say about an arena, and about all of them together. */
#ifndef TA_FIGURES_H
#define TA_FIGURES_H

#include <linux/types.h>

#include <uapi/tensorarena.h>

struct ta_arena;

/**
 * struct ta_figures - state and counters of one arena, or the sum of all
 * @st: as the writer's STATS, without reader rows; of all arenas: the sums, and
 *	the oldest publication of them all
 * @extents: physically contiguous stretches of memory that the slots are of
 * @oldest_reader: reader that the oldest publication waits for, 0: none, or
 *	one that has not attached yet
 * @oldest_reader_pid: its process as the caller's pid namespace sees it
 * @reclaimed_bytes: memory ever taken back because the machine was short of it
 * @writer_waits: times the writer polled and no slot was free
 * @reader_waits: times a reader polled and nothing was there to read
 * @arenas: 1, or how many there are
 * @total_bytes: what max_total_bytes limits the sum of
 */
struct ta_figures {
	struct tensorarena_stats st;
	u64 extents;
	u64 oldest_reader;
	u64 oldest_reader_pid;
	u64 reclaimed_bytes;
	u64 writer_waits;
	u64 reader_waits;
	u64 arenas;
	u64 total_bytes;
};

/* Takes the arena's lock. */
void ta_figures_get(struct ta_arena *arena, struct ta_figures *figures);
/* What lasts beyond an arena's end: the counters. */
void ta_figures_add_counters(struct ta_figures *sum,
			     const struct ta_figures *figures);
/* Everything. */
void ta_figures_add(struct ta_figures *sum, const struct ta_figures *figures);

#endif /* TA_FIGURES_H */
