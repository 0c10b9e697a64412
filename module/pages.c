// SPDX-License-Identifier: GPL-2.0-only
/* The memory of an arena's slots; see pages.h. */
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "contig.h"
#include "pages.h"

/* What FALLBACK_SMALL tries after 2 MiB: 64 KiB, then single pages. */
#define TA_SMALL_ORDER	(16 - PAGE_SHIFT)

int ta_pages_init(struct ta_pages *pages, u32 nr, u64 stride)
{
	pages->slot = kcalloc(nr, sizeof(*pages->slot), GFP_KERNEL_ACCOUNT);
	if (!pages->slot)
		return -ENOMEM;
	init_rwsem(&pages->sem);
	pages->nr = nr;
	pages->slot_chunks = stride / TA_CHUNK_BYTES;
	return 0;
}

void ta_pages_destroy(struct ta_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		ta_chunks_free(pages->slot[i].chunk, pages->slot[i].nr);
		kvfree(pages->slot[i].chunk);
	}
	kfree(pages->slot);
}

/* The next size to try; false when there is none. */
static bool next_smaller(const struct ta_pages *pages, unsigned int *order)
{
	if (pages->tier != TA_TIER_FALLBACK_SMALL || !*order)
		return false;
	*order = *order > TA_SMALL_ORDER ? TA_SMALL_ORDER : 0;
	return true;
}

/* Fills @chunk[from..to) or leaves nothing allocated. */
static int alloc_chunks(const struct ta_pages *pages, struct ta_chunk *chunk,
			unsigned long from, unsigned long to)
{
	unsigned int order = TA_CHUNK_ORDER;
	unsigned long i = from;
	int err;

	while (i < to) {
		err = -EINTR;
		if (fatal_signal_pending(current))
			goto roll_back;
		err = ta_chunk_alloc(&chunk[i], order, pages->node,
				     pages->strict);
		if (!err)
			i++;
		/* A size that failed once is not worth compacting for again. */
		else if (!next_smaller(pages, &order))
			goto roll_back;
		cond_resched();
	}
	return 0;

roll_back:
	/*
	 * Before returning: a half-built slot that stays charged makes the
	 * memcg kill the process at its next allocation.
	 */
	ta_chunks_free(chunk + from, i - from);
	return err;
}

static int by_frame(const void *a, const void *b)
{
	unsigned long x = ta_chunk_pfn(a), y = ta_chunk_pfn(b);

	return x < y ? -1 : x > y;
}

/* What the allocator has, in the order that makes most neighbours. */
static int alloc_sorted(const struct ta_pages *pages, struct ta_chunk *chunk,
			unsigned long from, unsigned long to)
{
	int err;

	err = alloc_chunks(pages, chunk, from, to);
	if (err)
		return err;
	/* The allocator hands out neighbours, but in no order. */
	sort(chunk + from, to - from, sizeof(*chunk), by_frame, NULL);
	return 0;
}

static void count_extents(const struct ta_chunk *chunk, unsigned long nr,
			  struct ta_extents *extents)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		ta_chunk_count_extents(&chunk[i], extents);
}

static bool is_one_extent(const struct ta_chunk *chunk, unsigned long nr)
{
	struct ta_extents extents = {};

	count_extents(chunk, nr, &extents);
	return extents.count == 1;
}

/*
 * On a machine with memory to spare the allocator's chunks are one extent by
 * themselves; they are then charged and huge, which searched ones may not be.
 */
static int alloc_extent(struct ta_pages *pages, struct ta_chunk *chunk,
			unsigned long nr)
{
	if (!alloc_sorted(pages, chunk, 0, nr)) {
		if (is_one_extent(chunk, nr))
			return 0;
		ta_chunks_free(chunk, nr);
	}
	return ta_contig_alloc(chunk, nr, pages->node, &pages->contig_hint);
}

static int alloc_new(struct ta_pages *pages, struct ta_chunk *chunk,
		     unsigned long from, unsigned long to)
{
	if (pages->tier == TA_TIER_CONTIGUOUS)
		return alloc_extent(pages, chunk, to);
	return alloc_sorted(pages, chunk, from, to);
}

static pgoff_t slot_pgoff(const struct ta_pages *pages, u32 slot)
{
	return slot * pages->slot_chunks * TA_CHUNK_PAGES;
}

static unsigned long wanted_chunks(const struct ta_pages *pages, u64 bytes)
{
	unsigned long want = DIV_ROUND_UP_ULL(bytes, TA_CHUNK_BYTES);

	if (!want)
		return 0;
	if (pages->tier == TA_TIER_CONTIGUOUS)
		return pages->slot_chunks;
	return min(roundup_pow_of_two(want), pages->slot_chunks);
}

int ta_pages_grow(struct ta_pages *pages, u32 slot, u64 bytes, u64 *capacity)
{
	/* We hold the slot, so only we change these. */
	const struct ta_slot_pages *old = &pages->slot[slot];
	struct ta_slot_pages new = { .nr = wanted_chunks(pages, bytes) };
	unsigned long have = old->nr;
	unsigned long i;
	int err;

	*capacity = (u64)max(have, new.nr) * TA_CHUNK_BYTES;
	if (new.nr <= have)
		return 0;

	new.chunk = kvmalloc_array(new.nr, sizeof(*new.chunk), TA_GFP_ARRAY);
	if (!new.chunk)
		return -ENOMEM;
	err = alloc_new(pages, new.chunk, have, new.nr);
	if (err) {
		kvfree(new.chunk);
		return err;
	}
	for (i = have; i < new.nr; i++) {
		ta_chunk_set_index(&new.chunk[i], slot_pgoff(pages, slot) +
						  i * TA_CHUNK_PAGES);
		cond_resched();
	}
	if (have)
		memcpy(new.chunk, old->chunk, have * sizeof(*new.chunk));
	count_extents(new.chunk, new.nr, &new.extents);
	atomic64_add((new.nr - have) * TA_CHUNK_BYTES, &pages->bytes);
	atomic64_add((s64)new.extents.count - old->extents.count,
		     &pages->extents);
	down_write(&pages->sem);
	swap(pages->slot[slot], new);
	up_write(&pages->sem);
	kvfree(new.chunk);
	return 0;
}

static int drain_chunks(const struct ta_slot_pages *sp, bool nowait)
{
	unsigned long i;
	int err = 0;

	for (i = 0; i < sp->nr && !err; i++) {
		err = ta_chunk_drain(&sp->chunk[i], nowait);
		cond_resched();
	}
	return err;
}

static bool is_pinned(const struct ta_slot_pages *sp)
{
	unsigned long i;

	for (i = 0; i < sp->nr; i++) {
		if (ta_chunk_is_pinned(&sp->chunk[i]))
			return true;
		cond_resched();
	}
	return false;
}

static bool is_ours_alone(const struct ta_slot_pages *sp)
{
	unsigned long i;

	for (i = 0; i < sp->nr; i++) {
		if (!ta_chunk_is_ours_alone(&sp->chunk[i]))
			return false;
		cond_resched();
	}
	return true;
}

static void zap_slot(const struct ta_pages *pages, u32 slot,
		     const struct ta_zap *zap)
{
	loff_t offset = (loff_t)slot_pgoff(pages, slot) << PAGE_SHIFT;
	loff_t bytes = (loff_t)pages->slot[slot].nr * TA_CHUNK_BYTES;
	u32 i;

	for (i = 0; i < zap->nr; i++)
		unmap_mapping_range(zap->inode[i]->i_mapping, offset, bytes, 1);
}

int ta_pages_trim(struct ta_pages *pages, u32 slot, const struct ta_zap *zap,
		  bool nowait)
{
	struct ta_slot_pages *sp = &pages->slot[slot];
	struct ta_slot_pages old = {};
	int err;

	/*
	 * No fault begins from here on, which pairs with down_read() in
	 * ta_vma_fault(); those under way are waited for.  A pin taken without
	 * a lock (GUP-fast) refers to the page and then looks again whether it
	 * is still mapped; we unmap and then look who refers to it.  Between
	 * the two each side has an atomic on the page's references that orders
	 * fully: theirs takes one, ours gives the mapping's back.
	 */
	if (!nowait)
		down_write(&pages->sem);
	else if (!down_write_trylock(&pages->sem))
		return -EBUSY;
	/* A pin is the usual reason, and no reason to unmap anything. */
	err = is_pinned(sp) ? -EBUSY : drain_chunks(sp, nowait);
	if (!err) {
		zap_slot(pages, slot, zap);
		if (is_ours_alone(sp))
			swap(*sp, old);
		else
			err = -EBUSY;
	}
	up_write(&pages->sem);

	ta_chunks_free(old.chunk, old.nr);
	kvfree(old.chunk);
	atomic64_sub((u64)old.nr * TA_CHUNK_BYTES, &pages->bytes);
	atomic64_sub(old.extents.count, &pages->extents);
	return err;
}

u64 ta_pages_reclaimable(struct ta_pages *pages, u32 slot)
{
	const struct ta_slot_pages *sp = &pages->slot[slot];
	u64 bytes = 0;

	if (!down_read_trylock(&pages->sem))
		return 0;
	/*
	 * Reclaim asks often, and of every slot.  Who registers a slot with a
	 * device registers it whole; other pins are found when it is to go.
	 */
	if (sp->nr &&
	    !folio_maybe_dma_pinned(page_folio(ta_chunk_page(&sp->chunk[0], 0))))
		bytes = (u64)sp->nr * TA_CHUNK_BYTES;
	up_read(&pages->sem);
	return bytes;
}

void ta_pages_extents(struct ta_pages *pages, u32 slot,
		      struct ta_extents *extents)
{
	down_read(&pages->sem);
	*extents = pages->slot[slot].extents;
	up_read(&pages->sem);
}

void ta_pages_drain(struct ta_pages *pages)
{
	u32 i;

	/*
	 * Faults lock their folio under the read side: see them all begun.
	 * Pairs with down_read() in ta_vma_fault().
	 */
	down_write(&pages->sem);
	downgrade_write(&pages->sem);
	for (i = 0; i < pages->nr; i++)
		drain_chunks(&pages->slot[i], false);
	up_read(&pages->sem);
}

struct page *ta_pages_lock_page(struct ta_pages *pages, pgoff_t pgoff)
{
	unsigned long chunk = pgoff / TA_CHUNK_PAGES;
	struct ta_slot_pages *sp;
	struct page *page;

	sp = &pages->slot[chunk / pages->slot_chunks];
	chunk %= pages->slot_chunks;
	if (chunk >= sp->nr)
		return NULL;
	page = ta_chunk_page(&sp->chunk[chunk], pgoff % TA_CHUNK_PAGES);
	get_page(page);
	lock_page(page);
	return page;
}
