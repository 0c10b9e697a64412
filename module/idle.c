// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens while nobody calls: freed slots are announced, dead owners are
 * looked for, memory nobody will use again is given back.
 */
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
