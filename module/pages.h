/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of an arena's slots: chunks, built on demand, mapped by page
 * fault, kept for reuse.
 *
 * A slot's memory changes only while the caller holds the slot in the state
 * machine (WRITING and not yet handed out), so that there is one builder a
 * slot; ta_pages.sem orders that against faults, which may come at any time.
 */
#ifndef TA_PAGES_H
#define TA_PAGES_H

#include <linux/atomic.h>
#include <linux/mm_types.h>
#include <linux/rwsem.h>
#include <linux/types.h>

#include <uapi/tensorarena.h>

#include "chunk.h"

/**
 * enum ta_tier - what a slot is built of
 * @TA_TIER_HUGE: 2 MiB folios or nothing
 * @TA_TIER_FALLBACK_SMALL: smaller folios from the first chunk on for which
 *	there is no 2 MiB folio
 * @TA_TIER_CONTIGUOUS: one physical extent; a slot is always built whole
 */
enum ta_tier {
	TA_TIER_HUGE,
	TA_TIER_FALLBACK_SMALL,
	TA_TIER_CONTIGUOUS,
};

/**
 * struct ta_slot_pages - one slot's memory
 * @chunk: in file order, physically adjacent where the allocator allowed it
 * @nr: how many
 * @extents: how contiguous they are
 */
struct ta_slot_pages {
	struct ta_chunk *chunk;
	unsigned long nr;
	struct ta_extents extents;
};

/**
 * struct ta_pages - an arena's memory
 * @sem: protects @slot's contents
 * @slot: one for each slot
 * @nr: how many
 * @slot_chunks: chunks in a stride
 * @tier: what to build slots of
 * @node: NUMA node to allocate from
 * @strict: from there or not at all
 * @contig_hint: where to look for the next extent
 * @bytes: memory held; a figure, which orders nothing
 * @extents: of all slots; likewise
 */
struct ta_pages {
	struct rw_semaphore sem;
	struct ta_slot_pages *slot;
	u32 nr;
	unsigned long slot_chunks;
	enum ta_tier tier;
	int node;
	bool strict;
	unsigned long contig_hint;
	atomic64_t bytes;
	atomic64_t extents;
};

/* @pages: zeroed but for @tier, @node and @strict. */
int ta_pages_init(struct ta_pages *pages, u32 nr, u64 stride);
void ta_pages_destroy(struct ta_pages *pages);

/*
 * Gives a held slot memory for @bytes, rounded up to a power of two of
 * chunks.  Returns 0 and the new capacity, or -ENOMEM or -EINTR with the slot
 * as it was.  May sleep; reclaims but never invokes the OOM killer, and gives
 * up at the first folio of the smallest size it may use that is not to be had.
 */
int ta_pages_grow(struct ta_pages *pages, u32 slot, u64 bytes, u64 *capacity);

/**
 * struct ta_zap - whose mappings of a slot to take away
 * @nr: how many
 * @inode: of the arena's live files, referenced
 */
struct ta_zap {
	u32 nr;
	struct inode *inode[TENSORARENA_MAX_READERS + 1];
};

/**
 * ta_pages_trim - free the memory of a held slot
 * @pages: the arena's memory
 * @slot: which slot
 * @zap: the files in which the slot may be mapped
 * @nowait: for reclaim, which may be running inside a fault of ours: wait for
 *	no lock that a fault can hold, and return -EBUSY where one is taken
 *
 * Returns 0, or -EBUSY with the slot as it was when somebody else (a device,
 * a pipe, io_uring) refers to any of its pages.
 */
int ta_pages_trim(struct ta_pages *pages, u32 slot, const struct ta_zap *zap,
		  bool nowait);

/* Bytes that trimming an idle slot would free; waits for no lock. */
u64 ta_pages_reclaimable(struct ta_pages *pages, u32 slot);

/* How contiguous a slot's memory is. */
void ta_pages_extents(struct ta_pages *pages, u32 slot,
		      struct ta_extents *extents);

/*
 * Waits until every fault that began before the call has entered its page
 * table, so that a zap that follows misses nothing.
 */
void ta_pages_drain(struct ta_pages *pages);

/*
 * The page at @pgoff of the file, referenced and locked, or NULL where no
 * memory has been built.  The caller holds ta_pages.sem for reading, and may
 * drop it once this has returned.
 */
struct page *ta_pages_lock_page(struct ta_pages *pages, pgoff_t pgoff);

#endif /* TA_PAGES_H */
