// SPDX-License-Identifier: GPL-2.0-only
/* What there is to say about an arena; see figures.h. */
#include <linux/ktime.h>
#include <linux/pid.h>

#include "arena.h"
#include "figures.h"

/* Who keeps the oldest publication from being freed; under the lock. */
static void find_oldest(const struct ta_arena *arena,
			struct ta_figures *figures)
{
	int nr = ta_slots_oldest(&arena->slots);
	const struct ta_role *role;

	if (nr < 0)
		return;
	role = arena->seat[__ffs64(arena->slots.slot[nr].pending)];
	if (!role)
		return;
	figures->oldest_reader = role->reader;
	figures->oldest_reader_pid = pid_vnr(role->owner_tgid);
}

void ta_figures_get(struct ta_arena *arena, struct ta_figures *figures)
{
	memset(figures, 0, sizeof(*figures));
	figures->arenas = 1;
	mutex_lock(&arena->lock);
	/* Under the lock, so that no publication is younger than now. */
	ta_arena_stats(arena, ktime_get_ns(), &figures->st);
	find_oldest(arena, figures);
	figures->reclaimed_bytes = arena->reclaimed_bytes;
	figures->writer_waits = arena->writer_waits;
	figures->reader_waits = arena->reader_waits;
	mutex_unlock(&arena->lock);

	/* Who looks must not wait for memory to be trimmed. */
	figures->total_bytes = ta_arena_charged(arena);
	figures->extents = atomic64_read(&arena->pages.extents);
}

void ta_figures_add_counters(struct ta_figures *sum,
			     const struct ta_figures *figures)
{
	const struct tensorarena_stats *st = &figures->st;

	sum->st.puts += st->puts;
	sum->st.put_bytes += st->put_bytes;
	sum->st.unaddressed += st->unaddressed;
	sum->st.aborted += st->aborted;
	sum->st.released += st->released;
	sum->st.declined_no_slot += st->declined_no_slot;
	sum->st.declined_oversize += st->declined_oversize;
	sum->st.declined_no_memory += st->declined_no_memory;
	sum->st.attached += st->attached;
	sum->st.detached += st->detached;
	sum->st.evicted += st->evicted;
	sum->st.reclaimed_dead_readers += st->reclaimed_dead_readers;
	sum->st.retracted += st->retracted;
	sum->reclaimed_bytes += figures->reclaimed_bytes;
	sum->writer_waits += figures->writer_waits;
	sum->reader_waits += figures->reader_waits;
}

void ta_figures_add(struct ta_figures *sum, const struct ta_figures *figures)
{
	const struct tensorarena_stats *st = &figures->st;

	ta_figures_add_counters(sum, figures);
	sum->st.slots += st->slots;
	sum->st.free += st->free;
	sum->st.writing += st->writing;
	sum->st.published += st->published;
	sum->st.nr_readers += st->nr_readers;
	sum->st.allocated_bytes += st->allocated_bytes;
	sum->extents += figures->extents;
	sum->arenas += figures->arenas;
	sum->total_bytes += figures->total_bytes;
	if (st->oldest_ns > sum->st.oldest_ns) {
		sum->st.oldest_ns = st->oldest_ns;
		sum->oldest_reader = figures->oldest_reader;
		sum->oldest_reader_pid = figures->oldest_reader_pid;
	}
}
