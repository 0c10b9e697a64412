/* SPDX-License-Identifier: MIT */
/* A range being read: what load_read.c and load_part.c share. */
#ifndef TA_LOAD_READ_H
#define TA_LOAD_READ_H

#include "load.h"

/* The largest of the reads in flight. */
#define TA_LOAD_CHUNK (2U << 20)

enum ta_load_way {
	TA_LOAD_DIRECT,
	TA_LOAD_BOUNCED,
	TA_LOAD_CACHED,
	TA_LOAD_BUFFERED,
};

/**
 * struct ta_load_part - a part of the range that is being read
 * @from: where in the file it goes on
 * @end: where it ends; @from when there is nothing to do
 * @way: enum ta_load_way
 * @skip: BOUNCED: bytes in front that nobody asked for
 * @queued: the last read was, or is, the ring's
 * @helped: and is made by a thread of the kernel's
 * @fixed: it was into a registered slot
 */
struct ta_load_part {
	uint64_t from;
	uint64_t end;
	enum ta_load_way way;
	uint32_t skip;
	bool queued;
	bool helped;
	bool fixed;
};

/**
 * struct ta_load_io - one read, whoever makes it
 * @fd: from here
 * @to: to there
 * @nbytes: how much
 * @offset: where in the file
 * @index: which registered buffer @to is in, or -1
 */
struct ta_load_io {
	int fd;
	uint8_t *to;
	uint32_t nbytes;
	uint64_t offset;
	int index;
};

/**
 * struct ta_load_reading - a range being read
 * @range: what
 * @stats: what was done
 * @ring: by which ring
 * @by_hand: by none, or no longer
 * @registered: bytes of the slot that are registered with the ring; -1: not
 *	asked yet
 * @next: where in the file nothing has been asked for yet
 * @end: where the range ends
 * @span_end: up to where it is known whether the page cache has it
 * @cached: it has
 * @helpers: threads of the kernel's that may copy from the page cache for us
 * @helping: how many do
 * @busy: parts that are not done
 * @err: the first thing that went wrong
 * @part: those in work
 */
struct ta_load_reading {
	const struct ta_load_range *range;
	struct ta_load_stats *stats;
	struct ta_load_ring *ring;
	bool by_hand;
	int64_t registered;
	uint64_t next;
	uint64_t end;
	uint64_t span_end;
	bool cached;
	uint32_t helpers;
	uint32_t helping;
	uint32_t busy;
	int err;
	struct ta_load_part part[TA_LOAD_DEPTH];
};

/* ---- load_part.c ---- */

/* Makes @part the next part of the range. */
void ta_load_plan(struct ta_load_reading *r, struct ta_load_part *part);
/* The next read that a part needs, or -errno. */
int ta_load_prepare(struct ta_load_reading *r, struct ta_load_part *part,
		    struct ta_load_io *io);
/* How that went: bytes or -errno.  Errors go to @r, unless there is a way. */
void ta_load_finish(struct ta_load_reading *r, struct ta_load_part *part,
		    int result);

#endif /* TA_LOAD_READ_H */
