// SPDX-License-Identifier: MIT
/* Which operations there are in a state, and what they are called. */
#include <stdio.h>

#include "slots_model.h"

static void add(struct op *ops, uint32_t *nr, enum op_kind kind, uint32_t slot,
		uint32_t arg)
{
	ops[(*nr)++] = (struct op){
		.kind = (uint8_t)kind,
		.slot = (uint8_t)slot,
		.arg = (uint8_t)arg,
	};
}

/* The writer's calls end with the writer. */
static void add_writer_ops(const struct model *m, struct op *ops, uint32_t *nr)
{
	uint32_t slot, arg;

	if (m->writer_gone)
		return;
	add(ops, nr, OP_ACQUIRE, 0, MODEL_SLOT_BYTES);
	add(ops, nr, OP_ACQUIRE, 0, MODEL_SLOT_BYTES + 1);
	for (slot = 0; slot < MODEL_SLOTS; slot++) {
		add(ops, nr, OP_TAKE, slot, 0);
		for (arg = 0; arg < OP_PUBLISH_ARGS; arg++)
			add(ops, nr, OP_PUBLISH, slot, arg);
		add(ops, nr, OP_PUBLISH_STALE, slot, 0);
		add(ops, nr, OP_ABORT, slot, 0);
		add(ops, nr, OP_ABORT_STALE, slot, 0);
		add(ops, nr, OP_RETRACT, slot, 0);
		add(ops, nr, OP_RETRACT_STALE, slot, 0);
	}
}

/* Whoever has a slot set aside is answered even after the writer is gone. */
static void add_builder_ops(const struct model *m, struct op *ops, uint32_t *nr)
{
	uint32_t slot, arg;

	for (slot = 0; slot < MODEL_SLOTS; slot++) {
		if (m->writing[slot].use == MODEL_BUILDING) {
			add(ops, nr, OP_BUILT, slot, 0);
			add(ops, nr, OP_NO_MEMORY, slot, 0);
		}
		if (m->writing[slot].use == MODEL_TAKEN)
			for (arg = 0; arg < UNTAKES; arg++)
				add(ops, nr, OP_UNTAKE, slot, arg);
	}
}

static void add_reader_ops(const struct model *m, struct op *ops, uint32_t *nr,
			   uint32_t seat)
{
	uint32_t arg;

	add(ops, nr, OP_NEXT, seat, 0);
	for (arg = 0; arg < FORGERIES; arg++)
		add(ops, nr, OP_BORROW_FORGED, seat, arg);
	for (arg = 0; arg < m->nr_tickets; arg++) {
		add(ops, nr, OP_BORROW, seat, arg);
		add(ops, nr, OP_UNSEE, seat, arg);
		add(ops, nr, OP_RELEASE, seat, arg);
	}
	add(ops, nr, OP_LEAVE, seat, TA_LEAVE_DETACHED);
	add(ops, nr, OP_LEAVE, seat, TA_LEAVE_EVICTED);
	add(ops, nr, OP_LEAVE, seat, TA_LEAVE_DIED);
}

uint32_t world_ops(const struct world *w, struct op *ops)
{
	const struct model *m = &w->m;
	bool room = false;
	uint32_t nr = 0;
	uint32_t i;

	add_writer_ops(m, ops, &nr);
	for (i = 0; i < MODEL_SEATS; i++) {
		room = room || !m->seat[i].tenure || !m->seat[i].reader;
		if (m->seat[i].reader)
			add_reader_ops(m, ops, &nr, i);
		add(ops, &nr, OP_CLOSE_UNCLAIMED, i, 0);
	}
	add(ops, &nr, OP_CLOSE_UNCLAIMED, MODEL_SEATS, 0);
	/* A fourth reader would leave the walk's bounds, not the machine's. */
	if (room)
		add(ops, &nr, OP_ATTACH, 0, 0);
	add_builder_ops(m, ops, &nr);
	add(ops, &nr, OP_WRITER_GONE, 0, 0);
	return nr;
}

void op_print(const struct op *op)
{
	static const char *const name[] = {
		[OP_ACQUIRE] = "acquire",
		[OP_BUILT] = "built",
		[OP_TAKE] = "take",
		[OP_UNTAKE] = "untake",
		[OP_NO_MEMORY] = "no_memory",
		[OP_PUBLISH] = "publish",
		[OP_PUBLISH_STALE] = "publish_stale",
		[OP_ABORT] = "abort",
		[OP_ABORT_STALE] = "abort_stale",
		[OP_RETRACT] = "retract",
		[OP_RETRACT_STALE] = "retract_stale",
		[OP_NEXT] = "next",
		[OP_BORROW] = "borrow",
		[OP_BORROW_FORGED] = "borrow_forged",
		[OP_UNSEE] = "unsee",
		[OP_RELEASE] = "release",
		[OP_ATTACH] = "attach",
		[OP_LEAVE] = "leave",
		[OP_CLOSE_UNCLAIMED] = "close_unclaimed",
		[OP_WRITER_GONE] = "writer_gone",
	};

	printf("# %s slot-or-seat %u arg %u\n", name[op->kind], op->slot,
	       op->arg);
}
