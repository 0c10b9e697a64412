/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The slot state machine: who may do what to which slot, and when it is free.
 *
 * Freestanding and pure: no allocation, no locking, no clock, no user memory.
 * The kernel module, the embedded engine and the unit tests compile the same
 * source.  The caller serialises all calls on one struct ta_slots (the arena
 * mutex in the module, the engine mutex in the library) and supplies the slot
 * array and the time.
 *
 *          acquire              publish
 *   FREE ----------> WRITING -----------> PUBLISHED
 *    ^  <------------   |                     |
 *    |       abort      | no open seat        | last pending seat releases,
 *    +------------------+---------------------+ detaches, dies or is evicted;
 *                                               or it is retracted
 *
 * Errors are negative error numbers with the meaning that the uAPI header
 * gives them; a call that fails changes nothing but a decline counter.
 */
#ifndef TA_SLOTS_H
#define TA_SLOTS_H

#include <linux/types.h>
#ifndef __KERNEL__
#include <stdbool.h>
#endif
#include <uapi/tensorarena.h>

enum ta_slot_state {
	TA_SLOT_FREE,
	TA_SLOT_WRITING,
	TA_SLOT_PUBLISHED,
};

/**
 * struct ta_slot - one slot
 * @state: enum ta_slot_state
 * @meta_bytes: bytes of @meta in use
 * @generation: +1 at every acquire
 * @nbytes: WRITING: bytes acquired; PUBLISHED: bytes published
 * @capacity: bytes the slot has memory for; the caller's, who changes it only
 *	while the slot is WRITING and not handed out
 * @addressed: seats whose present reader was addressed by the publication
 * @pending: subset of @addressed that has not released it
 * @unseen: subset of @pending that has neither NEXTed nor BORROWed it
 * @order: publication number, for NEXT's oldest-first
 * @stamp: the caller's clock at publication
 * @meta: opaque bytes of the publication
 */
struct ta_slot {
	__u32 state;
	__u32 meta_bytes;
	__u64 generation;
	__u64 nbytes;
	__u64 capacity;
	__u64 addressed;
	__u64 pending;
	__u64 unseen;
	__u64 order;
	__u64 stamp;
	__u8 meta[TENSORARENA_META_BYTES];
};

/* Cumulative; meanings as in struct tensorarena_stats. */
struct ta_counters {
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

/* Why a claimed seat closes: which counter it goes to. */
enum ta_leave {
	TA_LEAVE_DETACHED,
	TA_LEAVE_EVICTED,
	TA_LEAVE_DIED,
};

/**
 * struct ta_slots - all the slots and seats of an arena
 * @slot: array of @nr slots
 * @nr: how many
 * @nr_state: slots in each enum ta_slot_state
 * @slot_bytes: largest publication
 * @open: seats that publications address
 * @claimed: subset of @open that a reader sits on
 * @reader: the reader id on each claimed seat
 * @last_reader: newest reader id given out
 * @last_order: newest publication number given out
 * @writer_gone: no more publications will come; set once
 * @count: counters
 */
struct ta_slots {
	struct ta_slot *slot;
	__u32 nr;
	__u32 nr_state[3];
	__u64 slot_bytes;
	__u64 open;
	__u64 claimed;
	__u64 reader[TENSORARENA_MAX_READERS];
	__u64 last_reader;
	__u64 last_order;
	bool writer_gone;
	struct ta_counters count;
};

/* @slot: array of @nr zeroed slots, which the caller keeps and frees. */
void ta_slots_init(struct ta_slots *s, struct ta_slot *slot, __u32 nr,
		   __u64 slot_bytes, __u32 seats);

/* ---- seats ---- */

/* Seats a new reader: 0, -EPIPE or -EUSERS. */
int ta_slots_attach(struct ta_slots *s, __u32 *seat, __u64 *reader);
/*
 * Closes a claimed seat and drops all it had pending.  Returns the number of
 * slots this freed.
 */
int ta_slots_leave(struct ta_slots *s, __u32 seat, enum ta_leave why);
/* Closes an open seat that nobody has claimed: slots freed, or -ESTALE. */
int ta_slots_close_unclaimed(struct ta_slots *s, __u64 seat);
/* The seat a reader id sits on, or -ESTALE. */
int ta_slots_seat_of(const struct ta_slots *s, __u64 reader);
/*
 * The writer is gone: slots being written are freed (those still being built,
 * by their builder), unclaimed seats are closed, publications stay until
 * released.  Returns slots freed.
 */
int ta_slots_writer_gone(struct ta_slots *s);

/* ---- writer ---- */

/*
 * Takes the free slot that fits best: the smallest that already has memory
 * for @nbytes, else the one that needs least more.  Ties go to the lowest
 * index, so a lightly used arena keeps using (and paying for) few slots.
 * Returns the slot, -EMSGSIZE or -EAGAIN (both counted).
 */
int ta_slots_acquire(struct ta_slots *s, __u64 nbytes);
/* Takes one particular slot, for building or trimming: 0 or -EAGAIN. */
int ta_slots_take(struct ta_slots *s, __u32 slot);
/*
 * An acquired slot has the memory it was waiting for.  -EPIPE: the writer has
 * gone meanwhile, and the slot is free again.
 */
int ta_slots_built(struct ta_slots *s, __u32 slot, __u64 capacity);
/* Gives a slot taken by ta_slots_take() back; not counted as an abort. */
void ta_slots_untake(struct ta_slots *s, __u32 slot);
/* Takes back an acquire for which there was no memory; counted as a decline. */
void ta_slots_no_memory(struct ta_slots *s, __u32 slot);
/*
 * Whether @slot is WRITING at @generation and has its memory: 0, -EINVAL or
 * -ESTALE.  A slot is nobody's to publish or abort until the caller has set
 * its capacity to what acquire was asked for.
 */
int ta_slots_check_writing(const struct ta_slots *s, __u32 slot,
			   __u64 generation);
int ta_slots_abort(struct ta_slots *s, __u32 slot, __u64 generation);
/* Translates reader ids to a seat mask: 0 or -ESTALE. */
int ta_slots_mask(const struct ta_slots *s, const __u64 *readers, __u32 nr,
		  __u64 *mask);
/*
 * Publishes to the open seats in @mask.  Returns how many those are; when
 * there are none the slot is free again.  -EINVAL or -ESTALE change nothing.
 */
int ta_slots_publish(struct ta_slots *s, __u32 slot, __u64 generation,
		     __u64 nbytes, __u64 mask, const void *meta,
		     __u32 meta_bytes, __u64 stamp);

/*
 * Takes a publication from the seats that have not seen it.  Returns how many
 * those are; the slot is free when @pending, those that have, is 0.  -EINVAL or
 * -ESTALE.
 */
int ta_slots_retract(struct ta_slots *s, __u32 slot, __u64 generation,
		     __u32 *pending);

/* ---- reader; @seat must be claimed ---- */

/* The oldest unseen publication's slot, now seen; -EAGAIN or -EPIPE. */
int ta_slots_next(struct ta_slots *s, __u32 seat);
/* Undoes the seeing of ta_slots_next(), if the reader still holds the slot. */
void ta_slots_unsee(struct ta_slots *s, __u32 seat, __u32 slot,
		    __u64 generation);
/* Validates a ticket (except its arena) and marks it seen: 0 or an error. */
int ta_slots_borrow(struct ta_slots *s, __u32 seat,
		    const struct tensorarena_ticket *ticket);
/* Returns 1 when this freed the slot, 0 when others still have it pending. */
int ta_slots_release(struct ta_slots *s, __u32 seat, __u32 slot,
		     __u64 generation);
bool ta_slots_has_unseen(const struct ta_slots *s, __u32 seat);

/* ---- observation ---- */

/* Seats that a publication would address. */
__u32 ta_slots_open(const struct ta_slots *s);
/* Slots @seat has pending; the oldest one's stamp in @oldest when any. */
__u32 ta_slots_pending(const struct ta_slots *s, __u32 seat, __u64 *oldest);
/* The published slot with the lowest publication number, or -1. */
int ta_slots_oldest(const struct ta_slots *s);
/*
 * Copies geometry, states and counters; ages and memory are the caller's.  A
 * slot taken for building or trimming is nobody's tensor, so it counts as free.
 */
void ta_slots_stats(const struct ta_slots *s, struct tensorarena_stats *st);

#endif /* TA_SLOTS_H */
