/* SPDX-License-Identifier: MIT */
/*
 * A second, naive opinion on the slot state machine.
 *
 * module/slots.c keeps masks and reuses seats.  The model keeps lists: every
 * opening of a seat is a tenure with a number of its own, and a publication is
 * a list of the tenures that were sent it.  Two implementations that share no
 * representation do not share a mistake easily.
 *
 * model_apply() performs one operation on both and compares everything that
 * can be observed; it returns NULL, or says what disagrees.
 */
#ifndef TEST_SLOTS_MODEL_H
#define TEST_SLOTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "module/slots.h"

#define MODEL_SLOTS 2
#define MODEL_SEATS 3
#define MODEL_SLOT_BYTES 1
#define MODEL_TICKETS 24

enum op_kind {
	OP_ACQUIRE, /* arg: bytes */
	OP_BUILT, /* the memory an acquire needed is there */
	OP_NO_MEMORY, /* it is not to be had */
	OP_TAKE,
	OP_UNTAKE, /* arg: enum untake */
	OP_PUBLISH, /* arg: seats, OP_PUBLISH_ALL or OP_PUBLISH_TOO_MANY */
	OP_PUBLISH_STALE,
	OP_ABORT,
	OP_ABORT_STALE,
	OP_RETRACT,
	OP_RETRACT_STALE,
	OP_NEXT,
	OP_BORROW, /* arg: index of a kept ticket */
	OP_BORROW_FORGED, /* arg: which field is wrong */
	OP_UNSEE, /* arg: index of a kept ticket */
	OP_RELEASE, /* arg: index of a kept ticket */
	OP_ATTACH,
	OP_LEAVE, /* arg: enum ta_leave */
	OP_CLOSE_UNCLAIMED,
	OP_WRITER_GONE,
};

/* What whoever took a slot did with its memory. */
enum untake {
	UNTAKE_UNCHANGED,
	UNTAKE_BUILT,
	UNTAKE_TRIMMED,
	UNTAKES,
};

#define OP_PUBLISH_ALL 8 /* and nothing of what was acquired */
#define OP_PUBLISH_TOO_MANY 9 /* more bytes than were acquired */
#define OP_PUBLISH_ARGS 10

/* Which field of an otherwise good ticket OP_BORROW_FORGED spoils. */
enum forgery {
	FORGED_BYTES,
	FORGED_SLOT,
	FORGED_FUTURE,
	FORGERIES,
};

struct op {
	uint8_t kind;
	uint8_t slot; /* or seat, for a reader's operation */
	uint8_t arg;
	uint8_t unused;
};

struct model_ticket {
	uint64_t generation;
	uint64_t nbytes;
	uint32_t slot;
};

/* One reader's side of one publication. */
struct model_copy {
	uint32_t tenure;
	bool released;
	bool seen;
};

struct model_publication {
	struct model_ticket ticket;
	uint64_t stamp;
	uint8_t meta;
	uint32_t nr_copies;
	struct model_copy copy[MODEL_SEATS];
};

struct model_seat {
	uint32_t tenure; /* 0: closed */
	uint64_t reader; /* 0: not claimed */
};

enum model_use {
	MODEL_IDLE, /* free or published */
	MODEL_WRITING,
	MODEL_BUILDING, /* acquired, the memory is not there yet */
	MODEL_TAKEN,
};

struct model_writing {
	enum model_use use;
	bool built;
};

struct model {
	struct model_seat seat[MODEL_SEATS];
	struct model_writing writing[MODEL_SLOTS];
	uint64_t acquired[MODEL_SLOTS]; /* how often, so far */
	/* Oldest first; only those that somebody still has pending. */
	struct model_publication published[MODEL_SLOTS];
	uint32_t nr_published;
	/* Every ticket ever issued, the newest MODEL_TICKETS of them. */
	struct model_ticket ticket[MODEL_TICKETS];
	uint32_t nr_tickets;
	uint32_t last_tenure;
	uint64_t last_reader;
	uint64_t clock;
	bool writer_gone;
	struct ta_counters count;
};

/* The machine under test and the model, side by side. */
struct world {
	struct ta_slots s;
	struct ta_slot slot[MODEL_SLOTS];
	struct model m;
};

void world_init(struct world *w, uint32_t seats);
void world_copy(struct world *to, const struct world *from);
/*
 * The operations that may be called in this state, including every one that
 * must fail.  Returns how many; at most MODEL_OPS.
 */
#define MODEL_OPS 320
uint32_t world_ops(const struct world *w, struct op *ops);
/* @changed: whether the operation may have led to another state. */
const char *model_apply(struct world *w, const struct op *op, bool *changed);
const char *model_compare(const struct world *w);
void op_print(const struct op *op);

#endif /* TEST_SLOTS_MODEL_H */
