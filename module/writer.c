// SPDX-License-Identifier: GPL-2.0-only
/* The writer's file: its commands and poll. */
#include <linux/bitops.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "arena.h"
#include "trace.h"
#include "writer.h"

/* Takes a slot; under the lock.  Dead owners may be holding the last one. */
static int acquire_slot(struct ta_arena *arena, u64 nbytes)
{
	lockdep_assert_held(&arena->lock);
	if (!arena->slots.nr_state[TA_SLOT_FREE])
		ta_arena_sweep(arena);
	return ta_slots_acquire(&arena->slots, nbytes);
}

/* Gives an acquired slot the memory it lacks. */
static int build_acquired(struct ta_arena *arena, u32 slot, u64 nbytes)
{
	u64 capacity;
	int err;

	err = ta_pages_grow(&arena->pages, slot, nbytes, &capacity);
	mutex_lock(&arena->lock);
	if (err)
		ta_slots_no_memory(&arena->slots, slot);
	/* Another thread may have detached the writer. */
	else if (ta_slots_built(&arena->slots, slot, capacity))
		err = -ESHUTDOWN;
	if (err) {
		trace_ta_decline(arena, nbytes, err);
		ta_arena_slots_freed(arena);
	}
	mutex_unlock(&arena->lock);
	return err;
}

/* Gives an acquired slot back; under the lock. */
static int abort_slot(struct ta_arena *arena, u32 slot, u64 generation)
{
	int err;

	lockdep_assert_held(&arena->lock);
	err = ta_slots_abort(&arena->slots, slot, generation);
	if (err)
		return err;
	trace_ta_abort(arena, slot, generation);
	ta_arena_slots_freed(arena);
	return 0;
}

static long writer_acquire(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
	struct tensorarena_acquire args;
	struct ta_slot *slot;
	bool build;
	int err, nr;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	nr = acquire_slot(arena, args.nbytes);
	if (nr < 0) {
		trace_ta_decline(arena, args.nbytes, nr);
		ta_role_unlock(role);
		return nr;
	}
	slot = &arena->slots.slot[nr];
	build = slot->capacity < args.nbytes;
	args.slot = nr;
	args.generation = slot->generation;
	args.offset = ta_slot_offset(arena, nr);
	args.open = ta_slots_open(&arena->slots);
	/* Goes on, through the publication, until every slot is free again. */
	ta_arena_idle_later(arena);
	ta_role_unlock(role);

	if (build) {
		err = build_acquired(arena, nr, args.nbytes);
		if (err)
			return err;
	}
	trace_ta_acquire(arena, &args, build);
	if (!ta_copy_out(user, &args, sizeof(args)))
		return 0;

	/* The caller never learned its generation: nobody else will. */
	mutex_lock(&arena->lock);
	abort_slot(arena, nr, args.generation);
	mutex_unlock(&arena->lock);
	return -EFAULT;
}

static int check_publish(const struct tensorarena_publish *args)
{
	if (args->flags & ~TENSORARENA_PUBLISH_STREAM || args->reserved ||
	    args->meta_bytes > TENSORARENA_META_BYTES ||
	    args->nr_readers > TENSORARENA_MAX_READERS)
		return -EINVAL;
	if (args->flags & TENSORARENA_PUBLISH_STREAM)
		return -EOPNOTSUPP;
	return 0;
}

static void wake_addressed(struct ta_arena *arena, u64 addressed)
{
	u64 left;

	for (left = addressed & arena->slots.claimed; left; left &= left - 1)
		ta_role_wake(arena->seat[__ffs64(left)], EPOLLIN | EPOLLRDNORM);
}

static int publish_locked(struct ta_arena *arena,
			  const struct tensorarena_publish *args,
			  const u64 *readers)
{
	u64 mask = ~0ULL;
	int err;

	lockdep_assert_held(&arena->lock);
	/* The mask must not be given seats of the dead. */
	ta_arena_sweep(arena);
	if (args->nr_readers) {
		err = ta_slots_mask(&arena->slots, readers, args->nr_readers,
				    &mask);
		if (err)
			return err;
	}
	return ta_slots_publish(&arena->slots, args->slot, args->generation,
				args->nbytes, mask, args->meta,
				args->meta_bytes, ktime_get_ns());
}

static long writer_publish(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
	u64 readers[TENSORARENA_MAX_READERS];
	struct tensorarena_publish args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	err = check_publish(&args);
	if (err)
		return err;
	if (copy_from_user(readers, u64_to_user_ptr(args.readers),
			   args.nr_readers * sizeof(readers[0])))
		return -EFAULT;

	err = ta_role_lock(role);
	if (err)
		return err;
	err = publish_locked(arena, &args, readers);
	if (err >= 0) {
		/* Of a slot that nobody was addressed with it is none. */
		u64 addressed = arena->slots.slot[args.slot].addressed;

		trace_ta_publish(arena, &args, addressed);
		wake_addressed(arena, addressed);
	}
	if (!err)
		ta_arena_slots_freed(arena);
	ta_role_unlock(role);
	if (err < 0)
		return err;
	args.addressed = err;
	return ta_copy_out(user, &args, sizeof(args));
}

static long writer_abort(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_slot_ref args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	err = abort_slot(role->arena, args.slot, args.generation);
	ta_role_unlock(role);
	return err;
}

static long writer_retract(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
	struct tensorarena_retract args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	/* The dead do not keep what they have seen. */
	ta_arena_sweep(arena);
	err = ta_slots_retract(&arena->slots, args.slot, args.generation,
			       &args.pending);
	if (err >= 0) {
		args.retracted = err;
		trace_ta_retract(arena, &args);
		if (!args.pending)
			ta_arena_slots_freed(arena);
	}
	ta_role_unlock(role);
	if (err < 0)
		return err;
	return ta_copy_out(user, &args, sizeof(args));
}

static long evict_reader(struct ta_role *role, u64 reader)
{
	struct ta_arena *arena = role->arena;
	long freed;
	int seat;

	freed = ta_role_lock(role);
	if (freed)
		return freed;
	seat = ta_slots_seat_of(&arena->slots, reader);
	freed = seat < 0 ? seat :
			   ta_role_leave(arena->seat[seat], TA_END_EVICTED);
	ta_role_unlock(role);
	return freed;
}

static long close_unclaimed(struct ta_role *role, u64 seat)
{
	long freed;

	freed = ta_role_lock(role);
	if (freed)
		return freed;
	freed = ta_slots_close_unclaimed(&role->arena->slots, seat);
	if (freed >= 0)
		trace_ta_close_seat(role->arena, seat, freed);
	if (freed > 0)
		ta_arena_slots_freed(role->arena);
	ta_role_unlock(role);
	return freed;
}

static long writer_evict(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_evict args;
	long freed;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags & ~TENSORARENA_EVICT_SEAT)
		return -EINVAL;

	freed = args.flags & TENSORARENA_EVICT_SEAT ?
			close_unclaimed(role, args.reader) :
			evict_reader(role, args.reader);
	if (freed < 0)
		return freed;
	args.freed = freed;
	return ta_copy_out(user, &args, sizeof(args));
}

static const struct ta_ioctl writer_ioctls[] = {
	{ TENSORARENA_ACQUIRE, 40, writer_acquire },
	{ TENSORARENA_PUBLISH, 304, writer_publish },
	{ TENSORARENA_ABORT, 16, writer_abort },
	{ TENSORARENA_POPULATE, 24, ta_writer_populate },
	{ TENSORARENA_TRIM, 32, ta_writer_trim },
	{ TENSORARENA_EVICT, 16, writer_evict },
	{ TENSORARENA_STATS, 160, ta_writer_stats },
	{ TENSORARENA_RETRACT, 24, writer_retract },
	{ TENSORARENA_DETACH, 8, ta_role_detach },
};

static long writer_ioctl(struct file *file, unsigned int cmd,
			 unsigned long arg)
{
	return ta_ioctl_dispatch(writer_ioctls, ARRAY_SIZE(writer_ioctls),
				 file->private_data, cmd, arg);
}

static __poll_t writer_poll(struct file *file, poll_table *wait)
{
	struct ta_role *role = file->private_data;
	__poll_t events = 0;

	/* First this, then the lock: pairs with ta_role_is_polled(). */
	poll_wait(file, &role->wait, wait);
	mutex_lock(&role->arena->lock);
	if (role->state != TA_ROLE_LIVE)
		events = EPOLLERR | EPOLLHUP;
	else if (role->arena->slots.nr_state[TA_SLOT_FREE])
		events = EPOLLOUT | EPOLLWRNORM;
	else
		role->arena->writer_waits++;
	ta_arena_idle_later(role->arena);
	mutex_unlock(&role->arena->lock);
	return events;
}

static const struct file_operations writer_fops = {
	.owner			= THIS_MODULE,
	.llseek			= noop_llseek,
	.unlocked_ioctl		= writer_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.poll			= writer_poll,
	.mmap			= ta_role_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.flush			= ta_role_flush,
	.release		= ta_role_release,
};

struct file *ta_writer_open(struct ta_arena *arena)
{
	struct ta_role *role;
	struct file *file;

	file = ta_role_open(arena, "writer", O_RDWR, &writer_fops);
	if (IS_ERR(file))
		return file;
	role = file->private_data;
	mutex_lock(&arena->lock);
	role->is_writer = true;
	role->state = TA_ROLE_LIVE;
	arena->writer = role;
	mutex_unlock(&arena->lock);
	return file;
}
