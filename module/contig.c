// SPDX-License-Identifier: GPL-2.0-only
/*
 * One physical extent of many chunks.
 *
 * The buddy allocator stops at 4 MiB.  Beyond that memory has to be made free
 * where it is: walk the node's zones a chunk at a time and ask for each that
 * continues the run; the first that cannot be had starts the run anew behind
 * itself, so every chunk is asked for at most once.
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

/* What the writer may be kept waiting for runs that came to nothing. */
#define TA_CONTIG_JIFFIES	(HZ / 4)

/* Whether it is worth asking: the cheap part of what the kernel checks. */
static bool looks_movable(const struct zone *zone, unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < TA_CHUNK_PAGES; i++) {
		struct page *page = pfn_to_online_page(pfn + i);

		if (!page || page_zone(page) != zone || PageReserved(page) ||
		    PageSlab(page) || PageHuge(page))
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

static void free_run(struct ta_chunk *chunk, unsigned long nr)
{
	while (nr--)
		ta_chunk_free(&chunk[nr]);
}

static int search_zone(struct zone *zone, struct ta_chunk *chunk,
		       unsigned long nr, unsigned long *wasted)
{
	unsigned long pfn = ALIGN(zone->zone_start_pfn, TA_CHUNK_PAGES);
	unsigned long end = zone_end_pfn(zone);
	unsigned long began = jiffies;
	unsigned long run = 0;

	while (pfn + (nr - run) * TA_CHUNK_PAGES <= end) {
		bool taken = looks_movable(zone, pfn) &&
			     !take_chunk(&chunk[run], pfn);

		pfn += TA_CHUNK_PAGES;
		if (taken && ++run == nr)
			return 0;
		if (fatal_signal_pending(current)) {
			free_run(chunk, run);
			return -EINTR;
		}
		if (!taken) {
			free_run(chunk, run);
			run = 0;
			*wasted += jiffies - began;
			began = jiffies;
			if (*wasted > TA_CONTIG_JIFFIES)
				return -ENOMEM;
		}
		cond_resched();
	}
	free_run(chunk, run);
	return -ENOMEM;
}

int ta_contig_alloc(struct ta_chunk *chunk, unsigned long nr, int node)
{
	unsigned long wasted = 0;
	int type, err = -ENOMEM;
	unsigned long i;

	/* Not ZONE_MOVABLE: what is pinned there cannot stay. */
	for (type = ZONE_NORMAL; type >= 0 && err == -ENOMEM; type--) {
		struct zone *zone = &NODE_DATA(node)->node_zones[type];

		if (populated_zone(zone) && wasted <= TA_CONTIG_JIFFIES)
			err = search_zone(zone, chunk, nr, &wasted);
	}
	for (i = 0; i < nr && !err; i++)
		zero_chunk(ta_chunk_page(&chunk[i], 0));
	return err;
}
