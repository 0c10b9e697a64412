// SPDX-License-Identifier: GPL-2.0-only
/*
 * Giving memory back: on the writer's word, when the writer is gone, and when
 * the machine runs short.  Only idle slots give, whole or not at all.
 */
#include <linux/fs.h>
#include <linux/shrinker.h>

#include "arena.h"
#include "compat.h"
#include "trace.h"

/* All files that may have mappings; under the lock. */
static void collect_zap(struct ta_arena *arena, struct ta_zap *zap)
{
	u32 seat, i;

	/*
	 * Roles that have ended have nothing mapped, or are being revoked, or
	 * their address space is being torn down: then the slot is busy for
	 * that long.
	 */
	zap->nr = 0;
	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++)
		if (arena->seat[seat])
			zap->inode[zap->nr++] = arena->seat[seat]->inode;
	if (arena->writer)
		zap->inode[zap->nr++] = arena->writer->inode;
	for (i = 0; i < zap->nr; i++)
		ihold(zap->inode[i]);
}

static void put_zap(struct ta_zap *zap)
{
	while (zap->nr)
		iput(zap->inode[--zap->nr]);
}

/*
 * Frees one slot's memory; called and returns with the lock held, which it
 * drops.  Returns the bytes freed, 0 when there is nothing to free, or -EBUSY
 * when it is pinned.
 */
static s64 trim_slot(struct ta_arena *arena, u32 slot, enum ta_trim_why why)
{
	struct ta_zap zap;
	u64 bytes;
	int err;

	lockdep_assert_held(&arena->lock);
	bytes = arena->slots.slot[slot].capacity;
	if (!bytes || ta_slots_take(&arena->slots, slot))
		return 0;
	collect_zap(arena, &zap);
	mutex_unlock(&arena->lock);

	err = ta_pages_trim(&arena->pages, slot, &zap, why == TA_TRIM_RECLAIM);
	put_zap(&zap);

	mutex_lock(&arena->lock);
	if (!err)
		arena->slots.slot[slot].capacity = 0;
	if (!err && why == TA_TRIM_RECLAIM)
		arena->reclaimed_bytes += bytes;
	trace_ta_trim(arena, slot, bytes, why, err);
	ta_slots_untake(&arena->slots, slot);
	/* Without a writer this is the idle work, which comes again itself. */
	if (arena->writer)
		ta_arena_slots_freed(arena);
	return err ?: (s64)bytes;
}

u64 ta_arena_trim(struct ta_arena *arena, u64 keep_bytes,
		  enum ta_trim_why why, u32 *busy)
{
	u32 slot = arena->slots.nr;
	u32 pinned = 0;
	u64 freed = 0;

	mutex_lock(&arena->lock);
	/* From the last: acquire prefers the first. */
	while (slot-- && atomic64_read(&arena->pages.bytes) > keep_bytes) {
		s64 bytes = trim_slot(arena, slot, why);

		if (bytes < 0)
			pinned++;
		else
			freed += bytes;
	}
	mutex_unlock(&arena->lock);
	if (busy)
		*busy = pinned;
	return freed;
}

/*
 * Bytes that reclaim may take from a slot.  Not the last free one of many: it
 * would be missing just when the writer wants it.
 */
static u64 reclaimable(struct ta_arena *arena, u32 slot)
{
	if (arena->slots.slot[slot].state != TA_SLOT_FREE ||
	    (arena->slots.nr > 1 && arena->slots.nr_state[TA_SLOT_FREE] == 1))
		return 0;
	return ta_pages_reclaimable(&arena->pages, slot);
}

static unsigned long count_idle(struct ta_arena *arena,
				struct shrink_control *sc)
{
	u64 bytes = 0;
	u32 i;

	if (arena->pages.node != sc->nid || !mutex_trylock(&arena->lock))
		return 0;
	for (i = 0; i < arena->slots.nr; i++)
		bytes += reclaimable(arena, i);
	mutex_unlock(&arena->lock);
	return bytes >> PAGE_SHIFT;
}

static unsigned long free_idle(struct ta_arena *arena,
			       struct shrink_control *sc)
{
	u32 slot = arena->slots.nr;
	unsigned long freed = 0;

	if (arena->pages.node != sc->nid || sc->nr_scanned >= sc->nr_to_scan ||
	    !mutex_trylock(&arena->lock))
		return 0;
	while (slot-- && sc->nr_scanned < sc->nr_to_scan) {
		s64 bytes = 0;

		if (reclaimable(arena, slot))
			bytes = trim_slot(arena, slot, TA_TRIM_RECLAIM);
		if (bytes > 0) {
			/* A slot goes whole, however little was asked for. */
			freed += bytes >> PAGE_SHIFT;
			sc->nr_scanned += bytes >> PAGE_SHIFT;
		}
	}
	mutex_unlock(&arena->lock);
	return freed;
}

static unsigned long shrink_count(struct shrinker *shrinker,
				  struct shrink_control *sc)
{
	return ta_arena_sum(count_idle, sc) ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker,
				 struct shrink_control *sc)
{
	unsigned long freed;

	sc->nr_scanned = 0;
	freed = ta_arena_sum(free_idle, sc);
	ta_account_reclaimed(freed);
	return freed ?: SHRINK_STOP;
}

/*
 * Of the machine, not of a memory cgroup: a slot is given back whole, and the
 * chunks of one may be charged to several, if its writer has moved, or to none.
 * In a cgroup at its limit slots are not built.
 */
static struct shrinker *ta_shrinker;

int ta_shrinker_init(void)
{
	ta_shrinker = ta_shrinker_register(shrink_count, shrink_scan);
	return PTR_ERR_OR_ZERO(ta_shrinker);
}

void ta_shrinker_exit(void)
{
	ta_shrinker_unregister(ta_shrinker);
}
