/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of an arena's slots: 2 MiB folios, built on demand, mapped by
 * page fault, kept for reuse.
 *
 * A slot's memory changes only while the caller holds the slot in the state
 * machine (WRITING and not yet handed out), so that there is one builder a
 * slot; ta_pages.sem orders that against faults, which may come at any time.
 */
#ifndef TA_PAGES_H
#define TA_PAGES_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/mm_types.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/types.h>

#define TA_CHUNK_BYTES	SZ_2M
#define TA_CHUNK_ORDER	(21 - PAGE_SHIFT)
#define TA_CHUNK_PAGES	BIT(TA_CHUNK_ORDER)

/**
 * struct ta_slot_pages - one slot's memory
 * @chunk: folios of TA_CHUNK_BYTES in file order
 * @nr: how many
 */
struct ta_slot_pages {
	struct folio **chunk;
	unsigned long nr;
};

/**
 * struct ta_pages - an arena's memory
 * @sem: protects @slot's contents
 * @slot: one for each slot
 * @nr: how many
 * @slot_chunks: chunks in a stride
 * @node: NUMA node to allocate from
 * @strict: from there or not at all
 * @bytes: memory held
 */
struct ta_pages {
	struct rw_semaphore sem;
	struct ta_slot_pages *slot;
	u32 nr;
	unsigned long slot_chunks;
	int node;
	bool strict;
	atomic64_t bytes;
};

int ta_pages_init(struct ta_pages *pages, u32 nr, u64 stride, int node,
		  bool strict);
void ta_pages_destroy(struct ta_pages *pages);

/*
 * Gives a held slot memory for @bytes, rounded up to a power of two of
 * chunks.  Returns 0 and the new capacity, or -ENOMEM or -EINTR with the slot
 * as it was.  May sleep; reclaims but never invokes the OOM killer.
 */
int ta_pages_grow(struct ta_pages *pages, u32 slot, u64 bytes, u64 *capacity);

/**
 * ta_pages_trim - free the memory of a held slot
 * @zap: unmaps a range of the arena's files
 * @ctx: passed to @zap
 *
 * Returns 0, or -EBUSY with the slot as it was when somebody else (a device,
 * a pipe, io_uring) refers to any of its pages.
 */
int ta_pages_trim(struct ta_pages *pages, u32 slot,
		  void (*zap)(void *ctx, u64 offset, u64 bytes), void *ctx);

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
