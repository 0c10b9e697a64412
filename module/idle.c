// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens while nobody calls: freed slots are announced, dead owners are
 * looked for, memory nobody will use again is given back.
 */
#include <linux/poll.h>

#include "arena.h"

#define TA_SWEEP_INTERVAL	HZ

static struct workqueue_struct *ta_idle_wq;

/*
 * Work that is pending already when it is queued again has not begun to look:
 * it sees, under the lock, what we have changed.
 */
void ta_arena_slots_freed(struct ta_arena *arena)
{
	lockdep_assert_held(&arena->lock);
	if (arena->writer)
		ta_role_wake(arena->writer, EPOLLOUT | EPOLLWRNORM);
	else
		mod_delayed_work(ta_idle_wq, &arena->idle, 0);
}

/* Whether the death of an owner would matter to anybody. */
static bool somebody_waits(const struct ta_arena *arena)
{
	u32 seat;

	if (arena->slots.nr_state[TA_SLOT_FREE] < arena->slots.nr)
		return true;
	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++)
		if (arena->seat[seat] && ta_role_is_polled(arena->seat[seat]))
			return true;
	return false;
}

void ta_arena_idle_later(struct ta_arena *arena)
{
	lockdep_assert_held(&arena->lock);
	if (somebody_waits(arena))
		queue_delayed_work(ta_idle_wq, &arena->idle,
				   TA_SWEEP_INTERVAL);
}

void ta_arena_idle_work(struct work_struct *work)
{
	struct ta_arena *arena = container_of(to_delayed_work(work),
					      struct ta_arena, idle);
	bool orphaned;

	mutex_lock(&arena->lock);
	ta_arena_sweep(arena);
	ta_arena_sweep_dumping(arena);
	ta_arena_idle_later(arena);
	orphaned = arena->slots.writer_gone;
	mutex_unlock(&arena->lock);

	/*
	 * No more publications will come, but some descriptor, perhaps a dead
	 * worker's in a process that does not know it has one, still keeps
	 * the arena.  It must not keep gigabytes with it; what is pinned or
	 * pending today may not be in a second.
	 */
	if (!orphaned)
		return;
	ta_arena_trim(arena, 0, TA_TRIM_ORPHAN, NULL);
	if (atomic64_read(&arena->pages.bytes))
		queue_delayed_work(ta_idle_wq, &arena->idle,
				   TA_SWEEP_INTERVAL);
}

int ta_idle_init(void)
{
	/* Trimming is long and belongs to no processor. */
	ta_idle_wq = alloc_workqueue("tensorarena", WQ_UNBOUND, 0);
	return ta_idle_wq ? 0 : -ENOMEM;
}

void ta_idle_exit(void)
{
	destroy_workqueue(ta_idle_wq);
}
