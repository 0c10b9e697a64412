/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A chunk: 2 MiB of a slot, in one folio where one can be had, which the
 * processor maps with one entry, or in smaller folios of one size.
 */
#ifndef TA_CHUNK_H
#define TA_CHUNK_H

#include <linux/bits.h>
#include <linux/mm_types.h>
#include <linux/sizes.h>
#include <linux/types.h>

#define TA_CHUNK_BYTES	SZ_2M
#define TA_CHUNK_ORDER	(21 - PAGE_SHIFT)
#define TA_CHUNK_PAGES	BIT(TA_CHUNK_ORDER)

/*
 * For the bookkeeping of a slot that is being built.  In a memory cgroup that
 * is full to the last page an array, too, must fail rather than kill;
 * kvmalloc() knows no NORETRY.
 */
#define TA_GFP_ARRAY	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | \
			 __GFP_NOWARN)

/**
 * struct ta_chunk - 2 MiB of memory
 * @order: of its folios, at most TA_CHUNK_ORDER
 * @one: the folio, when @order is TA_CHUNK_ORDER
 * @many: otherwise its TA_CHUNK_PAGES >> @order folios
 */
struct ta_chunk {
	unsigned int order;
	union {
		struct folio *one;
		struct folio **many;
	};
};

/**
 * struct ta_extents - how contiguous memory is
 * @count: physically contiguous stretches
 * @largest: bytes of the largest
 * @huge: bytes in folios of TA_CHUNK_BYTES
 * @last: frame after the last one counted
 * @run: bytes of the stretch that ends there
 */
struct ta_extents {
	unsigned long count;
	u64 largest;
	u64 huge;
	unsigned long last;
	u64 run;
};

/*
 * Allocates from @node, with reclaim kept light and the OOM killer left out of
 * it.  @order is what to try; 0 or -ENOMEM.
 */
int ta_chunk_alloc(struct ta_chunk *chunk, unsigned int order, int node,
		   bool strict);
/* Makes a chunk of a naturally aligned run of single pages, taking them over. */
int ta_chunk_from_pages(struct ta_chunk *chunk, struct page *first);
void ta_chunks_free(struct ta_chunk *chunk, unsigned long nr);

/* Says where in the file the chunk is. */
void ta_chunk_set_index(struct ta_chunk *chunk, pgoff_t pgoff);
/* The page at @nr of the chunk. */
struct page *ta_chunk_page(const struct ta_chunk *chunk, unsigned long nr);
unsigned long ta_chunk_pfn(const struct ta_chunk *chunk);
void ta_chunk_count_extents(const struct ta_chunk *chunk,
			    struct ta_extents *extents);

/*
 * Waits for faults that have locked a folio of the chunk to be mapped.
 * @nowait: fails with -EBUSY instead.
 */
int ta_chunk_drain(const struct ta_chunk *chunk, bool nowait);
/*
 * Whether any page has failed.  The folio-wide flag does not tell: it is not set
 * for memory that is on no LRU list.
 */
bool ta_folio_is_poisoned(struct folio *folio);
/* Whether a device has its memory pinned; may be wrong for single pages. */
bool ta_chunk_is_pinned(const struct ta_chunk *chunk);
/* Whether nobody else refers to its memory. */
bool ta_chunk_is_ours_alone(const struct ta_chunk *chunk);

#endif /* TA_CHUNK_H */
