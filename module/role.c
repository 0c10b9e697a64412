// SPDX-License-Identifier: GPL-2.0-only
/*
 * Roles: who may act through a writer's or reader's file, and when they are
 * dead.
 *
 * The owner is the address space that first used the file.  Its death is what
 * ends a role, not the closing of the file: a forked child, a child sharing
 * the descriptor table, or a descriptor in a socket's queue can keep a file
 * open long after the worker is gone.  Death is seen by the first of
 *
 *  1. a mapping going with its address space, see ta_vma_close();
 *  2. the descriptor table going with the owner's last thread, see
 *     ta_role_flush(), which covers files that were never mapped and address
 *     spaces that a vfork() child keeps;
 *  3. a sweep for owners whose address space has no users left, when a slot is
 *     wanted and none is free, when a publication is about to be addressed,
 *     and once a second while anything is pending or anybody polls;
 *  4. the last close of the file.
 *
 * exec() is death: the new image is another address space.  So is the writing of
 * a core dump, which may take minutes, or for ever where nobody reads it, and
 * which none of the four sees the end of before it is over: no thread returns
 * from there, and those on other processors that have yet to be stopped are as
 * any who is thrown out.  It is looked for once a second, see
 * ta_arena_sweep_dumping().
 *
 * An mmu_notifier would make the sweep needless.  Every unmapping, fork and
 * reclaim of an address space that does much besides would walk its list, too,
 * and what the sweep is left with can wait a second: an owner that has nothing
 * mapped and has closed its descriptor, or shares the table it is in.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "arena.h"
#include "trace.h"

struct file *ta_role_open(struct ta_arena *arena, const char *name, int flags,
			  const struct file_operations *fops)
{
	struct ta_role *role;
	struct file *file;

	role = kzalloc(sizeof(*role), GFP_KERNEL_ACCOUNT);
	if (!role)
		return ERR_PTR(-ENOMEM);
	init_waitqueue_head(&role->wait);

	file = ta_file_open(name, fops, role, flags | O_CLOEXEC,
			    ta_arena_bytes(arena));
	if (IS_ERR(file)) {
		kfree(role);
		return file;
	}
	kref_get(&arena->ref);
	role->arena = arena;
	role->inode = file_inode(file);
	role->uid = current_uid();
	/* Until it is seated there is nothing for a release to give back. */
	role->state = TA_ROLE_DETACHED;
	mutex_lock(&arena->lock);
	list_add(&role->files, &arena->files);
	mutex_unlock(&arena->lock);
	return file;
}

/*
 * Settles or checks ownership before a role acts: 0, -EIO, -EOWNERDEAD or
 * -ESHUTDOWN.
 */
static int enter(struct ta_role *role)
{
	lockdep_assert_held(&role->arena->lock);

	/* Kernel threads have none; io_uring workers have their creator's. */
	if (!current->mm)
		return -EIO;
	if (role->state == TA_ROLE_EVICTED)
		return -EOWNERDEAD;
	if (role->state == TA_ROLE_DETACHED)
		return -ESHUTDOWN;
	if (role->state == TA_ROLE_DIED)
		return -EIO;
	if (!role->owner) {
		mmgrab(current->mm);
		role->owner_tgid = get_pid(task_tgid(current));
		/*
		 * Pairs with the READ_ONCE() in ta_vma_fault(): no order is
		 * needed, since a mapping comes after this, under mmap_lock.
		 */
		WRITE_ONCE(role->owner, current->mm);
	}
	return role->owner == current->mm ? 0 : -EIO;
}

int ta_role_lock(struct ta_role *role)
{
	int err;

	mutex_lock(&role->arena->lock);
	err = enter(role);
	if (err)
		mutex_unlock(&role->arena->lock);
	return err;
}

void ta_role_unlock(struct ta_role *role)
{
	mutex_unlock(&role->arena->lock);
}

static enum ta_leave leave_reason(enum ta_role_state why)
{
	switch (why) {
	case TA_ROLE_EVICTED:
		return TA_LEAVE_EVICTED;
	case TA_ROLE_DIED:
		return TA_LEAVE_DIED;
	default:
		return TA_LEAVE_DETACHED;
	}
}

bool ta_role_is_polled(struct ta_role *role)
{
	lockdep_assert_held(&role->arena->lock);
	/*
	 * Pairs with poll_wait() before mutex_lock() in writer_poll() and
	 * reader_poll(): a poller that is not here yet will see what has
	 * changed.
	 */
	return waitqueue_active(&role->wait);
}

void ta_role_wake(struct ta_role *role, __poll_t events)
{
	if (ta_role_is_polled(role))
		wake_up_interruptible_poll(&role->wait, events);
}

static void wake_readers(struct ta_arena *arena)
{
	u32 seat;

	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++)
		if (arena->seat[seat])
			ta_role_wake(arena->seat[seat],
				     EPOLLIN | EPOLLRDNORM | EPOLLHUP |
				     EPOLLRDHUP);
}

static bool is_seated(const struct ta_role *role)
{
	const struct ta_arena *arena = role->arena;

	return role->is_writer ? arena->writer == role :
				 arena->seat[role->seat] == role;
}

static void trace_end(const struct ta_role *role, enum ta_end how, int freed)
{
	if (role->state == TA_ROLE_DIED)
		trace_ta_death(role, how, freed);
	else if (role->state == TA_ROLE_EVICTED)
		trace_ta_evict(role, freed);
	else
		trace_ta_detach(role, freed);
}

static enum ta_role_state final_state(enum ta_end how)
{
	switch (how) {
	case TA_END_DETACHED:
	case TA_END_CLOSED:
		return TA_ROLE_DETACHED;
	case TA_END_EVICTED:
		return TA_ROLE_EVICTED;
	default:
		return TA_ROLE_DIED;
	}
}

/* From here on a role may neither act nor fault; under the lock. */
static void stop(struct ta_role *role, enum ta_end how)
{
	lockdep_assert_held(&role->arena->lock);
	if (role->state != TA_ROLE_LIVE)
		return;
	/* Pairs with the READ_ONCE() in ta_vma_fault(): revoke(). */
	WRITE_ONCE(role->state, final_state(how));
	ta_role_wake(role, EPOLLERR | EPOLLHUP);
}

int ta_role_end(struct ta_role *role, enum ta_end how)
{
	struct ta_arena *arena = role->arena;
	int freed;

	lockdep_assert_held(&arena->lock);
	stop(role, how);
	if (!is_seated(role))
		return 0;

	if (role->is_writer) {
		arena->writer = NULL;
		freed = ta_slots_writer_gone(&arena->slots);
		wake_readers(arena);
	} else {
		arena->seat[role->seat] = NULL;
		freed = ta_slots_leave(&arena->slots, role->seat,
				       leave_reason(role->state));
	}
	trace_end(role, how, freed);
	if (freed || role->is_writer)
		ta_arena_slots_freed(arena);
	return freed;
}

/* Zaps the mappings of a stopped role's inode; without the lock. */
static void revoke(struct ta_arena *arena, struct inode *inode)
{
	/*
	 * A fault that read the role's state as LIVE has locked its folio by
	 * the time the drain begins, and has mapped it when the drain ends.
	 * One that comes to ta_pages.sem after the drain reads it as stopped:
	 * the drain's down_write() pairs with the fault's down_read().
	 */
	ta_pages_drain(&arena->pages);
	unmap_mapping_range(inode->i_mapping, 0, 0, 1);
}

/* The role with this id, or the writer's for 0, if it is still seated. */
static struct ta_role *seated(struct ta_arena *arena, u32 seat, u64 reader)
{
	if (!reader)
		return arena->writer;
	if (ta_slots_seat_of(&arena->slots, reader) != seat)
		return NULL;
	return arena->seat[seat];
}

int ta_role_leave(struct ta_role *role, enum ta_end how)
{
	struct ta_arena *arena = role->arena;
	struct inode *inode = role->inode;
	const u64 reader = role->reader;
	const u32 seat = role->seat;

	ihold(inode);
	stop(role, how);
	mutex_unlock(&arena->lock);

	/* Before what it has seen is filled anew it must have lost sight of it. */
	revoke(arena, inode);
	iput(inode);

	mutex_lock(&arena->lock);
	/* It may have closed its file; its id tells it from a successor. */
	role = seated(arena, seat, reader);
	return role ? ta_role_end(role, how) : 0;
}

long ta_role_detach(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_detach args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	args.freed = ta_role_leave(role, TA_END_DETACHED);
	ta_role_unlock(role);
	return ta_copy_out(user, &args, sizeof(args));
}

/*
 * mm_users is 0 from the moment exit_mmap() may run.  The address space can
 * not come back: mmget_not_zero() is the only way in.  No barrier: what is missed
 * now the next sweep sees.  On the strength of it nothing is read, and what is
 * written, a slot that the owner was reading, is written after: a store that
 * depends on this load.  The owner's loads came before mmput()'s atomic.
 */
static bool owner_is_dead(const struct ta_role *role)
{
	return role->owner && !atomic_read(&role->owner->mm_users);
}

/* A leader that is gone keeps its pid, and so its signals, to the last thread. */
static bool owner_dumps_core(const struct ta_role *role)
{
	const struct task_struct *leader;
	bool dumps;

	rcu_read_lock();
	leader = pid_task(role->owner_tgid, PIDTYPE_TGID);
	dumps = leader && READ_ONCE(leader->signal->core_state);
	rcu_read_unlock();
	return dumps;
}

void ta_arena_sweep(struct ta_arena *arena)
{
	u32 seat;

	lockdep_assert_held(&arena->lock);
	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++) {
		struct ta_role *role = arena->seat[seat];

		if (role && owner_is_dead(role))
			ta_role_end(role, TA_END_DIED_FOUND);
	}
	if (arena->writer && owner_is_dead(arena->writer))
		ta_role_end(arena->writer, TA_END_DIED_FOUND);
}

void ta_arena_sweep_dumping(struct ta_arena *arena)
{
	u32 seat;

	for (seat = 0; seat < TENSORARENA_MAX_READERS; seat++) {
		struct ta_role *role = arena->seat[seat];

		if (role && owner_dumps_core(role))
			ta_role_leave(role, TA_END_DIED_DUMPING);
	}
	if (arena->writer && owner_dumps_core(arena->writer))
		ta_role_leave(arena->writer, TA_END_DIED_DUMPING);
}

int ta_role_flush(struct file *file, fl_owner_t id)
{
	struct ta_role *role = file->private_data;

	/*
	 * Every close of a duplicate comes here, too: only exit counts.  Who is
	 * the last to give up the descriptors sees that all threads have counted
	 * themselves away: put_files_struct() pairs with itself.
	 */
	if (!(current->flags & PF_EXITING) ||
	    atomic_read(&current->signal->live))
		return 0;

	mutex_lock(&role->arena->lock);
	/* A vfork() child may still be running in the mapping. */
	if (role->state == TA_ROLE_LIVE &&
	    role->owner_tgid == task_tgid(current))
		ta_role_leave(role, TA_END_DIED_EXITED);
	mutex_unlock(&role->arena->lock);
	return 0;
}

int ta_role_release(struct inode *inode, struct file *file)
{
	struct ta_role *role = file->private_data;
	struct ta_arena *arena = role->arena;

	mutex_lock(&arena->lock);
	ta_role_end(role, owner_is_dead(role) ? TA_END_DIED_CLOSED :
						TA_END_CLOSED);
	list_del(&role->files);
	mutex_unlock(&arena->lock);

	if (role->owner)
		mmdrop(role->owner);
	put_pid(role->owner_tgid);
	kfree(role);
	ta_arena_put(arena);
	ta_file_closed();
	return 0;
}
