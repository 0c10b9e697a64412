/* SPDX-License-Identifier: MIT */
/*
 * A slot state machine with room for the directed tests: 4 slots of 100 bytes,
 * all of them built, and whatever seats the test asks for.
 */
#ifndef TEST_SLOTS_FIXTURE_H
#define TEST_SLOTS_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "module/slots.h"

#define NR_SLOTS 4
#define SLOT_BYTES 100
#define EVERYBODY (~0ULL)

struct fixture {
	struct ta_slots s;
	struct ta_slot slot[NR_SLOTS];
};

static inline void fixture_init(struct fixture *f, uint32_t seats)
{
	uint32_t i;

	memset(f, 0, sizeof(*f));
	ta_slots_init(&f->s, f->slot, NR_SLOTS, SLOT_BYTES, seats);
	for (i = 0; i < NR_SLOTS; i++)
		f->slot[i].capacity = SLOT_BYTES;
}

/* Seats a reader and returns its seat. */
static inline uint32_t fixture_attach(struct fixture *f, __u64 *reader)
{
	__u32 seat = ~0U;
	__u64 id = 0;

	assert_int_equal(ta_slots_attach(&f->s, &seat, &id), 0);
	if (reader)
		*reader = id;
	return seat;
}

/* Acquires and publishes to @mask; returns the ticket. */
static inline struct tensorarena_ticket
fixture_put(struct fixture *f, uint64_t nbytes, uint64_t mask)
{
	struct tensorarena_ticket ticket = { .nbytes = nbytes };
	int slot = ta_slots_acquire(&f->s, nbytes);
	__u8 meta = (__u8)nbytes;

	assert_in_range(slot, 0, NR_SLOTS - 1);
	ticket.slot = (uint32_t)slot;
	ticket.generation = f->slot[slot].generation;
	assert_true(ta_slots_publish(&f->s, ticket.slot, ticket.generation,
				     nbytes, mask, &meta, 1, nbytes) > 0);
	return ticket;
}

#endif /* TEST_SLOTS_FIXTURE_H */
