// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens while nobody calls: freed slots are announced, dead owners are
 * looked for, memory nobody will use again is given back.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>

#include "arena.h"

#define TA_SWEEP_INTERVAL	HZ

void ta_arena_slots_freed(struct ta_arena *arena)
{
	lockdep_assert_held(&arena->lock);
	if (arena->writer)
		wake_up_interruptible_poll(&arena->writer->wait, EPOLLOUT);
	else
		mod_delayed_work(system_wq, &arena->idle, 0);
}

void ta_arena_idle_later(struct ta_arena *arena)
{
	lockdep_assert_held(&arena->lock);
	if (arena->slots.nr_state[TA_SLOT_FREE] < arena->slots.nr)
		schedule_delayed_work(&arena->idle, TA_SWEEP_INTERVAL);
}

void ta_arena_idle_work(struct work_struct *work)
{
	struct ta_arena *arena = container_of(to_delayed_work(work),
					      struct ta_arena, idle);
	bool orphaned;

	mutex_lock(&arena->lock);
	ta_arena_sweep(arena);
	ta_arena_idle_later(arena);
	orphaned = arena->slots.writer_gone;
	mutex_unlock(&arena->lock);

	/*
	 * No more publications will come, but some descriptor, perhaps a dead
	 * worker's in a process that does not know it has one, still keeps
	 * the arena.  It must not keep gigabytes with it.
	 */
	if (orphaned)
		ta_arena_trim(arena, 0);
}

void ta_arena_put_back(struct ta_arena *arena, u32 slot)
{
	lockdep_assert_held(&arena->lock);
	ta_slots_untake(&arena->slots, slot);
	ta_arena_slots_freed(arena);
}

/* Zaps a range in every live file of the arena; called without the lock. */
static void zap_everywhere(void *ctx, u64 offset, u64 bytes)
{
	struct ta_arena *arena = ctx;
	struct inode *inode[TENSORARENA_MAX_READERS + 1];
	u32 seat, nr = 0, i;

	/* Roles that have ended have nothing mapped: see ta_role_revoke(). */
	mutex_lock(&arena->lock);
	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++)
		if (arena->seat[seat])
			inode[nr++] = arena->seat[seat]->inode;
	if (arena->writer)
		inode[nr++] = arena->writer->inode;
	for (i = 0; i < nr; i++)
		ihold(inode[i]);
	mutex_unlock(&arena->lock);

	for (i = 0; i < nr; i++) {
		unmap_mapping_range(inode[i]->i_mapping, offset, bytes, 1);
		iput(inode[i]);
	}
}

/* 0, -EAGAIN when there is nothing to free, -EBUSY when it is pinned. */
static int trim_slot(struct ta_arena *arena, u32 slot)
{
	int err = -EAGAIN;

	mutex_lock(&arena->lock);
	if (arena->slots.slot[slot].capacity)
		err = ta_slots_take(&arena->slots, slot);
	mutex_unlock(&arena->lock);
	if (err)
		return err;

	err = ta_pages_trim(&arena->pages, slot, zap_everywhere, arena);
	mutex_lock(&arena->lock);
	if (!err)
		arena->slots.slot[slot].capacity = 0;
	ta_slots_untake(&arena->slots, slot);
	if (arena->writer)
		ta_arena_slots_freed(arena);
	mutex_unlock(&arena->lock);
	return err;
}

u32 ta_arena_trim(struct ta_arena *arena, u64 keep_bytes)
{
	u32 slot = arena->slots.nr;
	u32 busy = 0;

	/* From the last: acquire prefers the first. */
	while (slot-- && atomic64_read(&arena->pages.bytes) > keep_bytes)
		busy += trim_slot(arena, slot) == -EBUSY;
	return busy;
}
