/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * tensorarena: large tensors from one writer process to many reader processes
 *
 * This is the contract between the kernel module, the embedded engine (which
 * answers the same commands from a thread in the writer's process) and the
 * library.
 *
 * There are three kinds of file:
 *
 *   control node   /dev/tensorarena: INFO, CREATE, ATTACH
 *   writer file    made by CREATE: ACQUIRE, PUBLISH, ABORT, RETRACT, POPULATE,
 *                  TRIM, EVICT, STATS, DETACH; mmap read-write; poll
 *   reader file    made by ATTACH: NEXT, BORROW, RELEASE, DETACH; mmap
 *                  read-only; poll
 *
 * A command sent to the wrong kind of file is -ENOTTY.
 *
 * Every structure is size-extensible: the size travels in the command number.
 * A structure shorter than its first version is -EINVAL; one longer than is
 * known is accepted when the excess is zero and is -E2BIG otherwise.  Unknown
 * flags and non-zero reserved fields are -EINVAL.  The layout is the same for
 * 32-bit callers.
 *
 * Commands are atomic and may be called from any thread of the owner: the
 * address space that first used the file (its first mmap or command).  No
 * command blocks on another process; ACQUIRE and POPULATE may sleep while
 * memory is being allocated.  A file that nobody has used has no owner yet, so
 * that it can be handed on; until then only its last close, or EVICT, ends it.
 *
 * Errors (each command lists the ones special to it):
 *
 *   EINVAL      malformed request: flag, reserved field, range, slot number
 *   E2BIG       structure longer than known here, with a non-zero excess
 *   EFAULT      user memory not accessible
 *   ENOTTY      no such command on this kind of file
 *   EOPNOTSUPP  a flag this kernel or engine knows but cannot honour
 *   EPERM       CREATE: CONTIGUOUS without CAP_SYS_RESOURCE.  mmap: PROT_EXEC
 *   EAGAIN      ACQUIRE: no free slot.  NEXT: nothing to read yet
 *   EMSGSIZE    ACQUIRE: larger than a slot
 *   ENOMEM      no memory for slot pages or bookkeeping
 *   EDQUOT      a module limit would be exceeded
 *   ESTALE      the ticket, generation or reader id is no longer current
 *   ENXIO       the publication was not addressed to this reader
 *   EUSERS      ATTACH: every seat is taken
 *   EACCES      ATTACH: no arena with this id and cookie.  mmap: protection
 *   EPIPE       the writer is gone and nothing is left to read
 *   EOWNERDEAD  this reader was evicted
 *   ESHUTDOWN   this reader or writer has detached
 *   EIO         the caller is not the owner's address space, or that is gone
 *   EBUSY       TRIM: a slot's pages are pinned
 *   EINTR       a fatal signal arrived while memory was being built
 */
#ifndef _UAPI_TENSORARENA_H
#define _UAPI_TENSORARENA_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TENSORARENA_COOKIE_BYTES	16
#define TENSORARENA_META_BYTES		256
#define TENSORARENA_MAX_READERS		64
#define TENSORARENA_MAX_SLOTS		256

/* Slots start at multiples of slot_bytes rounded up to this (the stride). */
#define TENSORARENA_STRIDE_ALIGN	(2UL << 20)

/**
 * struct tensorarena_ticket - names one publication
 * @arena: id of the arena
 * @generation: how often the slot had been taken, to be written or to have its
 *	memory built or freed, when this was published
 * @nbytes: bytes published
 * @slot: index of the slot
 * @reserved: zero
 *
 * The only thing that needs to cross the message queue.  A ticket whose slot
 * has moved on never validates again.
 */
struct tensorarena_ticket {
	__u64 arena;
	__u64 generation;
	__u64 nbytes;
	__u32 slot;
	__u32 reserved;
};

/* ---- control node ---- */

/**
 * struct tensorarena_info - what this module offers (TENSORARENA_INFO)
 * @flags: in: zero
 * @features: out: TENSORARENA_FEATURE_* supported here
 * @ctl_offset: out: file offset of the control page; far above the slots
 * @ctl_bytes: out: size of the control page, 0 when there is none
 * @max_arena_bytes: out: largest slots * stride that CREATE accepts
 * @max_total_bytes: out: the same summed over all arenas
 * @total_bytes: out: slots * stride of the arenas that exist; of those whose
 *	writer is gone, the memory they still hold
 * @max_slots: out: most slots in one arena
 * @max_readers: out: most readers of one arena
 * @max_arenas: out: most arenas at one time
 * @max_arenas_per_uid: out: the same for one user
 * @arenas: out: arenas that exist
 * @reserved: zero
 */
struct tensorarena_info {
	__u64 flags;
	__u64 features;
	__u64 ctl_offset;
	__u64 ctl_bytes;
	__u64 max_arena_bytes;
	__u64 max_total_bytes;
	__u64 total_bytes;
	__u32 max_slots;
	__u32 max_readers;
	__u32 max_arenas;
	__u32 max_arenas_per_uid;
	__u32 arenas;
	__u32 reserved;
};

#define TENSORARENA_FEATURE_REVOKE	0x1ULL /* EVICT zaps mappings */
#define TENSORARENA_FEATURE_HUGE	0x2ULL /* slots are 2 MiB folios */
#define TENSORARENA_FEATURE_CONTIGUOUS	0x4ULL /* see CREATE_CONTIGUOUS */
#define TENSORARENA_FEATURE_STREAM	0x8ULL /* see PUBLISH_STREAM */

/*
 * Let readers map read-write.  DMA that a reader's device is still writing when
 * the reader dies or is evicted may then land in the slot's next tensor.
 */
#define TENSORARENA_CREATE_WRITABLE_READERS	0x1
/*
 * One physical extent a slot, or ACQUIRE declines with -ENOMEM.  Such a slot is
 * built whole, whatever the size of its first tensor.  Not together with
 * FALLBACK_SMALL.
 */
#define TENSORARENA_CREATE_CONTIGUOUS		0x2
/* Build slots from smaller folios when 2 MiB ones cannot be had. */
#define TENSORARENA_CREATE_FALLBACK_SMALL	0x4
/* Memory from @node or not at all. */
#define TENSORARENA_CREATE_NODE_STRICT		0x8

#define TENSORARENA_NODE_LOCAL	(-1) /* the node CREATE runs on */

/**
 * struct tensorarena_create - make an arena (TENSORARENA_CREATE)
 * @slot_bytes: in: largest tensor a slot takes; 1 or more
 * @slots: in: how many slots, 1 to max_slots
 * @seats: in: readers expected, 0 to max_readers; their seats are addressed
 *	by publications from the start, whether or not they have attached
 * @flags: in: TENSORARENA_CREATE_*; one this kernel cannot honour is
 *	-EOPNOTSUPP
 * @node: in: NUMA node for the slots, or TENSORARENA_NODE_LOCAL
 * @stride: out: distance of slots in the file, bytes
 * @arena: out: the arena's id
 * @cookie: out: secret that ATTACH must present
 * @fd: out: the writer file, O_CLOEXEC
 * @reserved: zero
 *
 * No slot memory is allocated.  -EDQUOT: over a limit.  -EPERM: CONTIGUOUS
 * memory is charged to no memory cgroup, so it takes CAP_SYS_RESOURCE.
 */
struct tensorarena_create {
	__u64 slot_bytes;
	__u32 slots;
	__u32 seats;
	__u32 flags;
	__s32 node;
	__u64 stride;
	__u64 arena;
	__u8 cookie[TENSORARENA_COOKIE_BYTES];
	__s32 fd;
	__u32 reserved;
};

/**
 * struct tensorarena_attach - become a reader (TENSORARENA_ATTACH)
 * @arena: in: the arena's id
 * @cookie: in: its secret
 * @flags: in: zero
 * @arena_flags: out: TENSORARENA_CREATE_* of the arena
 * @slot_bytes: out: as given to CREATE
 * @stride: out: distance of slots in the file, bytes
 * @reader: out: id of this attachment; never reused in the arena
 * @slots: out: number of slots
 * @seat: out: the seat taken, 0 to max_readers - 1
 * @fd: out: the reader file, O_CLOEXEC
 * @reserved: zero
 *
 * The lowest open seat that nobody has claimed is taken, with what has been
 * published to it so far; otherwise a closed seat is opened, for publications
 * from now on.  -EACCES: unknown id or wrong cookie.  -EPIPE: the writer is
 * gone.  -EUSERS: no seat left.  After -EFAULT the seat taken is closed again.
 */
struct tensorarena_attach {
	__u64 arena;
	__u8 cookie[TENSORARENA_COOKIE_BYTES];
	__u32 flags;
	__u32 arena_flags;
	__u64 slot_bytes;
	__u64 stride;
	__u64 reader;
	__u32 slots;
	__u32 seat;
	__s32 fd;
	__u32 reserved;
};

/* ---- writer file and reader file ---- */

/**
 * struct tensorarena_detach - leave (TENSORARENA_DETACH)
 * @flags: in: zero
 * @freed: out: slots that became free
 *
 * What the last close of the file does, without waiting for copies of the
 * descriptor that other processes may have.  A reader's seat is closed and
 * everything it had pending released; a writer's arena takes no more
 * publications, and readers see -EPIPE once they have read the rest.  The
 * file's mappings are revoked (touching them is SIGBUS).  Later commands and
 * mmap answer -ESHUTDOWN.
 */
struct tensorarena_detach {
	__u32 flags;
	__u32 freed;
};

/* ---- writer file ---- */

/**
 * struct tensorarena_acquire - take a free slot (TENSORARENA_ACQUIRE)
 * @nbytes: in: bytes wanted, 0 to slot_bytes
 * @flags: in: zero
 * @slot: out: the slot, now WRITING
 * @generation: out: its new generation
 * @offset: out: file offset of the slot, bytes
 * @open: out: seats a publication would address now; filling a slot for none
 *	is wasted work
 * @reserved: zero
 *
 * Memory for @nbytes is there when this returns.  -EMSGSIZE, -EAGAIN and
 * -ENOMEM are declines: nothing has changed except a counter.
 */
struct tensorarena_acquire {
	__u64 nbytes;
	__u32 flags;
	__u32 slot;
	__u64 generation;
	__u64 offset;
	__u32 open;
	__u32 reserved;
};

/*
 * Reserved: readers may start before the bytes are complete and follow a
 * watermark in the control page.  -EOPNOTSUPP without FEATURE_STREAM.
 */
#define TENSORARENA_PUBLISH_STREAM	0x1

/**
 * struct tensorarena_publish - hand a slot to readers (TENSORARENA_PUBLISH)
 * @generation: in: from ACQUIRE
 * @nbytes: in: bytes valid, at most what was acquired
 * @readers: in: address of @nr_readers reader ids (__u64 each)
 * @nr_readers: in: 0 addresses every open seat
 * @slot: in: from ACQUIRE
 * @flags: in: TENSORARENA_PUBLISH_*
 * @meta_bytes: in: bytes of @meta in use
 * @addressed: out: seats addressed; when 0 the slot is free again
 * @reserved: zero
 * @meta: in: opaque bytes that NEXT and BORROW hand to the readers
 *
 * -ESTALE: the slot is not being written at this generation, or a reader id
 * is not (or no longer) seated; nothing has changed.  -EFAULT may also mean
 * that the publication stands and only @addressed could not be stored.
 */
struct tensorarena_publish {
	__u64 generation;
	__u64 nbytes;
	__u64 readers;
	__u32 nr_readers;
	__u32 slot;
	__u32 flags;
	__u32 meta_bytes;
	__u32 addressed;
	__u32 reserved;
	__u8 meta[TENSORARENA_META_BYTES];
};

/**
 * struct tensorarena_slot_ref - one slot at one generation
 * @generation: in: the generation meant
 * @slot: in: the slot
 * @flags: in: zero
 *
 * TENSORARENA_ABORT gives an acquired slot back unpublished.
 * TENSORARENA_RELEASE says that this reader is done with a publication, seen
 * or not.  -ESTALE: not WRITING at this generation (ABORT), not held by this
 * reader any more (RELEASE).  -ENXIO: never addressed to this reader.
 */
struct tensorarena_slot_ref {
	__u64 generation;
	__u32 slot;
	__u32 flags;
};

/**
 * struct tensorarena_retract - call a publication back (TENSORARENA_RETRACT)
 * @generation: in: from ACQUIRE
 * @slot: in: from ACQUIRE
 * @flags: in: zero
 * @retracted: out: seats that had not seen it and never will
 * @pending: out: seats that have seen it and still hold it; when 0 the slot is
 *	free
 *
 * For a message that could not be sent after all.  To a seat that had neither
 * NEXTed nor BORROWed the publication it is as if released: BORROW answers
 * -ESTALE.  Who has seen it keeps it; one whose NEXT or BORROW then fails, with
 * -EFAULT for one, gets it again, so RETRACT may be repeated.  -ESTALE: nobody
 * has it pending, or it never was a publication.  -EFAULT may also mean that it
 * was called back and only the counts could not be stored.
 */
struct tensorarena_retract {
	__u64 generation;
	__u32 slot;
	__u32 flags;
	__u32 retracted;
	__u32 pending;
};

/**
 * struct tensorarena_populate - build slots ahead (TENSORARENA_POPULATE)
 * @nbytes: in: bytes each slot shall have memory for, at most slot_bytes
 * @slots: in: how many slots shall have that much
 * @flags: in: zero
 * @ready: out: slots that have that much now
 * @reserved: zero
 *
 * Only free slots are built.  -ENOMEM: not all could be built; the slots that
 * were remain built and are counted in @ready.
 */
struct tensorarena_populate {
	__u64 nbytes;
	__u32 slots;
	__u32 flags;
	__u32 ready;
	__u32 reserved;
};

/**
 * struct tensorarena_trim - free the memory of idle slots (TENSORARENA_TRIM)
 * @keep_bytes: in: stop once the arena holds no more than this
 * @flags: in: zero
 * @busy: out: free slots kept because their pages are pinned or referenced
 * @freed_bytes: out: memory given back
 * @allocated_bytes: out: memory the arena holds now
 *
 * A slot is freed whole or not at all.  -EBUSY: pinned slots kept the arena
 * above @keep_bytes; the readers are asked to unpin them (see @wanted in
 * struct tensorarena_borrow), once for each TRIM that says so.
 */
struct tensorarena_trim {
	__u64 keep_bytes;
	__u32 flags;
	__u32 busy;
	__u64 freed_bytes;
	__u64 allocated_bytes;
};

/* @reader is a seat number and the seat must be unclaimed. */
#define TENSORARENA_EVICT_SEAT	0x1

/**
 * struct tensorarena_evict - throw out a reader (TENSORARENA_EVICT)
 * @reader: in: reader id, or seat number with TENSORARENA_EVICT_SEAT
 * @flags: in: TENSORARENA_EVICT_*
 * @freed: out: slots that became free
 *
 * The seat is closed, the reader's mappings are revoked (touching them is
 * SIGBUS) and its file answers -EOWNERDEAD.  Pages it has pinned stay valid
 * memory, whatever the slot holds later.  -ESTALE: no such reader, or the seat
 * is closed or claimed.
 */
struct tensorarena_evict {
	__u64 reader;
	__u32 flags;
	__u32 freed;
};

/**
 * struct tensorarena_reader_stats - one open seat
 * @reader: reader id, 0 when nobody has claimed the seat
 * @oldest_ns: age of its oldest pending publication, ns; 0 when none
 * @seat: seat number
 * @pid: process as the caller's pid namespace sees it; 0 when not visible,
 *	not yet known, or unclaimed
 * @pending: slots it has not released
 * @reserved: zero
 */
struct tensorarena_reader_stats {
	__u64 reader;
	__u64 oldest_ns;
	__u32 seat;
	__s32 pid;
	__u32 pending;
	__u32 reserved;
};

/**
 * struct tensorarena_stats - counters and state (TENSORARENA_STATS)
 * @readers: in: address of @nr_readers struct tensorarena_reader_stats
 * @nr_readers: in: rows there is room for; out: open seats
 * @row_bytes: in: sizeof(struct tensorarena_reader_stats) as the caller knows
 *	it, so that rows, too, can grow; ignored when there is no room
 * @flags: in: zero
 * @reserved: zero
 * @slots: slots in all
 * @free: slots free, those whose memory is just being built ahead or given back
 *	among them
 * @writing: slots acquired and not yet published
 * @published: slots some reader still has pending
 * @allocated_bytes: slot memory held now
 * @oldest_ns: age of the oldest pending publication, ns; 0 when none
 * @puts: publications that addressed at least one seat
 * @put_bytes: their bytes
 * @unaddressed: publications that found no open seat
 * @aborted: acquired slots given back unpublished
 * @released: pending bits cleared by RELEASE
 * @declined_no_slot: ACQUIRE answered -EAGAIN
 * @declined_oversize: ACQUIRE answered -EMSGSIZE
 * @declined_no_memory: ACQUIRE answered -ENOMEM or -EINTR
 * @attached: readers that ever attached
 * @detached: readers that left by DETACH or by closing their file
 * @evicted: readers thrown out
 * @reclaimed_dead_readers: readers that died seated
 * @retracted: pending bits cleared by RETRACT
 *
 * All other fields are out.  Rows are filled for the first
 * min(nr_readers given, open seats) seats.
 */
struct tensorarena_stats {
	__u64 readers;
	__u32 nr_readers;
	__u32 row_bytes;
	__u32 flags;
	__u32 reserved;
	__u32 slots;
	__u32 free;
	__u32 writing;
	__u32 published;
	__u64 allocated_bytes;
	__u64 oldest_ns;
	__u64 puts;
	__u64 put_bytes;
	__u64 unaddressed;
	__u64 aborted;
	__u64 released;
	__u64 declined_no_slot;
	__u64 declined_oversize;
	__u64 declined_no_memory;
	__u64 attached;
	__u64 detached;
	__u64 evicted;
	__u64 reclaimed_dead_readers;
	__u64 retracted;
};

/* ---- reader file ---- */

/**
 * struct tensorarena_borrow - look at a publication
 * @ticket: BORROW: in, every field is checked; NEXT: out
 * @offset: out: file offset of the bytes
 * @flags: in: zero
 * @meta_bytes: out: bytes of @meta in use
 * @wanted: out: not 0: TRIM found pages pinned; unpin idle slots
 * @reserved: zero
 * @meta: out: opaque bytes given to PUBLISH; the rest is zero
 *
 * TENSORARENA_NEXT takes the oldest publication addressed to this reader that
 * it has not seen: -EAGAIN when there is none yet, -EPIPE when there will be
 * none; @wanted is an answer then, too.  TENSORARENA_BORROW takes the one the
 * ticket names and may be repeated while it is held: -ESTALE when the slot has
 * moved on, this reader has released it or the writer has called it back, -ENXIO
 * when it was not addressed to this reader.  Either marks the publication seen;
 * both hold the slot until RELEASE.
 */
struct tensorarena_borrow {
	struct tensorarena_ticket ticket;
	__u64 offset;
	__u32 flags;
	__u32 meta_bytes;
	__u32 wanted;
	__u32 reserved;
	__u8 meta[TENSORARENA_META_BYTES];
};

/*
 * poll, writer file: EPOLLOUT while a slot is free; EPOLLERR | EPOLLHUP when
 * detached.
 * poll, reader file: EPOLLIN while NEXT has something to say: a publication,
 * which RETRACT may take back at any moment, or @wanted; EPOLLHUP when NEXT will
 * answer -EPIPE for ever; EPOLLRDHUP when the writer is gone; EPOLLERR |
 * EPOLLHUP when evicted or detached.
 *
 * mmap: MAP_SHARED, any page-aligned range inside slots * stride (-EINVAL
 * otherwise).  Not inherited by fork; never executable (-EPERM); a reader's
 * mapping is read-only for good (-EACCES) unless CREATE_WRITABLE_READERS.  Touching
 * memory of a slot that has not been built is SIGBUS.
 */

#define TENSORARENA_IOC_MAGIC	0xF7

#define TENSORARENA_INFO	_IOWR(TENSORARENA_IOC_MAGIC, 0x00, struct tensorarena_info)
#define TENSORARENA_CREATE	_IOWR(TENSORARENA_IOC_MAGIC, 0x01, struct tensorarena_create)
#define TENSORARENA_ATTACH	_IOWR(TENSORARENA_IOC_MAGIC, 0x02, struct tensorarena_attach)

#define TENSORARENA_DETACH	_IOWR(TENSORARENA_IOC_MAGIC, 0x08, struct tensorarena_detach)

#define TENSORARENA_ACQUIRE	_IOWR(TENSORARENA_IOC_MAGIC, 0x10, struct tensorarena_acquire)
#define TENSORARENA_PUBLISH	_IOWR(TENSORARENA_IOC_MAGIC, 0x11, struct tensorarena_publish)
#define TENSORARENA_ABORT	_IOW(TENSORARENA_IOC_MAGIC, 0x12, struct tensorarena_slot_ref)
#define TENSORARENA_POPULATE	_IOWR(TENSORARENA_IOC_MAGIC, 0x13, struct tensorarena_populate)
#define TENSORARENA_TRIM	_IOWR(TENSORARENA_IOC_MAGIC, 0x14, struct tensorarena_trim)
#define TENSORARENA_EVICT	_IOWR(TENSORARENA_IOC_MAGIC, 0x15, struct tensorarena_evict)
#define TENSORARENA_STATS	_IOWR(TENSORARENA_IOC_MAGIC, 0x16, struct tensorarena_stats)
#define TENSORARENA_RETRACT	_IOWR(TENSORARENA_IOC_MAGIC, 0x17, struct tensorarena_retract)

#define TENSORARENA_NEXT	_IOWR(TENSORARENA_IOC_MAGIC, 0x20, struct tensorarena_borrow)
#define TENSORARENA_BORROW	_IOWR(TENSORARENA_IOC_MAGIC, 0x21, struct tensorarena_borrow)
#define TENSORARENA_RELEASE	_IOW(TENSORARENA_IOC_MAGIC, 0x22, struct tensorarena_slot_ref)

#endif /* _UAPI_TENSORARENA_H */
