// SPDX-License-Identifier: GPL-2.0-only
/*
 * One physical extent of many chunks.
 *
 * The buddy allocator stops at 4 MiB.  Beyond that memory has to be made free
 * where it is: walk the node's frames for a run of chunks that look movable,
 * and take them one by one; where one cannot be had after all, the walk goes on
 * behind it.  The next search begins where this one ended, so that asking again
 * is not asking for the same.
 */
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "contig.h"

/* How long to look; what is then found is still taken and zeroed. */
#define TA_CONTIG_JIFFIES	(HZ / 4)

/* Not of another node, nor ZONE_MOVABLE: what is pinned there cannot stay. */
static bool is_ours_to_take(struct page *page, int node)
{
	struct zone *zone = page_zone(page);

	return zone_to_nid(zone) == node && zone_idx(zone) <= ZONE_NORMAL &&
	       !PageReserved(page);
}

/*
 * Whether it is worth asking: all of the chunk is free, or on a list that
 * reclaim and compaction work on.  The kernel checks again, and in earnest.
 */
static bool looks_movable(unsigned long pfn, int node)
{
	unsigned long i;

	for (i = 0; i < TA_CHUNK_PAGES; i++) {
		struct page *page = pfn_to_online_page(pfn + i);

		if (!page || !is_ours_to_take(page, node))
			return false;
		if (page_count(page) &&
		    (!PageLRU(page) ||
		     folio_maybe_dma_pinned(page_folio(page))))
			return false;
	}
	return true;
}

static void zero_chunk(struct page *first)
{
	unsigned long i;

	for (i = 0; i < TA_CHUNK_PAGES; i++) {
		clear_highpage(first + i);
		if (!(i % 64))
			cond_resched();
	}
}

static int take_chunk(struct ta_chunk *chunk, unsigned long pfn)
{
	struct page *first = pfn_to_page(pfn);
	int err;

	err = ta_alloc_contig(pfn, TA_CHUNK_PAGES);
	if (err)
		return err;
	if (PageHead(first)) {
		chunk->order = TA_CHUNK_ORDER;
		chunk->one = page_folio(first);
		return 0;
	}
	err = ta_chunk_from_pages(chunk, first);
	if (err)
		free_contig_range(pfn, TA_CHUNK_PAGES);
	return err;
}

/*
 * How many of the run's chunks could be had; less than @nr are not kept.
 * Kernels without huge pages for mmap() have page blocks of two chunks, of
 * which only the first is to be had.
 */
static unsigned long take_run(struct ta_chunk *chunk, unsigned long nr,
			      unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		if (fatal_signal_pending(current) ||
		    take_chunk(&chunk[i], pfn + i * TA_CHUNK_PAGES)) {
			ta_chunks_free(chunk, i);
			break;
		}
		cond_resched();
	}
	return i;
}

/* Where to begin: low memory is wanted by devices that can use no other. */
static unsigned long first_choice(int node)
{
	struct zone *normal = &NODE_DATA(node)->node_zones[ZONE_NORMAL];

	return populated_zone(normal) ? normal->zone_start_pfn :
					node_start_pfn(node);
}

static int search(struct ta_chunk *chunk, unsigned long nr, int node,
		  unsigned long *next)
{
	unsigned long start = ALIGN(node_start_pfn(node), TA_CHUNK_PAGES);
	unsigned long end = ALIGN_DOWN(node_end_pfn(node), TA_CHUNK_PAGES);
	unsigned long looks = (end - start) / TA_CHUNK_PAGES;
	unsigned long deadline = jiffies + TA_CONTIG_JIFFIES;
	unsigned long run = 0;

	/* @next and @run: the chunks from there on look movable. */
	for (; looks && !time_after(jiffies, deadline); looks--) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		if (*next < start || *next + nr * TA_CHUNK_PAGES > end) {
			*next = start;
			run = 0;
		}
		if (looks_movable(*next + run * TA_CHUNK_PAGES, node)) {
			if (++run < nr)
				continue;
			run = take_run(chunk, nr, *next);
		}
		*next += min(run + 1, nr) * TA_CHUNK_PAGES;
		if (run == nr)
			return 0;
		run = 0;
	}
	return -ENOMEM;
}

int ta_contig_alloc(struct ta_chunk *chunk, unsigned long nr, int node,
		    unsigned long *hint)
{
	/* Of many builders at once, any one's hint will do. */
	unsigned long next = READ_ONCE(*hint);
	unsigned long i;
	int err;

	if (!next)
		next = ALIGN(first_choice(node), TA_CHUNK_PAGES);
	err = search(chunk, nr, node, &next);
	WRITE_ONCE(*hint, next);
	for (i = 0; i < nr && !err; i++)
		zero_chunk(ta_chunk_page(&chunk[i], 0));
	return err;
}
