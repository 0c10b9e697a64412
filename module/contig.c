// SPDX-License-Identifier: GPL-2.0-only
/*
 * One physical extent of many chunks.
 *
 * The buddy allocator stops at 4 MiB.  Beyond that memory has to be made free
 * where it is: walk the node's zones for a run of chunks that look movable, and
 * take them one by one; where one cannot be had after all, the walk goes on
 * behind it.
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

/*
 * Whether it is worth asking: all of the chunk is free, or on a list that
 * reclaim and compaction work on.  The kernel checks again, and in earnest.
 */
static bool looks_movable(const struct zone *zone, unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < TA_CHUNK_PAGES; i++) {
		struct page *page = pfn_to_online_page(pfn + i);

		if (!page || page_zone(page) != zone || PageReserved(page))
			return false;
		if (page_count(page) && !PageLRU(page))
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

/* How many of the run's chunks could be had; less than @nr are not kept. */
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

static int search_zone(struct zone *zone, struct ta_chunk *chunk,
		       unsigned long nr, unsigned long deadline)
{
	unsigned long first = ALIGN(zone->zone_start_pfn, TA_CHUNK_PAGES);
	unsigned long end = zone_end_pfn(zone);
	unsigned long run = 0;

	/* @first and @run: chunks from there on that look movable. */
	while (first + nr * TA_CHUNK_PAGES <= end) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, deadline))
			break;
		cond_resched();
		if (!looks_movable(zone, first + run * TA_CHUNK_PAGES)) {
			first += (run + 1) * TA_CHUNK_PAGES;
			run = 0;
		} else if (++run == nr) {
			run = take_run(chunk, nr, first);
			if (run == nr)
				return 0;
			first += (run + 1) * TA_CHUNK_PAGES;
			run = 0;
		}
	}
	return -ENOMEM;
}

int ta_contig_alloc(struct ta_chunk *chunk, unsigned long nr, int node)
{
	unsigned long deadline = jiffies + TA_CONTIG_JIFFIES;
	int type, err = -ENOMEM;
	unsigned long i;

	/* Not ZONE_MOVABLE: what is pinned there cannot stay. */
	for (type = ZONE_NORMAL; type >= 0 && err == -ENOMEM; type--) {
		struct zone *zone = &NODE_DATA(node)->node_zones[type];

		if (populated_zone(zone))
			err = search_zone(zone, chunk, nr, deadline);
	}
	for (i = 0; i < nr && !err; i++)
		zero_chunk(ta_chunk_page(&chunk[i], 0));
	return err;
}
