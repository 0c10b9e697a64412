// SPDX-License-Identifier: MIT
/*
 * Every operation sequence of the slot state machine for 2 slots x 3 readers.
 *
 * Walk 1 merges nothing: it tries every sequence up to a depth, which makes no
 * assumption about the machine at all.
 *
 * Walk 2 goes breadth first and merges states that differ only in names:
 * generations and reader ids count up for ever, but the machine only ever
 * compares them for equality, and publication numbers only for their order.
 * That leaves fewer than two million states, so the walk ends when there is
 * none left to find: it covers sequences of any length.
 *
 * Both try, in every state, every call that must succeed and every call that
 * must fail, against the model, and require a failed call to change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slots_model.h"

#define RAW_DEPTH 7

/* What the walks counted; printed, because a walk of nothing also passes. */
struct tally {
	uint64_t calls;
	uint64_t refused;
	uint64_t sequences;
};

/* A failed call may count a decline, nothing else. */
static bool machine_unchanged(const struct world *before,
			      const struct world *after)
{
	const size_t body = offsetof(struct ta_slots, count);

	/* The first member is the pointer to the world's own slot array. */
	return !memcmp((const char *)&before->s + sizeof(before->s.slot),
		       (const char *)&after->s + sizeof(after->s.slot),
		       body - sizeof(before->s.slot)) &&
	       !memcmp(before->slot, after->slot, sizeof(before->slot));
}

/*
 * Applies @op to @to, which equals @from but for decline counters; compares.
 * Returns what is wrong, or NULL.
 */
static const char *step(const struct world *from, struct world *to,
			const struct op *op, bool *changed, struct tally *tally)
{
	const char *why = model_apply(to, op, changed);

	tally->calls++;
	if (why)
		return why;
	if (*changed)
		return model_compare(to);
	tally->refused++;
	if (!machine_unchanged(from, to))
		return "a call that did nothing changed something";
	if (memcmp(&to->s.count, &to->m.count, sizeof(to->m.count)))
		return "counters";
	return NULL;
}

/* Whoever is building or trimming gives up. */
static const char *finish_builders(struct world *w)
{
	const char *why = NULL;
	struct op op = { 0 };
	bool changed;

	for (op.slot = 0; op.slot < MODEL_SLOTS && !why; op.slot++) {
		if (w->m.writing[op.slot].use == MODEL_BUILDING)
			op.kind = OP_NO_MEMORY;
		else if (w->m.writing[op.slot].use == MODEL_TAKEN)
			op.kind = OP_UNTAKE;
		else
			continue;
		why = model_apply(w, &op, &changed);
	}
	return why;
}

/*
 * Whatever has happened: when the readers and the writer are gone, in either
 * order, and nobody is at the memory of a slot, every slot is free.
 */
static const char *drains(const struct world *w, bool writer_first)
{
	static const struct op gone = { .kind = OP_WRITER_GONE };
	struct world end;
	const char *why;
	bool changed;
	uint8_t seat;

	world_copy(&end, w);
	if (writer_first) {
		why = model_apply(&end, &gone, &changed);
		if (why)
			return why;
	}
	for (seat = 0; seat < MODEL_SEATS; seat++) {
		struct op leave = { .kind = OP_LEAVE,
				    .slot = seat,
				    .arg = TA_LEAVE_DIED };

		if (!(end.s.claimed >> seat & 1))
			continue;
		why = model_apply(&end, &leave, &changed);
		if (why)
			return why;
	}
	if (!writer_first) {
		why = model_apply(&end, &gone, &changed);
		if (why)
			return why;
	}
	why = finish_builders(&end);
	if (why)
		return why;
	if (end.s.nr_state[TA_SLOT_FREE] != MODEL_SLOTS || end.s.open)
		return "a slot or seat was left over at the end";
	return model_compare(&end);
}

/* ---- walk 1: nothing merged ---- */

struct raw_walk {
	struct op path[RAW_DEPTH];
	struct world level[RAW_DEPTH + 1];
	struct tally tally;
};

static void raw_fail(const struct raw_walk *walk, uint32_t depth,
		     const char *why)
{
	uint32_t i;

	for (i = 0; i <= depth; i++)
		op_print(&walk->path[i]);
	fail_msg("after these %u operations: %s", depth + 1, why);
}

static void raw_descend(struct raw_walk *walk, uint32_t depth)
{
	struct world *from = &walk->level[depth];
	struct world *to = &walk->level[depth + 1];
	struct op ops[MODEL_OPS];
	uint32_t nr = world_ops(from, ops);
	bool changed = true;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		const char *why;

		if (changed)
			world_copy(to, from);
		walk->path[depth] = ops[i];
		why = step(from, to, &ops[i], &changed, &walk->tally);
		if (why)
			raw_fail(walk, depth, why);
		walk->tally.sequences++;
		/* A refused call leads nowhere new: machine_unchanged(). */
		if (changed && depth + 1 < RAW_DEPTH)
			raw_descend(walk, depth + 1);
	}
}

static void every_sequence_to_a_depth(void **state)
{
	struct raw_walk *walk = calloc(1, sizeof(*walk));
	uint32_t seats;

	(void)state;
	assert_non_null(walk);
	for (seats = 0; seats <= MODEL_SEATS; seats++) {
		world_init(&walk->level[0], seats);
		raw_descend(walk, 0);
	}
	printf("# depth %d without merging: %llu sequences, %llu of the calls "
	       "refused\n",
	       RAW_DEPTH, (unsigned long long)walk->tally.sequences,
	       (unsigned long long)walk->tally.refused);
	free(walk);
}

/* ---- walk 2: states that differ only in names are one ---- */

/* What state_key() packs, as a number of mixed radix. */
#define KEY_SEAT 3 /* closed, open, claimed */
#define KEY_SEATS (KEY_SEAT * KEY_SEAT * KEY_SEAT)
#define KEY_COPY 4 /* not sent, released, seen, unseen */
#define KEY_SLOT (2 * (3 + KEY_COPY * KEY_COPY * KEY_COPY))
#define KEYS (2 * 2 * KEY_SEATS * KEY_SLOT * KEY_SLOT)

/* How a state was first reached, to print the way there when it fails. */
struct trail {
	uint32_t parent;
	struct op op;
};

struct merged_walk {
	struct trail *trail; /* by key; op.unused is set once visited */
	struct world *frontier, *next;
	uint32_t nr_frontier, nr_next, room;
	uint32_t nr_states;
	struct tally tally;
};

static uint32_t slot_key(const struct world *w, uint32_t slot)
{
	const struct ta_slot *p = &w->slot[slot];
	uint32_t built = p->capacity != 0;
	uint32_t key = 0;
	uint32_t seat;

	if (p->state == TA_SLOT_FREE)
		return built;
	/* Acquired, or taken, which asks for more than there can be. */
	if (p->state == TA_SLOT_WRITING)
		return 2 * (1 + (p->nbytes > MODEL_SLOT_BYTES)) + built;
	for (seat = 0; seat < MODEL_SEATS; seat++)
		key = key * KEY_COPY +
		      ((p->addressed >> seat & 1) + (p->pending >> seat & 1) +
		       (p->unseen >> seat & 1));
	return 2 * (3 + key) + built;
}

static uint32_t state_key(const struct world *w)
{
	uint32_t key = w->s.writer_gone;
	uint32_t i;

	key = key * 2 + (w->slot[0].state == TA_SLOT_PUBLISHED &&
			 w->slot[1].state == TA_SLOT_PUBLISHED &&
			 w->slot[0].order < w->slot[1].order);
	for (i = 0; i < MODEL_SEATS; i++)
		key = key * KEY_SEAT +
		      ((w->s.open >> i & 1) + (w->s.claimed >> i & 1));
	for (i = 0; i < MODEL_SLOTS; i++)
		key = key * KEY_SLOT + slot_key(w, i);
	return key;
}

static void print_trail(const struct merged_walk *walk, uint32_t key)
{
	const struct trail *trail = &walk->trail[key];

	if (trail->parent == key) {
		printf("# %u seats at the start\n", trail->op.arg);
		return;
	}
	print_trail(walk, trail->parent);
	op_print(&trail->op);
}

static void merged_fail(const struct merged_walk *walk, uint32_t from,
			const struct op *op, const char *why)
{
	print_trail(walk, from);
	if (op)
		op_print(op);
	fail_msg("after these operations: %s", why);
}

static void remember(struct merged_walk *walk, const struct world *w,
		     uint32_t parent, const struct op *op)
{
	uint32_t key = state_key(w);
	const char *why;

	if (walk->trail[key].op.unused)
		return;
	walk->trail[key].parent = op ? parent : key;
	if (op)
		walk->trail[key].op = *op;
	else
		walk->trail[key].op.arg =
			(uint8_t)__builtin_popcountll(w->s.open);
	walk->trail[key].op.unused = 1;

	why = drains(w, true);
	if (!why)
		why = drains(w, false);
	if (why)
		merged_fail(walk, key, NULL, why);

	if (walk->nr_next == walk->room) {
		walk->room = walk->room ? walk->room * 2 : 1024;
		walk->next =
			realloc(walk->next, walk->room * sizeof(*walk->next));
		assert_non_null(walk->next);
		walk->frontier = realloc(walk->frontier,
					 walk->room * sizeof(*walk->frontier));
		assert_non_null(walk->frontier);
	}
	world_copy(&walk->next[walk->nr_next++], w);
	walk->nr_states++;
}

static void expand(struct merged_walk *walk, const struct world *stored)
{
	uint32_t key = state_key(stored);
	struct op ops[MODEL_OPS];
	struct world from, to;
	bool changed = true;
	uint32_t nr, i;

	/* Stored worlds move when the array grows: fix the inner pointer. */
	world_copy(&from, stored);
	nr = world_ops(&from, ops);
	for (i = 0; i < nr; i++) {
		const char *why;

		if (changed)
			world_copy(&to, &from);
		why = step(&from, &to, &ops[i], &changed, &walk->tally);
		if (why)
			merged_fail(walk, key, &ops[i], why);
		if (changed)
			remember(walk, &to, key, &ops[i]);
	}
}

static void every_state_there_is(void **state)
{
	struct merged_walk walk = { 0 };
	uint32_t depth = 0;
	uint32_t seats, i;

	(void)state;
	walk.trail = calloc(KEYS, sizeof(*walk.trail));
	assert_non_null(walk.trail);
	for (seats = 0; seats <= MODEL_SEATS; seats++) {
		struct world start;

		world_init(&start, seats);
		remember(&walk, &start, 0, NULL);
	}
	for (; walk.nr_next; depth++) {
		struct world *swap = walk.frontier;

		walk.frontier = walk.next;
		walk.next = swap;
		walk.nr_frontier = walk.nr_next;
		walk.nr_next = 0;
		for (i = 0; i < walk.nr_frontier; i++)
			expand(&walk, &walk.frontier[i]);
	}
	printf("# all depths: %u distinct states, the farthest %u operations "
	       "away; %llu calls, %llu refused\n",
	       walk.nr_states, depth - 1, (unsigned long long)walk.tally.calls,
	       (unsigned long long)walk.tally.refused);
	/* Both slots published to three readers needs six operations or more. */
	assert_true(depth > 6);
	free(walk.frontier);
	free(walk.next);
	free(walk.trail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sequence_to_a_depth),
		cmocka_unit_test(every_state_there_is),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("slots_walk", tests, NULL, NULL);
}
