// SPDX-License-Identifier: GPL-2.0-only
/* The writer's commands about memory: POPULATE and TRIM. */
#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/types.h>

#include "arena.h"
#include "trace.h"
#include "writer.h"

/* Slots that have memory for @nbytes. */
static u32 count_built(const struct ta_arena *arena, u64 nbytes)
{
	u32 i, nr = 0;

	for (i = 0; i < arena->slots.nr; i++)
		nr += arena->slots.slot[i].capacity >= nbytes;
	return nr;
}

/* Builds one slot, if it is free and has less memory than @nbytes. */
static int populate_slot(struct ta_role *role, u32 slot,
			 struct tensorarena_populate *args)
{
	struct ta_arena *arena = role->arena;
	u64 capacity;
	bool build;
	int err;

	err = ta_role_lock(role);
	if (err)
		return err;
	args->ready = count_built(arena, args->nbytes);
	build = args->ready < args->slots &&
		arena->slots.slot[slot].capacity < args->nbytes &&
		!ta_slots_take(&arena->slots, slot);
	ta_role_unlock(role);
	if (!build)
		return 0;

	err = ta_pages_grow(&arena->pages, slot, args->nbytes, &capacity);
	mutex_lock(&arena->lock);
	if (!err) {
		arena->slots.slot[slot].capacity = capacity;
		args->ready = count_built(arena, args->nbytes);
	}
	trace_ta_populate(arena, slot, capacity, err);
	ta_slots_untake(&arena->slots, slot);
	ta_arena_slots_freed(arena);
	mutex_unlock(&arena->lock);
	return err;
}

static int populate(struct ta_role *role, struct tensorarena_populate *args)
{
	u32 slot;
	int err = 0;

	/*
	 * Once each: a slot that reclaim has emptied again behind us would
	 * only come at the cost of another.
	 */
	for (slot = 0; slot < role->arena->slots.nr && !err; slot++)
		err = populate_slot(role, slot, args);
	return err;
}

long ta_writer_populate(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_populate args;
	int err, copied;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags || args.reserved ||
	    args.nbytes > role->arena->slots.slot_bytes ||
	    args.slots > role->arena->slots.nr)
		return -EINVAL;

	err = populate(role, &args);
	copied = ta_copy_out(user, &args, sizeof(args));
	return err ?: copied;
}

/*
 * What a reader's library keeps registered with its GPU it gives up when asked.
 * Those that are idle are woken for it: they have nothing else to come for.
 */
static void want_unpinned(struct ta_arena *arena, bool wanted)
{
	u32 seat;

	mutex_lock(&arena->lock);
	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++) {
		struct ta_role *reader = arena->seat[seat];

		if (!reader)
			continue;
		reader->trim_wanted = wanted;
		if (wanted)
			ta_role_wake(reader, EPOLLIN | EPOLLRDNORM);
	}
	mutex_unlock(&arena->lock);
}

static int trim(struct ta_role *role, struct tensorarena_trim *args)
{
	struct ta_arena *arena = role->arena;
	int err;

	err = ta_role_lock(role);
	if (err)
		return err;
	ta_role_unlock(role);

	args->freed_bytes = ta_arena_trim(arena, args->keep_bytes,
					  TA_TRIM_WRITER, &args->busy);
	args->allocated_bytes = atomic64_read(&arena->pages.bytes);
	if (args->busy && args->allocated_bytes > args->keep_bytes)
		err = -EBUSY;
	want_unpinned(arena, err == -EBUSY);
	return err;
}

long ta_writer_trim(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_trim args;
	int err, copied;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags)
		return -EINVAL;

	err = trim(role, &args);
	copied = ta_copy_out(user, &args, sizeof(args));
	return err ?: copied;
}
