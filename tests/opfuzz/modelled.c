// SPDX-License-Identifier: MIT
/*
 * The operations of the slot state machine, on the engine and on the model.
 *
 * The model says what the state machine has to do, and the state machine what
 * the engine has to answer: it is asked on a copy of the model's world first.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

static int call(struct ta_port *port, unsigned int cmd, void *arg)
{
	return port->ops->call(port, cmd, arg);
}

/* Performs an operation on the model; what it says about itself. */
static const char *on_model(struct stage *s, enum op_kind kind, uint32_t slot,
			    uint32_t arg)
{
	const struct op op = { .kind = (uint8_t)kind,
			       .slot = (uint8_t)slot,
			       .arg = (uint8_t)arg };
	bool changed;

	return model_apply(&s->w, &op, &changed);
}

static const char *check(struct stage *s, const char *what, int err,
			 int expected)
{
	if (err == expected)
		return NULL;
	return disagree(s, "%s: %d, the model expects %d", what, err, expected);
}

/* ---- bytes ---- */

/* A publication's bytes are its slot's generation. */
static void write_bytes(struct stage *s, const struct tensorarena_acquire *acq)
{
	if (acq->nbytes)
		s->writer->base[acq->offset] = (uint8_t)acq->generation;
}

static const char *check_bytes(struct stage *s, const struct ta_port *port,
			       const struct tensorarena_borrow *b)
{
	uint32_t slot = b->ticket.slot;

	if (slot >= MODEL_SLOTS || b->meta_bytes != 1 ||
	    b->meta[0] != s->w.slot[slot].meta[0])
		return disagree(s, "the descriptor is another one");
	if (b->ticket.arena != s->made.arena ||
	    b->ticket.generation != s->w.slot[slot].generation ||
	    b->ticket.nbytes != s->w.slot[slot].nbytes)
		return disagree(s, "the ticket is another one");
	if (b->ticket.nbytes &&
	    port->base[b->offset] != (uint8_t)b->ticket.generation)
		return disagree(s, "the bytes are those of another tensor");
	return NULL;
}

/* ---- the writer's ---- */

static const char *acquire(struct stage *s, uint64_t nbytes, bool *good)
{
	struct tensorarena_acquire acq = { .nbytes = nbytes };
	int err = call(s->writer, TENSORARENA_ACQUIRE, &acq);
	struct world copy;
	const char *why;
	int expected;

	world_copy(&copy, &s->w);
	expected = ta_slots_acquire(&copy.s, nbytes);
	why = on_model(s, OP_ACQUIRE, 0, (uint32_t)nbytes);
	if (!why)
		why = check(s, "ACQUIRE", err, expected < 0 ? expected : 0);
	if (why || err)
		return why;
	if (acq.slot != (uint32_t)expected ||
	    acq.generation != s->w.slot[expected].generation ||
	    acq.open != ta_slots_open(&s->w.s))
		return disagree(s, "ACQUIRE took another slot");
	*good = true;
	write_bytes(s, &acq);
	if (s->w.m.writing[expected].use == MODEL_BUILDING)
		return on_model(s, OP_BUILT, acq.slot, 0);
	return NULL;
}

static const char *publish(struct stage *s, const struct op *op, bool *good)
{
	uint64_t readers[MODEL_SEATS];
	struct tensorarena_publish pub = {
		.generation = s->w.m.acquired[op->slot],
		.nbytes = op->arg == OP_PUBLISH_TOO_MANY ? 2 :
			  op->arg == OP_PUBLISH_ALL	 ? 0 :
							   1,
		.slot = op->slot,
		.readers = (uintptr_t)readers,
		.meta_bytes = 1,
	};
	uint8_t meta = (uint8_t)(s->w.m.clock + 1);
	struct world copy;
	const char *why;
	int err, expected;
	uint32_t i;

	pub.meta[0] = meta;
	for (i = 0; op->arg < OP_PUBLISH_ALL && i < MODEL_SEATS; i++)
		if (op->arg >> i & 1)
			readers[pub.nr_readers++] = s->w.m.seat[i].reader;
	err = call(s->writer, TENSORARENA_PUBLISH, &pub);
	world_copy(&copy, &s->w);
	expected = ta_slots_publish(&copy.s, op->slot, pub.generation,
				    pub.nbytes,
				    op->arg < OP_PUBLISH_ALL ? op->arg : ~0ULL,
				    &meta, 1, 0);
	why = on_model(s, OP_PUBLISH, op->slot, op->arg);
	if (!why)
		why = check(s, "PUBLISH", err, expected < 0 ? expected : 0);
	if (!why && !err && pub.addressed != (uint32_t)expected)
		why = disagree(s, "PUBLISH addressed %u seats, not %d",
			       pub.addressed, expected);
	*good = !err;
	return why;
}

static const char *publish_stale(struct stage *s, const struct op *op)
{
	struct tensorarena_publish pub = {
		.generation = s->w.m.acquired[op->slot] - 1,
		.slot = op->slot,
	};
	int err = call(s->writer, TENSORARENA_PUBLISH, &pub);

	return check(s, "PUBLISH, stale", err, -ESTALE);
}

static const char *abort_slot(struct stage *s, const struct op *op, bool stale,
			      bool *good)
{
	struct tensorarena_slot_ref ref = {
		.generation = s->w.m.acquired[op->slot] - stale,
		.slot = op->slot,
	};
	int err = call(s->writer, TENSORARENA_ABORT, &ref);
	int expected = stale ? -ESTALE :
			       ta_slots_check_writing(&s->w.s, op->slot,
						      ref.generation);

	*good = !err;
	return on_model(s, op->kind, op->slot, op->arg) ?:
		       check(s, "ABORT", err, expected);
}

static const char *retract(struct stage *s, const struct op *op, bool stale,
			   bool *good)
{
	struct tensorarena_retract args = {
		.generation = s->w.m.acquired[op->slot] - stale,
		.slot = op->slot,
	};
	int err = call(s->writer, TENSORARENA_RETRACT, &args);
	__u32 pending = 0;
	struct world copy;
	const char *why;
	int expected;

	world_copy(&copy, &s->w);
	expected =
		ta_slots_retract(&copy.s, op->slot, args.generation, &pending);
	*good = !err;
	why = on_model(s, op->kind, op->slot, op->arg) ?:
		      check(s, "RETRACT", err, expected < 0 ? expected : 0);
	if (!why && !err &&
	    (args.retracted != (uint32_t)expected || args.pending != pending))
		why = disagree(s, "RETRACT from %u seats, left to %u",
			       args.retracted, args.pending);
	return why;
}

static const char *close_unclaimed(struct stage *s, const struct op *op,
				   bool *good)
{
	struct tensorarena_evict evict = { .reader = op->slot,
					   .flags = TENSORARENA_EVICT_SEAT };
	int err = call(s->writer, TENSORARENA_EVICT, &evict);
	struct world copy;
	int expected;

	world_copy(&copy, &s->w);
	expected = ta_slots_close_unclaimed(&copy.s, op->slot);
	*good = !err;
	if (!err && evict.freed != (uint32_t)expected)
		return disagree(s, "EVICT of a seat freed %u, not %d",
				evict.freed, expected);
	return on_model(s, op->kind, op->slot, 0) ?:
		       check(s, "EVICT of a seat", err,
			     expected < 0 ? expected : 0);
}

static const char *writer_gone(struct stage *s)
{
	struct tensorarena_detach detach = { 0 };
	const char *why = NULL;
	struct world copy;
	int freed;

	world_copy(&copy, &s->w);
	freed = ta_slots_writer_gone(&copy.s);
	if (s->device) {
		why = check(s, "DETACH of the writer",
			    call(s->writer, TENSORARENA_DETACH, &detach), 0);
		if (!why && detach.freed != (uint32_t)freed)
			why = disagree(s, "DETACH freed %u, not %d",
				       detach.freed, freed);
	}
	s->writer->ops->close(s->writer, false);
	s->writer = NULL;
	return why ?: on_model(s, OP_WRITER_GONE, 0, 0);
}

/* ---- the readers' ---- */

static const char *next(struct stage *s, const struct op *op, bool *good)
{
	struct ta_port *port = s->seat[op->slot].port;
	struct tensorarena_borrow b = { .flags = 0 };
	int err = call(port, TENSORARENA_NEXT, &b);
	struct world copy;
	const char *why;
	int expected;

	world_copy(&copy, &s->w);
	expected = ta_slots_next(&copy.s, op->slot);
	*good = !err;
	why = on_model(s, OP_NEXT, op->slot, 0) ?:
		      check(s, "NEXT", err, expected < 0 ? expected : 0);
	if (why || err)
		return why;
	if (b.ticket.slot != (uint32_t)expected)
		return disagree(s, "NEXT took another slot");
	return check_bytes(s, port, &b);
}

static const char *borrow(struct stage *s, const struct op *op,
			  const struct model_ticket *ticket, bool *good)
{
	struct ta_port *port = s->seat[op->slot].port;
	struct tensorarena_borrow b = {
		.ticket = {
			.arena = s->made.arena,
			.generation = ticket->generation,
			.nbytes = ticket->nbytes,
			.slot = ticket->slot,
		},
	};
	struct tensorarena_ticket asked = b.ticket;
	int err = call(port, TENSORARENA_BORROW, &b);
	struct world copy;
	const char *why;

	world_copy(&copy, &s->w);
	*good = !err;
	why = check(s, "BORROW", err, ta_slots_borrow(&copy.s, op->slot, &asked)) ?:
		      on_model(s, op->kind, op->slot, op->arg);
	return why || err ? why : check_bytes(s, port, &b);
}

static const char *borrow_forged(struct stage *s, const struct op *op,
				 bool *good)
{
	const struct model *m = &s->w.m;
	struct model_ticket ticket = { .generation = 1 };

	/* As the model does it. */
	if (m->nr_published)
		ticket = m->published[m->nr_published - 1].ticket;
	if (op->arg == FORGED_BYTES)
		ticket.nbytes++;
	else if (op->arg == FORGED_SLOT)
		ticket.slot = MODEL_SLOTS;
	else
		ticket.generation = m->acquired[ticket.slot] + 1;
	return borrow(s, op, &ticket, good);
}

static const char *release(struct stage *s, const struct op *op, bool *good)
{
	const struct model_ticket *ticket = &s->w.m.ticket[op->arg];
	struct tensorarena_slot_ref ref = {
		.generation = ticket->generation,
		.slot = ticket->slot,
	};
	int err = call(s->seat[op->slot].port, TENSORARENA_RELEASE, &ref);
	struct world copy;
	int expected;

	world_copy(&copy, &s->w);
	expected =
		ta_slots_release(&copy.s, op->slot, ref.slot, ref.generation);
	*good = !err;
	return on_model(s, op->kind, op->slot, op->arg) ?:
		       check(s, "RELEASE", err, expected < 0 ? expected : 0);
}

/* ---- seats ---- */

/* A reader in a process of its own, which only lives until it is killed. */
static int attach_child(struct stage *s, struct seat *seat)
{
	int pair[2];
	char byte = 0;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	seat->child = fork();
	MUST(seat->child >= 0);
	if (!seat->child) {
		int err = s->engine->attach(&s->handle, -1, &seat->attached,
					    &seat->port);

		close(pair[0]);
		if (send(pair[1], &seat->attached, sizeof(seat->attached),
			 MSG_NOSIGNAL) < 0 ||
		    err)
			_exit(1);
		recv(pair[1], &byte, 1, 0);
		_exit(0);
	}
	close(pair[1]);
	seat->child_sock = pair[0];
	MUST(recv(pair[0], &seat->attached, sizeof(seat->attached), 0) ==
	     sizeof(seat->attached));
	return 0;
}

static const char *attach(struct stage *s, const struct op *op)
{
	struct seat seat = { 0 };
	struct world copy;
	__u32 expected = ~0U;
	__u64 reader = 0;
	int err;

	world_copy(&copy, &s->w);
	if (ta_slots_attach(&copy.s, &expected, &reader))
		return "attach is not possible"; /* see can_express() */
	if (op->unused)
		err = attach_child(s, &seat);
	else
		err = s->engine->attach(&s->handle, -1, &seat.attached,
					&seat.port);
	if (err)
		return disagree(s, "ATTACH: %d", err);
	if (seat.attached.seat != expected || seat.attached.reader != reader)
		return disagree(s, "ATTACH gave seat %u to reader %llu",
				seat.attached.seat,
				(unsigned long long)seat.attached.reader);
	s->seat[expected] = seat;
	return on_model(s, OP_ATTACH, 0, 0);
}

static const char *await_death(struct stage *s, uint64_t deaths)
{
	double end = now_seconds() + 30;
	struct tensorarena_stats st;

	do {
		if (!s->writer)
			return NULL;
		memset(&st, 0, sizeof(st));
		if (call(s->writer, TENSORARENA_STATS, &st))
			return disagree(s, "STATS failed");
		if (st.reclaimed_dead_readers == deaths)
			return NULL;
		usleep(100);
	} while (now_seconds() < end);
	return disagree(s, "a death was not seen");
}

static const char *kill_child(struct stage *s, struct seat *seat)
{
	MUST(!kill(seat->child, SIGKILL));
	MUST(waitpid(seat->child, NULL, 0) == seat->child);
	close(seat->child_sock);
	return await_death(s, s->w.m.count.reclaimed_dead_readers + 1);
}

static const char *evict(struct stage *s, struct seat *seat, uint32_t nr)
{
	struct tensorarena_evict evict = { .reader = seat->attached.reader };
	struct tensorarena_borrow b = { .flags = 0 };
	struct world copy;
	const char *why;
	int freed;

	world_copy(&copy, &s->w);
	freed = ta_slots_leave(&copy.s, nr, TA_LEAVE_EVICTED);
	why = check(s, "EVICT", call(s->writer, TENSORARENA_EVICT, &evict), 0);
	if (!why && evict.freed != (uint32_t)freed)
		why = disagree(s, "EVICT freed %u, not %d", evict.freed, freed);
	if (why)
		return why;
	why = check(s, "NEXT of an evicted reader",
		    call(seat->port, TENSORARENA_NEXT, &b), -EOWNERDEAD);
	seat->port->ops->close(seat->port, false);
	return why;
}

static const char *leave(struct stage *s, const struct op *op)
{
	struct seat *seat = &s->seat[op->slot];
	const char *why = NULL;

	if (op->arg == TA_LEAVE_DIED)
		why = kill_child(s, seat);
	else if (op->arg == TA_LEAVE_EVICTED)
		why = evict(s, seat, op->slot);
	else
		seat->port->ops->close(seat->port, false);
	memset(seat, 0, sizeof(*seat));
	return why ?: on_model(s, OP_LEAVE, op->slot, op->arg);
}

/* ---- which, and all together ---- */

static bool all_claimed(const struct stage *s, uint32_t mask)
{
	uint32_t i;

	for (i = 0; i < MODEL_SEATS; i++)
		if (mask >> i & 1 && !s->w.m.seat[i].reader)
			return false;
	return mask;
}

bool can_express(const struct stage *s, const struct op *op)
{
	const struct seat *seat =
		&s->seat[op->slot < MODEL_SEATS ? op->slot : 0];
	bool here = seat->port;

	switch (op->kind) {
	case OP_ACQUIRE:
	case OP_ABORT:
	case OP_ABORT_STALE:
	case OP_RETRACT:
	case OP_RETRACT_STALE:
	case OP_PUBLISH_STALE:
	case OP_CLOSE_UNCLAIMED:
	case OP_WRITER_GONE:
		return s->writer;
	case OP_PUBLISH:
		return s->writer &&
		       (op->arg >= OP_PUBLISH_ALL || all_claimed(s, op->arg));
	case OP_NEXT:
	case OP_BORROW:
	case OP_BORROW_FORGED:
	case OP_RELEASE:
		return here;
	case OP_ATTACH:
		return s->writer;
	case OP_LEAVE:
		if (op->arg == TA_LEAVE_DIED)
			return !here;
		return here && (op->arg == TA_LEAVE_DETACHED || s->writer);
	default:
		return false;
	}
}

const char *modelled_op(struct stage *s, const struct op *op, bool *good)
{
	*good = false;
	switch (op->kind) {
	case OP_ACQUIRE:
		return acquire(s, op->arg, good);
	case OP_PUBLISH:
		return publish(s, op, good);
	case OP_PUBLISH_STALE:
		return publish_stale(s, op);
	case OP_ABORT:
		return abort_slot(s, op, false, good);
	case OP_ABORT_STALE:
		return abort_slot(s, op, true, good);
	case OP_RETRACT:
		return retract(s, op, false, good);
	case OP_RETRACT_STALE:
		return retract(s, op, true, good);
	case OP_NEXT:
		return next(s, op, good);
	case OP_BORROW:
		return borrow(s, op, &s->w.m.ticket[op->arg], good);
	case OP_BORROW_FORGED:
		return borrow_forged(s, op, good);
	case OP_RELEASE:
		return release(s, op, good);
	case OP_CLOSE_UNCLAIMED:
		return close_unclaimed(s, op, good);
	default:
		break;
	}
	*good = true;
	if (op->kind == OP_ATTACH)
		return attach(s, op);
	if (op->kind == OP_LEAVE)
		return leave(s, op);
	return writer_gone(s);
}

static uint32_t count_built(const struct stage *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < MODEL_SLOTS; i++)
		n += s->w.m.writing[i].built;
	return n;
}

/* Takes a free slot of the model's, and gives it back changed. */
static const char *rework(struct stage *s, uint32_t slot, enum untake how)
{
	struct world copy;

	world_copy(&copy, &s->w);
	if (ta_slots_take(&copy.s, slot))
		return NULL;
	return on_model(s, OP_TAKE, slot, 0) ?:
					       on_model(s, OP_UNTAKE, slot, how);
}

const char *populate_op(struct stage *s, uint32_t choice, bool *good)
{
	struct tensorarena_populate args = {
		.nbytes = MODEL_SLOT_BYTES, .slots = choice % (MODEL_SLOTS + 1)
	};
	const char *why = check(
		s, "POPULATE", call(s->writer, TENSORARENA_POPULATE, &args), 0);
	uint32_t i;

	for (i = 0; i < MODEL_SLOTS && !why; i++)
		if (count_built(s) < args.slots && !s->w.m.writing[i].built)
			why = rework(s, i, UNTAKE_BUILT);
	if (!why && args.ready != count_built(s))
		why = disagree(s, "POPULATE: %u ready, not %u", args.ready,
			       count_built(s));
	*good = true;
	return why;
}

/*
 * Whether one of the slots that TRIM has found busy is this.  Nobody has pinned
 * it, but compaction looks at a page for a moment.
 */
static bool was_busy(const struct stage *s, struct tensorarena_trim *args,
		     uint32_t slot)
{
	struct iovec remote = {
		.iov_base = s->writer->base + slot * s->made.stride,
		.iov_len = 1,
	};
	char byte;
	struct iovec local = { .iov_base = &byte, .iov_len = 1 };

	/* What has no memory cannot be read. */
	if (!args->busy ||
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
		return false;
	args->busy--;
	return true;
}

/* Does what one TRIM has done. */
static const char *follow_trim(struct stage *s, struct tensorarena_trim *args,
			       uint32_t keep)
{
	const char *why = NULL;
	uint32_t i = MODEL_SLOTS;

	while (i-- && count_built(s) > keep && !why) {
		if (s->w.m.writing[i].built &&
		    s->w.slot[i].state == TA_SLOT_FREE)
			why = rework(s, i,
				     was_busy(s, args, i) ? UNTAKE_UNCHANGED :
							    UNTAKE_TRIMMED);
	}
	if (!why && args->busy)
		why = disagree(s, "TRIM: %u more are busy", args->busy);
	return why;
}

const char *trim_op(struct stage *s, uint32_t choice, bool *good)
{
	uint32_t keep = choice % (MODEL_SLOTS + 1);
	struct tensorarena_trim args = { .keep_bytes = keep * s->made.stride };
	const char *why = NULL;
	double end = now_seconds() + 30;
	uint32_t before = count_built(s);
	uint64_t freed = 0;
	int err;

	do {
		err = call(s->writer, TENSORARENA_TRIM, &args);
		freed += args.freed_bytes;
		why = follow_trim(s, &args, keep);
	} while (err == -EBUSY && !why && now_seconds() < end);
	if (!why && err == -EBUSY)
		why = disagree(s, "TRIM: nobody has anything pinned");
	else if (!why && err)
		why = disagree(s, "TRIM: %d", err);
	if (!why && freed != (before - count_built(s)) * s->made.stride)
		why = disagree(s, "TRIM freed %llu bytes",
			       (unsigned long long)freed);
	*good = true;
	return why;
}
