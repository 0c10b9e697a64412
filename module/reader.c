// SPDX-License-Identifier: GPL-2.0-only
/* A reader's file: its commands and poll. */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "arena.h"
#include "trace.h"

/* Tells the caller, once, that TRIM found pinned pages; under the lock. */
static void tell_wanted(struct ta_role *role, struct tensorarena_borrow *args)
{
	args->wanted = role->trim_wanted;
	role->trim_wanted = false;
}

/* What was told has not reached the caller after all; same lock. */
static void untell(struct ta_role *role, const struct tensorarena_borrow *args)
{
	if (!args->wanted)
		return;
	role->trim_wanted = true;
	ta_role_wake(role, EPOLLIN | EPOLLRDNORM);
}

/* Tells the caller about a publication it now holds; same lock. */
static void describe(const struct ta_arena *arena, u32 nr,
		     struct tensorarena_borrow *args)
{
	const struct ta_slot *slot = &arena->slots.slot[nr];

	args->ticket.arena = arena->id;
	args->ticket.generation = slot->generation;
	args->ticket.nbytes = slot->nbytes;
	args->ticket.slot = nr;
	args->offset = ta_slot_offset(arena, nr);
	args->meta_bytes = slot->meta_bytes;
	memcpy(args->meta, slot->meta, sizeof(args->meta));
}

static long reader_next(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
	struct tensorarena_borrow args;
	int err, nr;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	memset(&args, 0, sizeof(args));

	err = ta_role_lock(role);
	if (err)
		return err;
	nr = ta_slots_next(&arena->slots, role->seat);
	if (nr >= 0) {
		describe(arena, nr, &args);
		trace_ta_next(role, nr);
	}
	tell_wanted(role, &args);
	ta_role_unlock(role);
	if (nr < 0 && !args.wanted)
		return nr;
	if (!ta_copy_out(user, &args, sizeof(args)))
		return min(nr, 0);

	/*
	 * The caller has not seen it after all: let it come again, also to a
	 * thread that has found nothing meanwhile and sleeps in poll.
	 */
	mutex_lock(&arena->lock);
	if (nr >= 0) {
		ta_slots_unsee(&arena->slots, role->seat, nr,
			       args.ticket.generation);
		ta_role_wake(role, EPOLLIN | EPOLLRDNORM);
	}
	untell(role, &args);
	mutex_unlock(&arena->lock);
	return -EFAULT;
}

static long reader_borrow(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
	struct tensorarena_borrow args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags || args.reserved || args.ticket.reserved)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	if (args.ticket.arena == arena->id)
		err = ta_slots_borrow(&arena->slots, role->seat, &args.ticket);
	else
		err = -ESTALE;
	if (!err) {
		describe(arena, args.ticket.slot, &args);
		tell_wanted(role, &args);
		trace_ta_borrow(role, args.ticket.slot);
	}
	ta_role_unlock(role);
	if (err || !ta_copy_out(user, &args, sizeof(args)))
		return err;

	/* The slot stays held: BORROW may be repeated. */
	mutex_lock(&arena->lock);
	untell(role, &args);
	mutex_unlock(&arena->lock);
	return -EFAULT;
}

static long reader_release(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct ta_arena *arena = role->arena;
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
	err = ta_slots_release(&arena->slots, role->seat, args.slot,
			       args.generation);
	if (err >= 0)
		trace_ta_release(role, args.slot, err);
	if (err > 0)
		ta_arena_slots_freed(arena);
	ta_role_unlock(role);
	return min(err, 0);
}

static const struct ta_ioctl reader_ioctls[] = {
	{ TENSORARENA_NEXT, 312, reader_next },
	{ TENSORARENA_BORROW, 312, reader_borrow },
	{ TENSORARENA_RELEASE, 16, reader_release },
	{ TENSORARENA_DETACH, 8, ta_role_detach },
};

static long reader_ioctl(struct file *file, unsigned int cmd,
			 unsigned long arg)
{
	return ta_ioctl_dispatch(reader_ioctls, ARRAY_SIZE(reader_ioctls),
				 file->private_data, cmd, arg);
}

static __poll_t reader_poll(struct file *file, poll_table *wait)
{
	struct ta_role *role = file->private_data;
	struct ta_slots *slots = &role->arena->slots;
	__poll_t events = 0;

	/* First this, then the lock: pairs with ta_role_is_polled(). */
	poll_wait(file, &role->wait, wait);
	mutex_lock(&role->arena->lock);
	if (role->state != TA_ROLE_LIVE)
		events = EPOLLERR | EPOLLHUP;
	else if (ta_slots_has_unseen(slots, role->seat))
		events = EPOLLIN | EPOLLRDNORM;
	else if (slots->writer_gone)
		events = EPOLLHUP;
	else if (role->trim_wanted)
		events = EPOLLIN | EPOLLRDNORM;
	else
		role->arena->reader_waits++;
	/* As of a socket whose peer is gone: there may be something to read. */
	if (slots->writer_gone)
		events |= EPOLLRDHUP;
	ta_arena_idle_later(role->arena);
	mutex_unlock(&role->arena->lock);
	return events;
}

static const struct file_operations reader_fops = {
	.owner			= THIS_MODULE,
	.llseek			= noop_llseek,
	.unlocked_ioctl		= reader_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.poll			= reader_poll,
	.mmap			= ta_role_mmap,
	.get_unmapped_area	= thp_get_unmapped_area,
	.flush			= ta_role_flush,
	.release		= ta_role_release,
};

struct file *ta_reader_open(struct ta_arena *arena,
			    struct tensorarena_attach *args)
{
	bool writable = arena->flags & TENSORARENA_CREATE_WRITABLE_READERS;
	struct ta_role *role;
	struct file *file;
	int err;

	file = ta_role_open(arena, "reader", writable ? O_RDWR : O_RDONLY,
			    &reader_fops);
	if (IS_ERR(file))
		return file;
	role = file->private_data;

	mutex_lock(&arena->lock);
	/* A dead reader's seat, or a dead writer's arena, is not to be had. */
	ta_arena_sweep(arena);
	err = ta_slots_attach(&arena->slots, &role->seat, &role->reader);
	if (!err) {
		role->state = TA_ROLE_LIVE;
		arena->seat[role->seat] = role;
		trace_ta_attach(role);
	}
	mutex_unlock(&arena->lock);
	if (err) {
		fput(file);
		return ERR_PTR(err);
	}

	args->arena_flags = arena->flags;
	args->slot_bytes = arena->slots.slot_bytes;
	args->stride = arena->stride;
	args->reader = role->reader;
	args->slots = arena->slots.nr;
	args->seat = role->seat;
	return file;
}
