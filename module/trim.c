// SPDX-License-Identifier: GPL-2.0-only
/*
 * Giving memory back: on the writer's word, when the writer is gone, and when
 * the machine runs short.  Only idle slots give, whole or not at all.
 */
#include <linux/fs.h>
#include <linux/shrinker.h>

#include "arena.h"
#include "compat.h"

void ta_arena_put_back(struct ta_arena *arena, u32 slot)
{
	lockdep_assert_held(&arena->lock);
	ta_slots_untake(&arena->slots, slot);
	/* Without a writer there is nobody to tell, and nothing to do over. */
	if (arena->writer)
		ta_arena_slots_freed(arena);
}

/* All files that may have mappings; under the lock. */
static void collect_zap(struct ta_arena *arena, struct ta_zap *zap)
{
	u32 seat, i;

	/* Roles that have ended have nothing mapped: see ta_role_revoke(). */
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
 * drops.  0, -EAGAIN when there is nothing to free, -EBUSY when it is pinned.
 */
static int trim_slot(struct ta_arena *arena, u32 slot, bool nowait)
{
	struct ta_zap zap;
	int err;

	lockdep_assert_held(&arena->lock);
	if (!arena->slots.slot[slot].capacity ||
	    ta_slots_take(&arena->slots, slot))
		return -EAGAIN;
	collect_zap(arena, &zap);
	mutex_unlock(&arena->lock);

	err = ta_pages_trim(&arena->pages, slot, &zap, nowait);
	put_zap(&zap);

	mutex_lock(&arena->lock);
	if (!err)
		arena->slots.slot[slot].capacity = 0;
	ta_arena_put_back(arena, slot);
	return err;
}

u32 ta_arena_trim(struct ta_arena *arena, u64 keep_bytes)
{
	u32 slot = arena->slots.nr;
	u32 busy = 0;

	mutex_lock(&arena->lock);
	/* From the last: acquire prefers the first. */
	while (slot-- && atomic64_read(&arena->pages.bytes) > keep_bytes)
		busy += trim_slot(arena, slot, false) == -EBUSY;
	mutex_unlock(&arena->lock);
	return busy;
}

/* Pages that idle slots hold; 0 where we would have to wait to know. */
static unsigned long count_idle(struct ta_arena *arena, void *unused)
{
	u64 bytes = 0;
	u32 i;

	if (!mutex_trylock(&arena->lock))
		return 0;
	for (i = 0; i < arena->slots.nr; i++)
		if (arena->slots.slot[i].state == TA_SLOT_FREE)
			bytes += arena->slots.slot[i].capacity;
	mutex_unlock(&arena->lock);
	return bytes >> PAGE_SHIFT;
}

static unsigned long free_idle(struct ta_arena *arena, void *left)
{
	unsigned long *nr_to_scan = left;
	u64 before = atomic64_read(&arena->pages.bytes);
	u32 slot = arena->slots.nr;
	unsigned long freed = 0;

	if (!mutex_trylock(&arena->lock))
		return 0;
	while (slot-- && freed < *nr_to_scan) {
		trim_slot(arena, slot, true);
		freed = (before - atomic64_read(&arena->pages.bytes)) >>
			PAGE_SHIFT;
	}
	mutex_unlock(&arena->lock);
	*nr_to_scan -= min(freed, *nr_to_scan);
	return freed;
}

static unsigned long shrink_count(struct shrinker *shrinker,
				  struct shrink_control *sc)
{
	return ta_arena_sum(count_idle, NULL) ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker,
				 struct shrink_control *sc)
{
	unsigned long left = sc->nr_to_scan;

	return ta_arena_sum(free_idle, &left) ?: SHRINK_STOP;
}

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
