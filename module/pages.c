// SPDX-License-Identifier: GPL-2.0-only
/* The memory of an arena's slots; see pages.h. */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pages.h"

/*
 * Large folios are an opportunity: reclaim a little, fail quietly, and leave
 * the OOM killer out of it; the writer has another channel to fall back to.
 * Zeroed, since the previous owner's bytes are nobody's business.
 */
#define TA_GFP	(GFP_KERNEL | __GFP_ACCOUNT | __GFP_ZERO | __GFP_COMP | \
		 __GFP_NORETRY | __GFP_NOWARN)

int ta_pages_init(struct ta_pages *pages, u32 nr, u64 stride, int node,
		  bool strict)
{
	pages->slot = kcalloc(nr, sizeof(*pages->slot), GFP_KERNEL_ACCOUNT);
	if (!pages->slot)
		return -ENOMEM;
	init_rwsem(&pages->sem);
	pages->nr = nr;
	pages->slot_chunks = stride / TA_CHUNK_BYTES;
	pages->node = node;
	pages->strict = strict;
	return 0;
}

static void free_chunks(struct folio **chunk, unsigned long from,
			unsigned long to)
{
	unsigned long i;

	/* A folio somebody has pinned stays until the pin goes. */
	for (i = from; i < to; i++)
		folio_put(chunk[i]);
}

void ta_pages_destroy(struct ta_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		struct ta_slot_pages *sp = &pages->slot[i];

		free_chunks(sp->chunk, 0, sp->nr);
		kvfree(sp->chunk);
	}
	kfree(pages->slot);
}

static struct folio *alloc_chunk(const struct ta_pages *pages, pgoff_t pgoff)
{
	gfp_t gfp = TA_GFP | (pages->strict ? __GFP_THISNODE : 0);
	struct folio *folio;
	struct page *page;

	page = alloc_pages_node(pages->node, gfp, TA_CHUNK_ORDER);
	if (!page)
		return NULL;
	folio = page_folio(page);
	/* Without it 6.12 and later map 512 PTEs instead of one PMD. */
	folio->index = pgoff;
	return folio;
}

static pgoff_t slot_pgoff(const struct ta_pages *pages, u32 slot)
{
	return slot * pages->slot_chunks * TA_CHUNK_PAGES;
}

/* Fills @chunk[from..to) or leaves nothing allocated. */
static int alloc_chunks(const struct ta_pages *pages, u32 slot,
			struct folio **chunk, unsigned long from,
			unsigned long to)
{
	pgoff_t first = slot_pgoff(pages, slot);
	unsigned long i;
	int err;

	for (i = from; i < to; i++) {
		err = -EINTR;
		if (fatal_signal_pending(current))
			goto roll_back;
		err = -ENOMEM;
		chunk[i] = alloc_chunk(pages, first + i * TA_CHUNK_PAGES);
		if (!chunk[i])
			goto roll_back;
		cond_resched();
	}
	return 0;

roll_back:
	/*
	 * Before returning: a half-built slot that stays charged makes the
	 * memcg kill the process at its next allocation.
	 */
	free_chunks(chunk, from, i);
	return err;
}

/* Swaps a slot's chunk array for another; returns the old array. */
static struct folio **replace_chunks(struct ta_pages *pages, u32 slot,
				     struct folio **chunk, unsigned long nr)
{
	struct ta_slot_pages *sp = &pages->slot[slot];
	struct folio **old;

	down_write(&pages->sem);
	old = sp->chunk;
	sp->chunk = chunk;
	sp->nr = nr;
	up_write(&pages->sem);
	return old;
}

int ta_pages_grow(struct ta_pages *pages, u32 slot, u64 bytes, u64 *capacity)
{
	/* We hold the slot, so only we change these. */
	unsigned long have = pages->slot[slot].nr;
	unsigned long want = DIV_ROUND_UP_ULL(bytes, TA_CHUNK_BYTES);
	struct folio **chunk;
	int err;

	if (want)
		want = min(roundup_pow_of_two(want), pages->slot_chunks);
	if (want > have) {
		chunk = kvmalloc_array(want, sizeof(*chunk),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!chunk)
			return -ENOMEM;
		err = alloc_chunks(pages, slot, chunk, have, want);
		if (err) {
			kvfree(chunk);
			return err;
		}
		if (have)
			memcpy(chunk, pages->slot[slot].chunk,
			       have * sizeof(*chunk));
		kvfree(replace_chunks(pages, slot, chunk, want));
		atomic64_add((want - have) * TA_CHUNK_BYTES, &pages->bytes);
		have = want;
	}
	*capacity = (u64)have * TA_CHUNK_BYTES;
	return 0;
}

/* Waits for faults that have locked one of these folios to be mapped. */
static void drain_chunks(struct folio **chunk, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		folio_lock(chunk[i]);
		folio_unlock(chunk[i]);
	}
}

static bool chunks_are_ours_alone(struct folio **chunk, unsigned long nr)
{
	unsigned long i;

	/* Stricter than folio_maybe_dma_pinned(), which misses pipes. */
	for (i = 0; i < nr; i++)
		if (folio_ref_count(chunk[i]) != 1)
			return false;
	return true;
}

int ta_pages_trim(struct ta_pages *pages, u32 slot,
		  void (*zap)(void *ctx, u64 offset, u64 bytes), void *ctx)
{
	unsigned long nr = pages->slot[slot].nr;
	struct folio **chunk;

	/* From here on faults find nothing; those under way are waited for. */
	chunk = replace_chunks(pages, slot, NULL, 0);
	drain_chunks(chunk, nr);
	zap(ctx, (u64)slot_pgoff(pages, slot) << PAGE_SHIFT,
	    (u64)nr * TA_CHUNK_BYTES);
	if (!chunks_are_ours_alone(chunk, nr)) {
		replace_chunks(pages, slot, chunk, nr);
		return -EBUSY;
	}
	free_chunks(chunk, 0, nr);
	kvfree(chunk);
	atomic64_sub((u64)nr * TA_CHUNK_BYTES, &pages->bytes);
	return 0;
}

void ta_pages_drain(struct ta_pages *pages)
{
	u32 i;

	/* Faults lock their folio under the read side: see them all begun. */
	down_write(&pages->sem);
	downgrade_write(&pages->sem);
	for (i = 0; i < pages->nr; i++)
		drain_chunks(pages->slot[i].chunk, pages->slot[i].nr);
	up_read(&pages->sem);
}

struct page *ta_pages_lock_page(struct ta_pages *pages, pgoff_t pgoff)
{
	unsigned long chunk = pgoff / TA_CHUNK_PAGES;
	struct ta_slot_pages *sp;
	struct folio *folio;

	sp = &pages->slot[chunk / pages->slot_chunks];
	chunk %= pages->slot_chunks;
	if (chunk >= sp->nr)
		return NULL;
	folio = sp->chunk[chunk];
	folio_get(folio);
	folio_lock(folio);
	return folio_page(folio, pgoff % TA_CHUNK_PAGES);
}
