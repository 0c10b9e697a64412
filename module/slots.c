// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The slot state machine; see slots.h.
 *
 * tests/model/slots.pml models it together with its callers, transition by
 * transition and by these names, and proves that no order of them reuses a slot
 * that living readers have, validates an old ticket, or loses a slot.  What is
 * changed here has to be changed there.  tests/unit/slots_walk.c compares each
 * single call with a model of another kind.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <string.h>
/* User space has nothing to hide from itself. */
#define array_index_nospec(index, size)	(index)
#endif

#include "slots.h"

#define ALL_SEATS	(~0ULL)
/* More than any slot has memory for: see ta_slots_check_writing(). */
#define BEYOND_MEMORY	(~0ULL)

static __u64 seat_bit(__u32 seat)
{
	return 1ULL << seat;
}

static __u32 lowest_seat(__u64 mask)
{
	return (__u32)__builtin_ctzll(mask);
}

/* Not __builtin_popcountll(): that may be a libgcc call, absent in a kernel. */
static __u32 count_seats(__u64 mask)
{
	__u32 n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

static void set_state(struct ta_slots *s, struct ta_slot *slot,
		      enum ta_slot_state state)
{
	s->nr_state[slot->state]--;
	s->nr_state[state]++;
	slot->state = state;
}

static void make_free(struct ta_slots *s, struct ta_slot *slot)
{
	set_state(s, slot, TA_SLOT_FREE);
	slot->addressed = 0;
	slot->pending = 0;
	slot->unseen = 0;
}

/*
 * Whether the memory of a WRITING slot is still being built, or trimmed.
 * Freeing such a slot would put two builders on the same pages.
 */
static bool is_being_built(const struct ta_slot *slot)
{
	return slot->capacity < slot->nbytes;
}

/* The slot of a number from user space, or NULL. */
static struct ta_slot *slot_at(const struct ta_slots *s, __u32 slot)
{
	if (slot >= s->nr)
		return NULL;
	return &s->slot[array_index_nospec(slot, s->nr)];
}

/* Forgets @seats on one publication; 1 when that freed the slot. */
static int drop_pending(struct ta_slots *s, struct ta_slot *slot, __u64 seats)
{
	if (!(slot->pending & seats))
		return 0;
	slot->pending &= ~seats;
	slot->unseen &= ~seats;
	if (slot->pending)
		return 0;
	make_free(s, slot);
	return 1;
}

/*
 * A seat's next reader must not inherit what the last one was sent, so a
 * closing seat also leaves @addressed: the newcomer gets -ENXIO, not -ESTALE.
 */
static int close_seats(struct ta_slots *s, __u64 seats)
{
	int freed = 0;
	__u32 i;

	for (i = 0; i < s->nr; i++) {
		struct ta_slot *slot = &s->slot[i];

		slot->addressed &= ~seats;
		freed += drop_pending(s, slot, seats);
	}
	s->open &= ~seats;
	s->claimed &= ~seats;
	return freed;
}

void ta_slots_init(struct ta_slots *s, struct ta_slot *slot, __u32 nr,
		   __u64 slot_bytes, __u32 seats)
{
	memset(s, 0, sizeof(*s));
	s->slot = slot;
	s->nr = nr;
	s->nr_state[TA_SLOT_FREE] = nr;
	s->slot_bytes = slot_bytes;
	s->open = seats < TENSORARENA_MAX_READERS ? seat_bit(seats) - 1 :
						    ALL_SEATS;
}

int ta_slots_attach(struct ta_slots *s, __u32 *seat, __u64 *reader)
{
	__u64 waiting = s->open & ~s->claimed;
	__u64 bit;

	if (s->writer_gone)
		return -EPIPE;
	if (!waiting && s->open == ALL_SEATS)
		return -EUSERS;

	*seat = lowest_seat(waiting ? waiting : ~s->open);
	*reader = ++s->last_reader;
	bit = seat_bit(*seat);
	s->open |= bit;
	s->claimed |= bit;
	s->reader[*seat] = *reader;
	s->count.attached++;
	return 0;
}

int ta_slots_leave(struct ta_slots *s, __u32 seat, enum ta_leave why)
{
	switch (why) {
	case TA_LEAVE_DETACHED:
		s->count.detached++;
		break;
	case TA_LEAVE_EVICTED:
		s->count.evicted++;
		break;
	case TA_LEAVE_DIED:
		s->count.reclaimed_dead_readers++;
		break;
	}
	s->reader[seat] = 0;
	return close_seats(s, seat_bit(seat));
}

int ta_slots_close_unclaimed(struct ta_slots *s, __u64 seat)
{
	if (seat >= TENSORARENA_MAX_READERS)
		return -EINVAL;
	if (!(s->open & ~s->claimed & seat_bit(seat)))
		return -ESTALE;
	return close_seats(s, seat_bit(seat));
}

int ta_slots_seat_of(const struct ta_slots *s, __u64 reader)
{
	__u64 left;

	for (left = s->claimed; left; left &= left - 1) {
		__u32 seat = lowest_seat(left);

		if (s->reader[seat] == reader)
			return seat;
	}
	return -ESTALE;
}

int ta_slots_writer_gone(struct ta_slots *s)
{
	int freed = 0;
	__u32 i;

	if (s->writer_gone)
		return 0;
	s->writer_gone = true;
	for (i = 0; i < s->nr; i++) {
		struct ta_slot *slot = &s->slot[i];

		/* One that is being built is its builder's to give back. */
		if (slot->state == TA_SLOT_WRITING && !is_being_built(slot)) {
			make_free(s, slot);
			freed++;
		}
	}
	return freed + close_seats(s, s->open & ~s->claimed);
}

/* Whether free slot @a suits @nbytes better than free slot @b. */
static bool fits_better(const struct ta_slot *a, const struct ta_slot *b,
			__u64 nbytes)
{
	bool a_fits = a->capacity >= nbytes;
	bool b_fits = b->capacity >= nbytes;

	if (a_fits != b_fits)
		return a_fits;
	return a_fits ? a->capacity < b->capacity : a->capacity > b->capacity;
}

static void start_writing(struct ta_slots *s, struct ta_slot *slot,
			  __u64 nbytes)
{
	set_state(s, slot, TA_SLOT_WRITING);
	slot->generation++;
	slot->nbytes = nbytes;
}

int ta_slots_acquire(struct ta_slots *s, __u64 nbytes)
{
	struct ta_slot *best = NULL;
	__u32 i;

	if (nbytes > s->slot_bytes) {
		s->count.declined_oversize++;
		return -EMSGSIZE;
	}
	if (!s->nr_state[TA_SLOT_FREE]) {
		s->count.declined_no_slot++;
		return -EAGAIN;
	}
	for (i = 0; i < s->nr; i++) {
		struct ta_slot *slot = &s->slot[i];

		if (slot->state != TA_SLOT_FREE)
			continue;
		if (!best || fits_better(slot, best, nbytes))
			best = slot;
	}
	start_writing(s, best, nbytes);
	return (int)(best - s->slot);
}

int ta_slots_take(struct ta_slots *s, __u32 slot)
{
	if (s->slot[slot].state != TA_SLOT_FREE)
		return -EAGAIN;
	start_writing(s, &s->slot[slot], BEYOND_MEMORY);
	return 0;
}

void ta_slots_untake(struct ta_slots *s, __u32 slot)
{
	make_free(s, &s->slot[slot]);
}

int ta_slots_built(struct ta_slots *s, __u32 slot, __u64 capacity)
{
	s->slot[slot].capacity = capacity;
	if (!s->writer_gone)
		return 0;
	make_free(s, &s->slot[slot]);
	return -EPIPE;
}

void ta_slots_no_memory(struct ta_slots *s, __u32 slot)
{
	s->count.declined_no_memory++;
	ta_slots_untake(s, slot);
}

int ta_slots_check_writing(const struct ta_slots *s, __u32 slot,
			   __u64 generation)
{
	const struct ta_slot *p = slot_at(s, slot);

	if (!p)
		return -EINVAL;
	if (p->state != TA_SLOT_WRITING || p->generation != generation)
		return -ESTALE;
	/* Its generation has not been handed out yet: the caller is guessing. */
	return is_being_built(p) ? -ESTALE : 0;
}

int ta_slots_abort(struct ta_slots *s, __u32 slot, __u64 generation)
{
	int err = ta_slots_check_writing(s, slot, generation);

	if (err)
		return err;
	make_free(s, &s->slot[slot]);
	s->count.aborted++;
	return 0;
}

int ta_slots_mask(const struct ta_slots *s, const __u64 *readers, __u32 nr,
		  __u64 *mask)
{
	__u64 found = 0;
	__u32 i;

	for (i = 0; i < nr; i++) {
		int seat = ta_slots_seat_of(s, readers[i]);

		if (seat < 0)
			return seat;
		found |= seat_bit(seat);
	}
	*mask = found;
	return 0;
}

int ta_slots_publish(struct ta_slots *s, __u32 slot, __u64 generation,
		     __u64 nbytes, __u64 mask, const void *meta,
		     __u32 meta_bytes, __u64 stamp)
{
	struct ta_slot *p;
	int err;

	err = ta_slots_check_writing(s, slot, generation);
	if (err)
		return err;
	p = &s->slot[slot];
	if (nbytes > p->nbytes || meta_bytes > TENSORARENA_META_BYTES)
		return -EINVAL;

	mask &= s->open;
	if (!mask) {
		make_free(s, p);
		s->count.unaddressed++;
		return 0;
	}
	set_state(s, p, TA_SLOT_PUBLISHED);
	p->nbytes = nbytes;
	p->addressed = mask;
	p->pending = mask;
	p->unseen = mask;
	p->order = ++s->last_order;
	p->stamp = stamp;
	p->meta_bytes = meta_bytes;
	memcpy(p->meta, meta, meta_bytes);
	memset(p->meta + meta_bytes, 0, sizeof(p->meta) - meta_bytes);
	s->count.puts++;
	s->count.put_bytes += nbytes;
	return (int)count_seats(mask);
}

int ta_slots_retract(struct ta_slots *s, __u32 slot, __u64 generation,
		     __u32 *pending)
{
	struct ta_slot *p = slot_at(s, slot);
	__u32 seats;

	if (!p)
		return -EINVAL;
	if (p->state != TA_SLOT_PUBLISHED || p->generation != generation)
		return -ESTALE;
	/* They stay @addressed: to them it is old, not somebody else's. */
	seats = count_seats(p->unseen);
	s->count.retracted += seats;
	drop_pending(s, p, p->unseen);
	*pending = count_seats(p->pending);
	return (int)seats;
}

int ta_slots_next(struct ta_slots *s, __u32 seat)
{
	__u64 bit = seat_bit(seat);
	struct ta_slot *oldest = NULL;
	__u32 i;

	for (i = 0; i < s->nr; i++) {
		struct ta_slot *slot = &s->slot[i];

		if (!(slot->unseen & bit))
			continue;
		if (!oldest || slot->order < oldest->order)
			oldest = slot;
	}
	if (!oldest)
		return s->writer_gone ? -EPIPE : -EAGAIN;
	oldest->unseen &= ~bit;
	return (int)(oldest - s->slot);
}

/* What a reader may still do with a publication: 0, or why nothing. */
static int check_held(const struct ta_slots *s, __u32 seat, __u32 slot,
		      __u64 generation)
{
	const struct ta_slot *p = slot_at(s, slot);

	if (!p)
		return -EINVAL;
	if (p->state != TA_SLOT_PUBLISHED || p->generation != generation)
		return -ESTALE;
	if (!(p->addressed & seat_bit(seat)))
		return -ENXIO;
	if (!(p->pending & seat_bit(seat)))
		return -ESTALE;
	return 0;
}

void ta_slots_unsee(struct ta_slots *s, __u32 seat, __u32 slot,
		    __u64 generation)
{
	if (!check_held(s, seat, slot, generation))
		s->slot[slot].unseen |= seat_bit(seat);
}

int ta_slots_borrow(struct ta_slots *s, __u32 seat,
		    const struct tensorarena_ticket *ticket)
{
	int err = check_held(s, seat, ticket->slot, ticket->generation);

	if (err)
		return err;
	if (s->slot[ticket->slot].nbytes != ticket->nbytes)
		return -ESTALE;
	s->slot[ticket->slot].unseen &= ~seat_bit(seat);
	return 0;
}

int ta_slots_release(struct ta_slots *s, __u32 seat, __u32 slot,
		     __u64 generation)
{
	int err = check_held(s, seat, slot, generation);

	if (err)
		return err;
	s->count.released++;
	return drop_pending(s, &s->slot[slot], seat_bit(seat));
}

bool ta_slots_has_unseen(const struct ta_slots *s, __u32 seat)
{
	__u32 i;

	for (i = 0; i < s->nr; i++)
		if (s->slot[i].unseen & seat_bit(seat))
			return true;
	return false;
}

__u32 ta_slots_open(const struct ta_slots *s)
{
	return count_seats(s->open);
}

__u32 ta_slots_pending(const struct ta_slots *s, __u32 seat, __u64 *oldest)
{
	__u64 order = 0;
	__u32 pending = 0;
	__u32 i;

	for (i = 0; i < s->nr; i++) {
		const struct ta_slot *slot = &s->slot[i];

		if (!(slot->pending & seat_bit(seat)))
			continue;
		if (!pending++ || slot->order < order) {
			order = slot->order;
			*oldest = slot->stamp;
		}
	}
	return pending;
}

int ta_slots_oldest(const struct ta_slots *s)
{
	int oldest = -1;
	__u32 i;

	for (i = 0; i < s->nr; i++) {
		if (s->slot[i].state != TA_SLOT_PUBLISHED)
			continue;
		if (oldest < 0 || s->slot[i].order < s->slot[oldest].order)
			oldest = (int)i;
	}
	return oldest;
}

static __u32 count_taken(const struct ta_slots *s)
{
	__u32 i, nr = 0;

	for (i = 0; i < s->nr; i++)
		nr += s->slot[i].state == TA_SLOT_WRITING &&
		      s->slot[i].nbytes == BEYOND_MEMORY;
	return nr;
}

void ta_slots_stats(const struct ta_slots *s, struct tensorarena_stats *st)
{
	__u32 taken = count_taken(s);

	st->slots = s->nr;
	st->free = s->nr_state[TA_SLOT_FREE] + taken;
	st->writing = s->nr_state[TA_SLOT_WRITING] - taken;
	st->published = s->nr_state[TA_SLOT_PUBLISHED];
	st->puts = s->count.puts;
	st->put_bytes = s->count.put_bytes;
	st->unaddressed = s->count.unaddressed;
	st->aborted = s->count.aborted;
	st->released = s->count.released;
	st->declined_no_slot = s->count.declined_no_slot;
	st->declined_oversize = s->count.declined_oversize;
	st->declined_no_memory = s->count.declined_no_memory;
	st->attached = s->count.attached;
	st->detached = s->count.detached;
	st->evicted = s->count.evicted;
	st->reclaimed_dead_readers = s->count.reclaimed_dead_readers;
	st->retracted = s->count.retracted;
}
