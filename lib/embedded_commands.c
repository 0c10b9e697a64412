// SPDX-License-Identifier: MIT
/* The writer's commands, answered in the calling thread. */
#include <errno.h>
#include <string.h>

#include "embedded.h"

#define ALL_SEATS UINT64_MAX

/* Takes the lock, unless the writer has detached. */
static int enter(struct ta_embedded *e)
{
	pthread_mutex_lock(&e->lock);
	if (!e->slots.writer_gone)
		return 0;
	pthread_mutex_unlock(&e->lock);
	return -ESHUTDOWN;
}

/* Gives it back, having told pollers whether a slot is free. */
static void leave(struct ta_embedded *e)
{
	ta_embedded_sync_free(e);
	pthread_mutex_unlock(&e->lock);
}

/* Gives an acquired slot the memory it lacks. */
static int build_acquired(struct ta_embedded *e, uint32_t slot, uint64_t nbytes)
{
	uint64_t capacity;
	int err;

	err = ta_memory_grow(e, slot, nbytes, &capacity);
	pthread_mutex_lock(&e->lock);
	if (err)
		ta_slots_no_memory(&e->slots, slot);
	/* Another thread may have detached the writer. */
	else if (ta_slots_built(&e->slots, slot, capacity))
		err = -ESHUTDOWN;
	leave(e);
	return err;
}

static int acquire(struct ta_embedded *e, void *arg)
{
	struct tensorarena_acquire *args = arg;
	const struct ta_slot *slot;
	bool build;
	int err, nr;

	if (args->flags || args->reserved)
		return -EINVAL;

	err = enter(e);
	if (err)
		return err;
	if (!e->slots.nr_state[TA_SLOT_FREE])
		ta_released_reap(e, ALL_SEATS);
	nr = ta_slots_acquire(&e->slots, args->nbytes);
	if (nr < 0) {
		leave(e);
		return nr;
	}
	slot = &e->slots.slot[nr];
	build = slot->capacity < args->nbytes;
	args->slot = (uint32_t)nr;
	args->generation = slot->generation;
	args->offset = (uint64_t)nr * e->stride;
	args->open = ta_slots_open(&e->slots);
	leave(e);
	return build ? build_acquired(e, (uint32_t)nr, args->nbytes) : 0;
}

static int check_publish(const struct tensorarena_publish *args)
{
	if (args->flags & ~(uint32_t)TENSORARENA_PUBLISH_STREAM ||
	    args->reserved || args->meta_bytes > TENSORARENA_META_BYTES ||
	    args->nr_readers > TENSORARENA_MAX_READERS)
		return -EINVAL;
	if (args->flags & TENSORARENA_PUBLISH_STREAM)
		return -EOPNOTSUPP;
	if (args->nr_readers && !args->readers)
		return -EFAULT;
	return 0;
}

static int publish_locked(struct ta_embedded *e,
			  const struct tensorarena_publish *args, uint64_t now)
{
	const __u64 *readers = (const __u64 *)(uintptr_t)args->readers;
	__u64 mask = ~0ULL;
	int err;

	if (args->nr_readers) {
		err = ta_slots_mask(&e->slots, readers, args->nr_readers,
				    &mask);
		if (err)
			return err;
	}
	return ta_slots_publish(&e->slots, args->slot, args->generation,
				args->nbytes, mask, args->meta,
				args->meta_bytes, now);
}

static int publish(struct ta_embedded *e, void *arg)
{
	struct tensorarena_publish *args = arg;
	uint64_t now = ta_now_ns();
	int nr;

	nr = check_publish(args);
	if (nr)
		return nr;

	nr = enter(e);
	if (nr)
		return nr;
	nr = publish_locked(e, args, now);
	leave(e);
	if (nr < 0)
		return nr;
	if (nr)
		ta_embedded_wake(e);
	args->addressed = (uint32_t)nr;
	return 0;
}

static int give_back(struct ta_embedded *e, void *arg)
{
	const struct tensorarena_slot_ref *args = arg;
	int err;

	if (args->flags)
		return -EINVAL;

	err = enter(e);
	if (err)
		return err;
	err = ta_slots_abort(&e->slots, args->slot, args->generation);
	leave(e);
	return err;
}

static int retract(struct ta_embedded *e, void *arg)
{
	struct tensorarena_retract *args = arg;
	int nr;

	if (args->flags)
		return -EINVAL;

	nr = enter(e);
	if (nr)
		return nr;
	ta_released_reap(e, ALL_SEATS);
	nr = ta_slots_retract(&e->slots, args->slot, args->generation,
			      &args->pending);
	leave(e);
	if (nr < 0)
		return nr;
	args->retracted = (uint32_t)nr;
	/* They may have been told that there is something to read. */
	if (nr)
		ta_embedded_wake(e);
	return 0;
}

/* Builds a slot taken for it, and gives it back. */
static int build_taken(struct ta_embedded *e, uint32_t slot, uint64_t nbytes)
{
	uint64_t capacity;
	int err;

	err = ta_memory_grow(e, slot, nbytes, &capacity);
	pthread_mutex_lock(&e->lock);
	if (!err)
		e->slots.slot[slot].capacity = capacity;
	ta_slots_untake(&e->slots, slot);
	leave(e);
	return err;
}

/*
 * Takes a free slot that has less memory than asked for, unless @want slots
 * have enough; *@ready is how many have.  -ENOENT when there is none to take.
 */
static int take_unbuilt(struct ta_embedded *e, uint64_t nbytes, uint32_t want,
			uint32_t *ready)
{
	int taken = -ENOENT;
	uint32_t i;
	int err;

	err = enter(e);
	if (err)
		return err;
	ta_released_reap(e, ALL_SEATS);
	*ready = 0;
	for (i = 0; i < e->slots.nr; i++)
		*ready += e->slots.slot[i].capacity >= nbytes;
	for (i = 0; i < e->slots.nr && taken < 0 && *ready < want; i++)
		if (e->slots.slot[i].capacity < nbytes &&
		    !ta_slots_take(&e->slots, i))
			taken = (int)i;
	leave(e);
	return taken;
}

static int populate(struct ta_embedded *e, void *arg)
{
	struct tensorarena_populate *args = arg;
	int err, slot;

	if (args->flags || args->reserved ||
	    args->nbytes > e->slots.slot_bytes || args->slots > e->slots.nr)
		return -EINVAL;

	for (;;) {
		slot = take_unbuilt(e, args->nbytes, args->slots, &args->ready);
		if (slot < 0)
			return slot == -ENOENT ? 0 : slot;
		err = build_taken(e, (uint32_t)slot, args->nbytes);
		if (err)
			return err;
	}
}

/* Bytes freed by trimming a slot: 0 when it is in use or has none. */
static int64_t trim_slot(struct ta_embedded *e, uint32_t slot,
			 uint64_t keep_bytes)
{
	uint64_t bytes;
	int err;

	err = enter(e);
	if (err)
		return err;
	ta_released_reap(e, ALL_SEATS);
	bytes = e->slots.slot[slot].capacity;
	if (!bytes || ta_memory_allocated(e) <= keep_bytes ||
	    ta_slots_take(&e->slots, slot))
		bytes = 0;
	leave(e);
	if (!bytes)
		return 0;

	err = ta_memory_drop(e, slot);
	pthread_mutex_lock(&e->lock);
	ta_slots_untake(&e->slots, slot);
	leave(e);
	return err ? err : (int64_t)bytes;
}

static int trim(struct ta_embedded *e, void *arg)
{
	struct tensorarena_trim *args = arg;
	uint32_t slot = e->slots.nr;
	int64_t freed;
	int err = 0;

	if (args->flags)
		return -EINVAL;

	args->busy = 0;
	args->freed_bytes = 0;
	/* From the last: acquire prefers the first. */
	while (slot-- && !err) {
		freed = trim_slot(e, slot, args->keep_bytes);
		if (freed < 0)
			err = (int)freed;
		else
			args->freed_bytes += (uint64_t)freed;
	}
	pthread_mutex_lock(&e->lock);
	args->allocated_bytes = ta_memory_allocated(e);
	pthread_mutex_unlock(&e->lock);
	if (args->freed_bytes)
		ta_embedded_wake(e);
	return err;
}

static int evict_reader(struct ta_embedded *e, uint64_t reader)
{
	int seat = ta_slots_seat_of(&e->slots, reader);

	if (seat < 0)
		return seat;
	return ta_slots_leave(&e->slots, (uint32_t)seat, TA_LEAVE_EVICTED);
}

static int evict(struct ta_embedded *e, void *arg)
{
	struct tensorarena_evict *args = arg;
	int freed;

	if (args->flags & ~(uint32_t)TENSORARENA_EVICT_SEAT)
		return -EINVAL;

	freed = enter(e);
	if (freed)
		return freed;
	freed = args->flags & TENSORARENA_EVICT_SEAT ?
			ta_slots_close_unclaimed(&e->slots, args->reader) :
			evict_reader(e, args->reader);
	leave(e);
	if (freed < 0)
		return freed;
	ta_embedded_wake(e);
	args->freed = (uint32_t)freed;
	return 0;
}

static void fill_row(const struct ta_embedded *e, uint32_t seat, uint64_t now,
		     struct tensorarena_reader_stats *row)
{
	__u64 oldest = 0;

	*row = (struct tensorarena_reader_stats){ .seat = seat };
	row->pending = ta_slots_pending(&e->slots, seat, &oldest);
	if (row->pending)
		row->oldest_ns = now - oldest;
	if (!(e->slots.claimed >> seat & 1))
		return;
	row->reader = e->slots.reader[seat];
	row->pid = e->seat_pid[seat];
}

/* Fills a row for each open seat, and says how many those are. */
static uint32_t fill_rows(const struct ta_embedded *e, uint64_t now,
			  struct tensorarena_reader_stats *rows)
{
	uint32_t seat, nr = 0;

	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++)
		if (e->slots.open >> seat & 1)
			fill_row(e, seat, now, &rows[nr++]);
	return nr;
}

void ta_embedded_stats(struct ta_embedded *e, struct tensorarena_stats *st,
		       struct tensorarena_reader_stats *rows)
{
	/* Under the lock, so that no publication is younger than now. */
	uint64_t now = ta_now_ns();
	int oldest;

	ta_released_reap(e, ALL_SEATS);
	ta_slots_stats(&e->slots, st);
	st->nr_readers = fill_rows(e, now, rows);
	st->allocated_bytes = ta_memory_allocated(e);
	oldest = ta_slots_oldest(&e->slots);
	st->oldest_ns = oldest < 0 ? 0 : now - e->slots.slot[oldest].stamp;
}

static int stats(struct ta_embedded *e, void *arg)
{
	struct tensorarena_reader_stats rows[TENSORARENA_MAX_READERS];
	struct tensorarena_stats *args = arg;
	uint32_t room = args->nr_readers;
	int err;

	if (args->flags || args->reserved)
		return -EINVAL;
	/* Rows grow with the library, of which this engine is a part. */
	if (room && args->row_bytes != sizeof(rows[0]))
		return -EINVAL;
	if (room && !args->readers)
		return -EFAULT;

	err = enter(e);
	if (err)
		return err;
	ta_embedded_stats(e, args, rows);
	pthread_mutex_unlock(&e->lock);

	if (room > args->nr_readers)
		room = args->nr_readers;
	if (room)
		memcpy((void *)(uintptr_t)args->readers, rows,
		       room * sizeof(rows[0]));
	return 0;
}

/*
 * What closing does but for the thread, which goes on answering readers: they
 * may still look at what there is.
 */
static int detach(struct ta_embedded *e, void *arg)
{
	struct tensorarena_detach *args = arg;
	int err;

	if (args->flags)
		return -EINVAL;

	err = enter(e);
	if (err)
		return err;
	args->freed = (uint32_t)ta_slots_writer_gone(&e->slots);
	leave(e);
	ta_memory_revoke(e);
	ta_embedded_wake(e);
	return 0;
}

int ta_embedded_command(struct ta_embedded *e, unsigned int cmd, void *arg)
{
	switch (cmd) {
	case TENSORARENA_ACQUIRE:
		return acquire(e, arg);
	case TENSORARENA_PUBLISH:
		return publish(e, arg);
	case TENSORARENA_ABORT:
		return give_back(e, arg);
	case TENSORARENA_RETRACT:
		return retract(e, arg);
	case TENSORARENA_POPULATE:
		return populate(e, arg);
	case TENSORARENA_TRIM:
		return trim(e, arg);
	case TENSORARENA_EVICT:
		return evict(e, arg);
	case TENSORARENA_STATS:
		return stats(e, arg);
	case TENSORARENA_DETACH:
		return detach(e, arg);
	default:
		return -ENOTTY;
	}
}
