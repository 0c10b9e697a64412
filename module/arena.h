/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tensorarena: what the module's files share.
 *
 * Ownership
 *   A writer or reader file has one role, freed by the file's release.  A
 *   role holds a reference to its arena; the last one frees the arena with
 *   its pages and its sysfs directory.  An arena points back at its live
 *   roles: ->writer and ->seat[], cleared under the arena's lock before a
 *   role goes.  Mappings pin their file, and so their role and arena.
 *
 * Lock order
 *   mmap_lock -> ta_arena.lock -> ta_pages.sem -> folio lock -> i_mmap
 *   ta_registry_lock -> ta_arena.lock, ta_pages.sem
 *
 *   The fault handler takes ta_pages.sem and the folio lock, never the
 *   arena's lock.  No memory is allocated and no user memory is touched under
 *   any of our locks.  So the shrinker, which runs in anybody's allocation,
 *   may take them, but for a folio's lock, which its own thread may hold for a
 *   fault: that, and ta_pages.sem, whose holders wait for it, it only tries.
 */
#ifndef TA_ARENA_H
#define TA_ARENA_H

#include <linux/bits.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "ioctl.h"
#include "pages.h"
#include "slots.h"

/* Arenas are as large as memory, and so are offsets in them. */
#if BITS_PER_LONG != 64
#error "tensorarena is for 64-bit kernels"
#endif

/* Far above any slot: where a control page will be mapped. */
#define TA_CTL_OFFSET	BIT_ULL(52)

struct file;
struct inode;
struct pid;
struct shrink_control;
struct ta_figures;

#define TA_CREATE_FLAGS	(TENSORARENA_CREATE_WRITABLE_READERS | \
			 TENSORARENA_CREATE_CONTIGUOUS | \
			 TENSORARENA_CREATE_FALLBACK_SMALL | \
			 TENSORARENA_CREATE_NODE_STRICT)

/**
 * enum ta_role_state - whether a role may still act
 * @TA_ROLE_LIVE: yes
 * @TA_ROLE_DETACHED: it left by DETACH or close, or was never seated
 * @TA_ROLE_EVICTED: a reader the writer threw out
 * @TA_ROLE_DIED: the owner's address space is gone
 *
 * Once LIVE it changes once, under the arena's lock.  The fault handler reads
 * it under ta_pages.sem; see revoke() in role.c for why that is enough.
 */
enum ta_role_state {
	TA_ROLE_LIVE,
	TA_ROLE_DETACHED,
	TA_ROLE_EVICTED,
	TA_ROLE_DIED,
};

/**
 * enum ta_end - how a role ends, and for a death, by what it was seen
 * @TA_END_DETACHED: DETACH
 * @TA_END_CLOSED: last close of its file by an owner that lives
 * @TA_END_EVICTED: EVICT
 * @TA_END_DIED_UNMAPPED: its mapping went with its owner's address space
 * @TA_END_DIED_EXITED: its owner's last thread closed its descriptors
 * @TA_END_DIED_FOUND: a sweep found its owner dead
 * @TA_END_DIED_CLOSED: last close of its file, after its owner's death
 * @TA_END_DIED_DUMPING: its owner is being written to a core dump
 */
enum ta_end {
	TA_END_DETACHED,
	TA_END_CLOSED,
	TA_END_EVICTED,
	TA_END_DIED_UNMAPPED,
	TA_END_DIED_EXITED,
	TA_END_DIED_FOUND,
	TA_END_DIED_CLOSED,
	TA_END_DIED_DUMPING,
};

/**
 * enum ta_trim_why - on whose behalf memory is freed
 * @TA_TRIM_WRITER: TRIM
 * @TA_TRIM_ORPHAN: the writer is gone
 * @TA_TRIM_RECLAIM: the machine is short of memory
 */
enum ta_trim_why {
	TA_TRIM_WRITER,
	TA_TRIM_ORPHAN,
	TA_TRIM_RECLAIM,
};

/**
 * struct ta_role - a writer's or reader's file
 * @arena: what it is a role in; holds a reference
 * @state: enum ta_role_state
 * @is_writer: which role
 * @seat: reader: its seat
 * @reader: reader: its id
 * @trim_wanted: reader: TRIM has found pinned pages since NEXT or BORROW said so
 *	last; under the arena's lock
 * @inode: the file's own inode, whose mappings can be zapped alone
 * @owner: address space that first used the file, NULL before; mmgrab()ed, so
 *	the pointer stays unique while we compare it
 * @owner_tgid: thread group that first used the file
 * @wait: pollers of this file
 * @files: link in the arena's files
 * @uid: who opened it
 */
struct ta_role {
	struct ta_arena *arena;
	enum ta_role_state state;
	bool is_writer;
	u32 seat;
	u64 reader;
	bool trim_wanted;
	struct inode *inode;
	struct mm_struct *owner;
	struct pid *owner_tgid;
	wait_queue_head_t wait;
	struct list_head files;
	kuid_t uid;
};

/**
 * struct ta_arena - N slots, one writer, up to 64 readers
 * @ref: one for each role
 * @registered: link in the list of arenas; under ta_registry_lock
 * @id: never reused while the module is loaded
 * @cookie: secret that ATTACH presents
 * @flags: TENSORARENA_CREATE_*
 * @stride: distance of slots in the file
 * @uid: creator, for the limit per uid
 * @dev: directory in /sys/class/tensorarena
 * @lock: protects the fields from here to @idle
 * @slots: the state machine
 * @writer: the writer's role while it lives
 * @seat: the live reader on each seat
 * @files: all roles, also those that have ended, until their file is closed
 * @reclaimed_bytes: memory the shrinker ever took
 * @writer_waits: times the writer polled and no slot was free
 * @reader_waits: times a reader polled and nothing was there to read
 * @idle: looks for dead owners once a second while anything is pending or
 *	anybody polls, and frees the memory once the writer is gone
 * @pages: the slots' memory; has a lock of its own
 */
struct ta_arena {
	struct kref ref;
	struct list_head registered;
	u64 id;
	u8 cookie[TENSORARENA_COOKIE_BYTES];
	u32 flags;
	u64 stride;
	kuid_t uid;
	struct device *dev;

	struct mutex lock; /* of the fields from here to @idle */
	struct ta_slots slots;
	struct ta_role *writer;
	struct ta_role *seat[TENSORARENA_MAX_READERS];
	struct list_head files;
	u64 reclaimed_bytes;
	u64 writer_waits;
	u64 reader_waits;
	struct delayed_work idle;

	struct ta_pages pages;
};

static inline u64 ta_arena_bytes(const struct ta_arena *arena)
{
	return arena->slots.nr * arena->stride;
}

static inline u64 ta_slot_offset(const struct ta_arena *arena, u32 slot)
{
	return slot * arena->stride;
}

/* arena.c */
struct ta_arena *ta_arena_create(const struct tensorarena_create *args);
/* The arena with this id and cookie, referenced, or -EACCES. */
struct ta_arena *ta_arena_find(u64 id, const u8 *cookie);
void ta_arena_put(struct ta_arena *arena);
/* State, counters, memory and ages at @now; no reader rows; under the lock. */
void ta_arena_stats(struct ta_arena *arena, u64 now,
		    struct tensorarena_stats *st);
void ta_arena_info(struct tensorarena_info *info);
/* Bytes that count against max_total_bytes. */
u64 ta_arena_charged(const struct ta_arena *arena);
/* The figures of all arenas; counters of those that are gone included. */
void ta_arena_totals(struct ta_figures *sum);
/* Calls @fn for every arena, and keeps each meanwhile. */
void ta_arena_for_each(void (*fn)(struct ta_arena *arena, void *arg),
		       void *arg);
/* Adds up @fn over all arenas; for reclaim: 0 rather than wait for a lock. */
unsigned long ta_arena_sum(unsigned long (*fn)(struct ta_arena *arena,
					       struct shrink_control *sc),
			   struct shrink_control *sc);

/* role.c */
/* A file whose role is not live yet: the caller seats it. */
struct file *ta_role_open(struct ta_arena *arena, const char *name, int flags,
			  const struct file_operations *fops);
/*
 * Takes the arena's lock for a role that is to act, and settles or checks its
 * ownership.  0, with the lock held, or -EIO, -EOWNERDEAD or -ESHUTDOWN.
 */
int ta_role_lock(struct ta_role *role);
void ta_role_unlock(struct ta_role *role);
/* Whether anybody polls a role's file; under the arena's lock. */
bool ta_role_is_polled(struct ta_role *role);
/* Wakes who does; same lock. */
void ta_role_wake(struct ta_role *role, __poll_t events);
/*
 * Stops a role and takes it off its seat, which frees its slots; under the
 * arena's lock.  Returns how many that were.
 */
int ta_role_end(struct ta_role *role, enum ta_end how);
/*
 * The same for one that may be looking: stops, zaps its mappings, ends it, in
 * this order, so that nobody who has left can look on as his slots fill with
 * what is not meant for him.  Called with the lock held, which it drops
 * meanwhile.
 */
int ta_role_leave(struct ta_role *role, enum ta_end how);
/* Ends every role whose owner is dead; under the arena's lock. */
void ta_arena_sweep(struct ta_arena *arena);
/* And those whose owner dumps core; drops the lock meanwhile. */
void ta_arena_sweep_dumping(struct ta_arena *arena);
/* TENSORARENA_DETACH, for either kind of file. */
long ta_role_detach(void *self, const struct ta_user *user);
int ta_role_flush(struct file *file, fl_owner_t id);
int ta_role_release(struct inode *inode, struct file *file);

/* mapping.c */
int ta_role_mmap(struct file *file, struct vm_area_struct *vma);

/* idle.c */
/* To be called under the lock whenever slots have become free. */
void ta_arena_slots_freed(struct ta_arena *arena);
/* Keeps sweeping while anything is pending or anybody polls; same lock. */
void ta_arena_idle_later(struct ta_arena *arena);
void ta_arena_idle_work(struct work_struct *work);
int ta_idle_init(void);
void ta_idle_exit(void);

/* trim.c */
/*
 * Frees the memory of idle slots until at most @keep_bytes are held; returns
 * the bytes freed.  @busy, unless NULL: slots kept because they are pinned.
 * Without the lock.
 */
u64 ta_arena_trim(struct ta_arena *arena, u64 keep_bytes,
		  enum ta_trim_why why, u32 *busy);
int ta_shrinker_init(void);
void ta_shrinker_exit(void);

/* writer.c, reader.c */
struct file *ta_writer_open(struct ta_arena *arena);
struct file *ta_reader_open(struct ta_arena *arena,
			    struct tensorarena_attach *args);

/* inode.c */
struct file *ta_file_open(const char *name, const struct file_operations *fops,
			  void *private_data, int flags, u64 bytes);
/* To be called from a file's release. */
void ta_file_closed(void);

/* sysfs.c */
int ta_sysfs_init(const struct file_operations *control_fops);
void ta_sysfs_exit(void);
int ta_sysfs_add(struct ta_arena *arena);
void ta_sysfs_remove(struct ta_arena *arena);

/* debugfs.c */
void ta_debugfs_init(void);
void ta_debugfs_exit(void);

#endif /* TA_ARENA_H */
