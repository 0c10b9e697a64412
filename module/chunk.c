// SPDX-License-Identifier: GPL-2.0-only
/* 2 MiB of a slot; see chunk.h. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "chunk.h"

/*
 * Large folios are an opportunity: reclaim a little, fail quietly, and leave
 * the OOM killer out of it; the writer has another channel to fall back to.
 * Zeroed, since the previous owner's bytes are nobody's business.  A cpuset
 * holds for it as for all memory of users.
 */
#define TA_GFP	(GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | __GFP_COMP | \
		 __GFP_NORETRY | __GFP_NOWARN)

static unsigned long nr_folios(const struct ta_chunk *chunk)
{
	return TA_CHUNK_PAGES >> chunk->order;
}

static struct folio *get_folio(const struct ta_chunk *chunk, unsigned long i)
{
	return chunk->order == TA_CHUNK_ORDER ? chunk->one : chunk->many[i];
}

bool ta_folio_is_poisoned(struct folio *folio)
{
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++)
		if (PageHWPoison(folio_page(folio, i)))
			return true;
	return false;
}

/*
 * A folio somebody has pinned stays until the pin goes.  One of which a page has
 * failed stays for good: the allocator keeps back a page that has failed, but
 * hands on a larger folio that has one.
 */
static void free_folio(struct folio *folio)
{
	if (!ta_folio_is_poisoned(folio))
		folio_put(folio);
}

static void free_folios(struct ta_chunk *chunk, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		free_folio(get_folio(chunk, i));
	if (chunk->order != TA_CHUNK_ORDER)
		kvfree(chunk->many);
}

static int alloc_array(struct ta_chunk *chunk, unsigned int order)
{
	chunk->order = order;
	if (order == TA_CHUNK_ORDER)
		return 0;
	chunk->many = kvmalloc_array(nr_folios(chunk), sizeof(*chunk->many),
				     TA_GFP_ARRAY);
	return chunk->many ? 0 : -ENOMEM;
}

static void set_folio(struct ta_chunk *chunk, unsigned long i,
		      struct folio *folio)
{
	if (chunk->order == TA_CHUNK_ORDER)
		chunk->one = folio;
	else
		chunk->many[i] = folio;
}

int ta_chunk_alloc(struct ta_chunk *chunk, unsigned int order, int node,
		   bool strict)
{
	gfp_t gfp = TA_GFP | (strict ? __GFP_THISNODE : 0);
	unsigned long i;
	int err;

	err = alloc_array(chunk, order);
	if (err)
		return err;
	for (i = 0; i < nr_folios(chunk); i++) {
		struct page *page = alloc_pages_node(node, gfp, order);

		if (!page) {
			free_folios(chunk, i);
			return -ENOMEM;
		}
		set_folio(chunk, i, page_folio(page));
	}
	return 0;
}

int ta_chunk_from_pages(struct ta_chunk *chunk, struct page *first)
{
	unsigned long i;
	int err;

	err = alloc_array(chunk, 0);
	if (err)
		return err;
	for (i = 0; i < nr_folios(chunk); i++)
		set_folio(chunk, i, page_folio(first + i));
	return 0;
}

void ta_chunks_free(struct ta_chunk *chunk, unsigned long nr)
{
	while (nr--) {
		free_folios(&chunk[nr], nr_folios(&chunk[nr]));
		cond_resched();
	}
}

void ta_chunk_set_index(struct ta_chunk *chunk, pgoff_t pgoff)
{
	unsigned long i;

	/* Without it 6.12 and later map 512 PTEs instead of one PMD. */
	for (i = 0; i < nr_folios(chunk); i++)
		get_folio(chunk, i)->index = pgoff + (i << chunk->order);
}

struct page *ta_chunk_page(const struct ta_chunk *chunk, unsigned long nr)
{
	struct folio *folio = get_folio(chunk, nr >> chunk->order);

	return folio_page(folio, nr & (BIT(chunk->order) - 1));
}

unsigned long ta_chunk_pfn(const struct ta_chunk *chunk)
{
	return folio_pfn(get_folio(chunk, 0));
}

void ta_chunk_count_extents(const struct ta_chunk *chunk,
			    struct ta_extents *extents)
{
	u64 bytes = PAGE_SIZE << chunk->order;
	unsigned long i;

	for (i = 0; i < nr_folios(chunk); i++) {
		unsigned long pfn = folio_pfn(get_folio(chunk, i));

		if (!extents->count || pfn != extents->last) {
			extents->count++;
			extents->run = 0;
		}
		extents->last = pfn + BIT(chunk->order);
		extents->run += bytes;
		extents->largest = max(extents->largest, extents->run);
	}
	if (chunk->order == TA_CHUNK_ORDER)
		extents->huge += TA_CHUNK_BYTES;
}

int ta_chunk_drain(const struct ta_chunk *chunk, bool nowait)
{
	unsigned long i;

	for (i = 0; i < nr_folios(chunk); i++) {
		struct folio *folio = get_folio(chunk, i);

		if (nowait) {
			if (!folio_trylock(folio))
				return -EBUSY;
		} else {
			folio_lock(folio);
		}
		folio_unlock(folio);
	}
	return 0;
}

bool ta_chunk_is_pinned(const struct ta_chunk *chunk)
{
	unsigned long i;

	for (i = 0; i < nr_folios(chunk); i++)
		if (folio_maybe_dma_pinned(get_folio(chunk, i)))
			return true;
	return false;
}

bool ta_chunk_is_ours_alone(const struct ta_chunk *chunk)
{
	unsigned long i;

	/* Stricter than ta_chunk_is_pinned(), which misses pipes. */
	for (i = 0; i < nr_folios(chunk); i++)
		if (folio_ref_count(get_folio(chunk, i)) != 1)
			return false;
	return true;
}
