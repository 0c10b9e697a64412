// SPDX-License-Identifier: MIT
/* The naive model of the slot state machine; see slots_model.h. */
#include <errno.h>
#include <string.h>

#include "slots_model.h"

#define DISAGREE(condition, what)                                              \
	do {                                                                   \
		if (condition)                                                 \
			return what;                                           \
	} while (0)

void world_init(struct world *w, uint32_t seats)
{
	uint32_t i;

	memset(w, 0, sizeof(*w));
	ta_slots_init(&w->s, w->slot, MODEL_SLOTS, MODEL_SLOT_BYTES, seats);
	for (i = 0; i < seats; i++)
		w->m.seat[i].tenure = ++w->m.last_tenure;
}

void world_copy(struct world *to, const struct world *from)
{
	*to = *from;
	to->s.slot = to->slot;
}

/* ---- questions to the model ---- */

static struct model_publication *published_in(struct model *m, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < m->nr_published; i++)
		if (m->published[i].ticket.slot == slot)
			return &m->published[i];
	return NULL;
}

static bool is_free(struct model *m, uint32_t slot)
{
	return m->writing[slot].use == MODEL_IDLE && !published_in(m, slot);
}

static struct model_copy *copy_of(struct model_publication *p, uint32_t tenure)
{
	uint32_t i;

	for (i = 0; i < p->nr_copies; i++)
		if (p->copy[i].tenure == tenure)
			return &p->copy[i];
	return NULL;
}

static bool anyone_pending(const struct model_publication *p)
{
	uint32_t i;

	for (i = 0; i < p->nr_copies; i++)
		if (!p->copy[i].released)
			return true;
	return false;
}

static uint32_t open_seats(const struct model *m)
{
	uint32_t i, n = 0;

	for (i = 0; i < MODEL_SEATS; i++)
		n += m->seat[i].tenure != 0;
	return n;
}

/* ---- changes to the model ---- */

/* Drops publications that nobody has pending; returns how many. */
static int collect(struct model *m)
{
	uint32_t i, kept = 0;

	for (i = 0; i < m->nr_published; i++)
		if (anyone_pending(&m->published[i]))
			m->published[kept++] = m->published[i];
	i = m->nr_published - kept;
	m->nr_published = kept;
	return (int)i;
}

/* The tenure ends: its copies are as good as released, then forgotten. */
static int end_tenure(struct model *m, uint32_t seat)
{
	uint32_t tenure = m->seat[seat].tenure;
	uint32_t i, j, kept;

	for (i = 0; i < m->nr_published; i++) {
		struct model_publication *p = &m->published[i];

		for (j = 0, kept = 0; j < p->nr_copies; j++)
			if (p->copy[j].tenure != tenure)
				p->copy[kept++] = p->copy[j];
		p->nr_copies = kept;
	}
	m->seat[seat].tenure = 0;
	m->seat[seat].reader = 0;
	return collect(m);
}

static void keep_ticket(struct model *m, const struct model_ticket *ticket)
{
	if (m->nr_tickets == MODEL_TICKETS) {
		memmove(&m->ticket[0], &m->ticket[1],
			sizeof(m->ticket) - sizeof(m->ticket[0]));
		m->nr_tickets--;
	}
	m->ticket[m->nr_tickets++] = *ticket;
}

/* ---- the writer's operations ---- */

/* A free slot that has memory, else any free slot; the lowest such. */
static uint32_t preferred_slot(struct model *m)
{
	uint32_t slot;

	for (slot = 0; slot < MODEL_SLOTS; slot++)
		if (is_free(m, slot) && m->writing[slot].built)
			return slot;
	for (slot = 0; slot < MODEL_SLOTS; slot++)
		if (is_free(m, slot))
			return slot;
	return MODEL_SLOTS;
}

static const char *apply_acquire(struct world *w, uint64_t nbytes,
				 bool *changed)
{
	struct model *m = &w->m;
	uint32_t expected = preferred_slot(m);
	int slot = ta_slots_acquire(&w->s, nbytes);

	if (nbytes > MODEL_SLOT_BYTES) {
		m->count.declined_oversize++;
		DISAGREE(slot != -EMSGSIZE, "oversize acquire not declined");
		return NULL;
	}
	if (expected == MODEL_SLOTS) {
		m->count.declined_no_slot++;
		DISAGREE(slot != -EAGAIN, "a slot was reused while pending");
		return NULL;
	}
	*changed = true;
	m->acquired[expected]++;
	m->writing[expected].use = m->writing[expected].built ? MODEL_WRITING :
								MODEL_BUILDING;
	DISAGREE(slot != (int)expected, "acquire took the wrong slot");
	return NULL;
}

static const char *apply_built(struct world *w, uint32_t slot)
{
	struct model *m = &w->m;
	int err = ta_slots_built(&w->s, slot, MODEL_SLOT_BYTES);

	m->writing[slot].built = true;
	m->writing[slot].use = m->writer_gone ? MODEL_IDLE : MODEL_WRITING;
	DISAGREE(err != (m->writer_gone ? -EPIPE : 0),
		 "memory came, and the answer was another");
	return NULL;
}

static const char *apply_no_memory(struct world *w, uint32_t slot)
{
	ta_slots_no_memory(&w->s, slot);
	w->m.writing[slot].use = MODEL_IDLE;
	w->m.count.declined_no_memory++;
	return NULL;
}

static const char *apply_take(struct world *w, uint32_t slot, bool *changed)
{
	int err = ta_slots_take(&w->s, slot);

	if (!is_free(&w->m, slot)) {
		DISAGREE(err != -EAGAIN, "take of a slot in use");
		return NULL;
	}
	*changed = true;
	w->m.acquired[slot]++;
	w->m.writing[slot].use = MODEL_TAKEN;
	DISAGREE(err, "take of a free slot failed");
	return NULL;
}

static const char *apply_untake(struct world *w, uint32_t slot, enum untake did,
				bool *changed)
{
	struct model_writing *writing = &w->m.writing[slot];

	*changed = writing->use == MODEL_TAKEN;
	if (*changed && did != UNTAKE_UNCHANGED) {
		writing->built = did == UNTAKE_BUILT;
		w->slot[slot].capacity = writing->built ? MODEL_SLOT_BYTES : 0;
	}
	writing->use = MODEL_IDLE;
	ta_slots_untake(&w->s, slot);
	return NULL;
}

static const char *apply_publish(struct world *w, uint32_t slot, uint8_t arg,
				 bool *changed)
{
	struct model *m = &w->m;
	uint64_t mask = arg == OP_PUBLISH_ALL ? ~0ULL : arg;
	uint64_t nbytes = MODEL_SLOT_BYTES;
	struct model_publication p = { 0 };
	uint8_t meta;
	uint32_t i;
	int ret;

	if (arg == OP_PUBLISH_TOO_MANY)
		nbytes++;
	else if (arg == OP_PUBLISH_ALL)
		nbytes = 0;
	meta = (uint8_t)(++m->clock);
	ret = ta_slots_publish(&w->s, slot, m->acquired[slot], nbytes, mask,
			       &meta, 1, m->clock);
	if (m->writing[slot].use != MODEL_WRITING) {
		DISAGREE(ret != -ESTALE, "publish of a slot not being written");
		return NULL;
	}
	if (arg == OP_PUBLISH_TOO_MANY) {
		DISAGREE(ret != -EINVAL, "published more than was acquired");
		return NULL;
	}

	p.ticket.slot = slot;
	p.ticket.generation = m->acquired[slot];
	p.ticket.nbytes = nbytes;
	p.stamp = m->clock;
	p.meta = meta;
	for (i = 0; i < MODEL_SEATS; i++)
		if (m->seat[i].tenure && (mask >> i & 1))
			p.copy[p.nr_copies++].tenure = m->seat[i].tenure;
	*changed = true;
	m->writing[slot].use = MODEL_IDLE;
	DISAGREE(ret != (int)p.nr_copies, "publish addressed other seats");
	if (!p.nr_copies) {
		m->count.unaddressed++;
		return NULL;
	}
	m->published[m->nr_published++] = p;
	keep_ticket(m, &p.ticket);
	m->count.puts++;
	m->count.put_bytes += nbytes;
	return NULL;
}

static const char *apply_publish_stale(struct world *w, uint32_t slot)
{
	uint8_t meta = 0;

	DISAGREE(ta_slots_publish(&w->s, slot, w->m.acquired[slot] - 1, 0,
				  ~0ULL, &meta, 1, 0) != -ESTALE,
		 "publish at an old generation");
	DISAGREE(ta_slots_publish(&w->s, MODEL_SLOTS, 1, 0, ~0ULL, &meta, 1,
				  0) != -EINVAL,
		 "publish of a slot that does not exist");
	return NULL;
}

static const char *apply_abort(struct world *w, uint32_t slot, bool *changed)
{
	struct model *m = &w->m;
	int err = ta_slots_abort(&w->s, slot, m->acquired[slot]);

	if (m->writing[slot].use != MODEL_WRITING) {
		DISAGREE(err != -ESTALE, "abort of a slot not being written");
		return NULL;
	}
	*changed = true;
	m->writing[slot].use = MODEL_IDLE;
	m->count.aborted++;
	DISAGREE(err, "abort failed");
	return NULL;
}

static const char *apply_abort_stale(struct world *w, uint32_t slot)
{
	DISAGREE(ta_slots_abort(&w->s, slot, w->m.acquired[slot] - 1) !=
			 -ESTALE,
		 "abort at an old generation");
	DISAGREE(ta_slots_abort(&w->s, MODEL_SLOTS, 1) != -EINVAL,
		 "abort of a slot that does not exist");
	return NULL;
}

static const char *apply_retract(struct world *w, uint32_t slot,
				 uint64_t generation, bool *changed)
{
	struct model *m = &w->m;
	struct model_publication *p = published_in(m, slot);
	uint32_t left = 0, pending = 0;
	int ret = ta_slots_retract(&w->s, slot, generation, &pending);
	int expected = 0;
	uint32_t i;

	if (!p || p->ticket.generation != generation) {
		DISAGREE(ret != -ESTALE, "retract of what is not published");
		return NULL;
	}
	for (i = 0; i < p->nr_copies; i++) {
		if (p->copy[i].released)
			continue;
		if (p->copy[i].seen) {
			left++;
			continue;
		}
		p->copy[i].released = true;
		expected++;
	}
	*changed = expected;
	m->count.retracted += (uint64_t)expected;
	collect(m);
	DISAGREE(ret != expected, "retract from other seats");
	DISAGREE(pending != left, "retract left it to other seats");
	return NULL;
}

static const char *apply_retract_stale(struct world *w, uint32_t slot,
				       bool *changed)
{
	uint32_t pending = 0;

	DISAGREE(ta_slots_retract(&w->s, MODEL_SLOTS, 1, &pending) != -EINVAL,
		 "retract of a slot that does not exist");
	return apply_retract(w, slot, w->m.acquired[slot] - 1, changed);
}

static const char *apply_writer_gone(struct world *w)
{
	struct model *m = &w->m;
	int freed = ta_slots_writer_gone(&w->s);
	int expected = 0;
	uint32_t i;

	if (!m->writer_gone) {
		m->writer_gone = true;
		for (i = 0; i < MODEL_SLOTS; i++) {
			if (m->writing[i].use != MODEL_WRITING)
				continue;
			m->writing[i].use = MODEL_IDLE;
			expected++;
		}
		for (i = 0; i < MODEL_SEATS; i++)
			if (m->seat[i].tenure && !m->seat[i].reader)
				expected += end_tenure(m, i);
	}
	DISAGREE(freed != expected, "writer death freed other slots");
	return NULL;
}

/* ---- the readers' operations ---- */

/* What the model says of a reader's claim on a ticket: 0 or an error. */
static int ticket_error(struct model *m, uint32_t seat,
			const struct model_ticket *ticket,
			struct model_copy **copy)
{
	struct model_publication *p;

	if (ticket->slot >= MODEL_SLOTS)
		return -EINVAL;
	p = published_in(m, ticket->slot);
	if (!p || p->ticket.generation != ticket->generation)
		return -ESTALE;
	*copy = copy_of(p, m->seat[seat].tenure);
	if (!*copy)
		return -ENXIO;
	if ((*copy)->released)
		return -ESTALE;
	return 0;
}

static const char *apply_next(struct world *w, uint32_t seat, bool *changed)
{
	struct model *m = &w->m;
	struct model_publication *p = NULL;
	int slot = ta_slots_next(&w->s, seat);
	uint32_t i;

	for (i = 0; i < m->nr_published && !p; i++) {
		struct model_copy *copy;

		copy = copy_of(&m->published[i], m->seat[seat].tenure);
		if (!copy || copy->released || copy->seen)
			continue;
		copy->seen = true;
		p = &m->published[i];
	}
	*changed = p;
	if (!p) {
		DISAGREE(slot != (m->writer_gone ? -EPIPE : -EAGAIN),
			 "next gave what nobody sent");
		return NULL;
	}
	DISAGREE(slot != (int)p->ticket.slot,
		 "next did not give the oldest publication");
	DISAGREE(w->slot[slot].meta[0] != p->meta, "next gave other bytes");
	return NULL;
}

static const char *borrow(struct world *w, uint32_t seat,
			  const struct model_ticket *ticket, bool *changed)
{
	struct tensorarena_ticket t = {
		.generation = ticket->generation,
		.nbytes = ticket->nbytes,
		.slot = ticket->slot,
	};
	struct model_publication *p = published_in(&w->m, ticket->slot);
	struct model_copy *copy = NULL;
	int expected = ticket_error(&w->m, seat, ticket, &copy);
	int err = ta_slots_borrow(&w->s, seat, &t);

	if (!expected && p->ticket.nbytes != ticket->nbytes)
		expected = -ESTALE;
	*changed = !expected && !copy->seen;
	if (!expected)
		copy->seen = true;
	DISAGREE(!err && expected, "borrow accepted a bad ticket");
	DISAGREE(err != expected, "borrow gave another error");
	return NULL;
}

static const char *apply_borrow_forged(struct world *w, uint32_t seat,
				       enum forgery what, bool *changed)
{
	struct model_ticket ticket = { .generation = 1 };

	if (w->m.nr_published)
		ticket = w->m.published[w->m.nr_published - 1].ticket;
	switch (what) {
	case FORGED_BYTES:
		ticket.nbytes++;
		break;
	case FORGED_SLOT:
		ticket.slot = MODEL_SLOTS;
		break;
	default:
		ticket.generation = w->m.acquired[ticket.slot] + 1;
		break;
	}
	return borrow(w, seat, &ticket, changed);
}

static const char *apply_unsee(struct world *w, uint32_t seat,
			       const struct model_ticket *ticket, bool *changed)
{
	struct model_copy *copy = NULL;

	ta_slots_unsee(&w->s, seat, ticket->slot, ticket->generation);
	if (ticket_error(&w->m, seat, ticket, &copy))
		return NULL;
	*changed = copy->seen;
	copy->seen = false;
	return NULL;
}

static const char *apply_release(struct world *w, uint32_t seat,
				 const struct model_ticket *ticket,
				 bool *changed)
{
	struct model *m = &w->m;
	struct model_copy *copy = NULL;
	int expected = ticket_error(m, seat, ticket, &copy);
	int ret =
		ta_slots_release(&w->s, seat, ticket->slot, ticket->generation);

	*changed = !expected;
	if (!expected) {
		copy->released = true;
		m->count.released++;
		expected = collect(m);
	}
	DISAGREE(ret != expected, "release gave another result");
	return NULL;
}

/* ---- seats ---- */

static const char *apply_attach(struct world *w, bool *changed)
{
	struct model *m = &w->m;
	uint32_t seat = ~0U, expected = MODEL_SEATS, i;
	__u64 reader = 0;
	int err = ta_slots_attach(&w->s, &seat, &reader);

	*changed = !m->writer_gone;
	if (m->writer_gone) {
		DISAGREE(err != -EPIPE, "attached without a writer");
		return NULL;
	}
	/* The lowest that waits for its reader, else the lowest closed. */
	for (i = MODEL_SEATS; i-- > 0;)
		if (!m->seat[i].tenure)
			expected = i;
	for (i = MODEL_SEATS; i-- > 0;)
		if (m->seat[i].tenure && !m->seat[i].reader)
			expected = i;
	if (!m->seat[expected].tenure)
		m->seat[expected].tenure = ++m->last_tenure;
	m->seat[expected].reader = ++m->last_reader;
	m->count.attached++;
	DISAGREE(err, "attach failed");
	DISAGREE(seat != expected, "attach took another seat");
	DISAGREE(reader != m->last_reader, "reader id not new");
	return NULL;
}

static const char *apply_leave(struct world *w, uint32_t seat,
			       enum ta_leave why)
{
	struct model *m = &w->m;
	int freed = ta_slots_leave(&w->s, seat, why);

	m->count.detached += why == TA_LEAVE_DETACHED;
	m->count.evicted += why == TA_LEAVE_EVICTED;
	m->count.reclaimed_dead_readers += why == TA_LEAVE_DIED;
	DISAGREE(freed != end_tenure(m, seat), "leave freed other slots");
	return NULL;
}

static const char *apply_close_unclaimed(struct world *w, uint32_t seat,
					 bool *changed)
{
	struct model *m = &w->m;
	int ret = ta_slots_close_unclaimed(&w->s, seat);
	int expected = -ESTALE;

	if (seat < MODEL_SEATS && m->seat[seat].tenure &&
	    !m->seat[seat].reader) {
		expected = end_tenure(m, seat);
		*changed = true;
	}
	DISAGREE(ret != expected, "close_unclaimed gave another result");
	return NULL;
}

/* ---- all together ---- */

const char *model_apply(struct world *w, const struct op *op, bool *changed)
{
	struct model *m = &w->m;

	*changed = false;
	switch (op->kind) {
	case OP_ACQUIRE:
		return apply_acquire(w, op->arg, changed);
	case OP_BUILT:
		*changed = true;
		return apply_built(w, op->slot);
	case OP_NO_MEMORY:
		*changed = true;
		return apply_no_memory(w, op->slot);
	case OP_TAKE:
		return apply_take(w, op->slot, changed);
	case OP_UNTAKE:
		return apply_untake(w, op->slot, op->arg, changed);
	case OP_PUBLISH:
		return apply_publish(w, op->slot, op->arg, changed);
	case OP_PUBLISH_STALE:
		return apply_publish_stale(w, op->slot);
	case OP_ABORT:
		return apply_abort(w, op->slot, changed);
	case OP_ABORT_STALE:
		return apply_abort_stale(w, op->slot);
	case OP_RETRACT:
		return apply_retract(w, op->slot, m->acquired[op->slot],
				     changed);
	case OP_RETRACT_STALE:
		return apply_retract_stale(w, op->slot, changed);
	case OP_NEXT:
		return apply_next(w, op->slot, changed);
	case OP_BORROW:
		return borrow(w, op->slot, &m->ticket[op->arg], changed);
	case OP_BORROW_FORGED:
		return apply_borrow_forged(w, op->slot, op->arg, changed);
	case OP_UNSEE:
		return apply_unsee(w, op->slot, &m->ticket[op->arg], changed);
	case OP_RELEASE:
		return apply_release(w, op->slot, &m->ticket[op->arg], changed);
	case OP_ATTACH:
		return apply_attach(w, changed);
	case OP_LEAVE:
		*changed = true;
		return apply_leave(w, op->slot, op->arg);
	case OP_CLOSE_UNCLAIMED:
		return apply_close_unclaimed(w, op->slot, changed);
	case OP_WRITER_GONE:
		*changed = !m->writer_gone;
		return apply_writer_gone(w);
	default:
		return "no such operation";
	}
}

/* ---- comparison ---- */

static const char *compare_slot(const struct world *w, uint32_t slot,
				uint32_t *nr_state)
{
	struct model *m = (struct model *)&w->m;
	const struct ta_slot *s = &w->slot[slot];
	struct model_publication *p = published_in(m, slot);
	uint64_t addressed = 0, pending = 0, unseen = 0;
	uint32_t seat;

	nr_state[s->state]++;
	DISAGREE(s->generation != m->acquired[slot], "generation");
	DISAGREE((s->state == TA_SLOT_WRITING) !=
			 (m->writing[slot].use != MODEL_IDLE),
		 "slot being written");
	DISAGREE(ta_slots_check_writing(&w->s, slot, m->acquired[slot]) !=
			 (m->writing[slot].use == MODEL_WRITING ? 0 : -ESTALE),
		 "check_writing");
	DISAGREE((s->state == TA_SLOT_PUBLISHED) != (p != NULL),
		 "slot published");
	for (seat = 0; p && seat < MODEL_SEATS; seat++) {
		struct model_copy *copy = NULL;
		uint64_t bit = 1ULL << seat;

		if (m->seat[seat].tenure)
			copy = copy_of(p, m->seat[seat].tenure);
		if (!copy)
			continue;
		addressed |= bit;
		pending |= copy->released ? 0 : bit;
		unseen |= copy->released || copy->seen ? 0 : bit;
	}
	DISAGREE(s->addressed != addressed, "seats addressed");
	DISAGREE(s->pending != pending, "seats pending");
	DISAGREE(s->unseen != unseen, "seats that have not seen it");
	if (p) {
		DISAGREE(s->nbytes != p->ticket.nbytes, "bytes published");
		DISAGREE(s->stamp != p->stamp, "stamp");
		DISAGREE(s->meta_bytes != 1 || s->meta[0] != p->meta, "meta");
	}
	return NULL;
}

static const char *compare_seat(const struct world *w, uint32_t seat)
{
	const struct model *m = &w->m;
	const struct model_seat *ms = &m->seat[seat];
	uint64_t bit = 1ULL << seat;
	__u64 oldest = 0, expected_oldest = 0;
	uint32_t i, pending = 0;
	bool unseen = false;

	DISAGREE(!(w->s.open & bit) != !ms->tenure, "open seats");
	DISAGREE(!(w->s.claimed & bit) != !ms->reader, "claimed seats");
	DISAGREE(w->s.reader[seat] != ms->reader, "reader id");
	if (ms->reader)
		DISAGREE(ta_slots_seat_of(&w->s, ms->reader) != (int)seat,
			 "seat of a reader");
	if (!ms->tenure)
		return NULL;
	for (i = 0; i < m->nr_published; i++) {
		struct model_publication *p =
			(struct model_publication *)&m->published[i];
		struct model_copy *copy = copy_of(p, ms->tenure);

		if (!copy || copy->released)
			continue;
		if (!pending++)
			expected_oldest = p->stamp;
		unseen = unseen || !copy->seen;
	}
	DISAGREE(ta_slots_pending(&w->s, seat, &oldest) != pending,
		 "pending count");
	DISAGREE(oldest != expected_oldest, "oldest stamp of a seat");
	DISAGREE(ta_slots_has_unseen(&w->s, seat) != unseen, "has_unseen");
	return NULL;
}

/* Old reader ids must stay dead: the newest few stand for all of them. */
static const char *compare_readers(const struct world *w)
{
	const struct model *m = &w->m;
	__u64 reader = m->last_reader > 6 ? m->last_reader - 6 : 0;

	for (; reader <= m->last_reader + 1; reader++) {
		bool seated = false;
		__u64 mask = 0;
		uint32_t i;

		for (i = 0; i < MODEL_SEATS; i++)
			seated = seated ||
				 (reader && m->seat[i].reader == reader);
		DISAGREE(ta_slots_mask(&w->s, &reader, 1, &mask) !=
				 (seated ? 0 : -ESTALE),
			 "a reader id that is not seated");
	}
	return NULL;
}

const char *model_compare(const struct world *w)
{
	const struct model *m = &w->m;
	uint32_t nr_state[3] = { 0 };
	struct tensorarena_stats st;
	const char *why;
	uint32_t i;

	for (i = 0; i < MODEL_SLOTS; i++) {
		why = compare_slot(w, i, nr_state);
		if (why)
			return why;
	}
	for (i = 0; i < MODEL_SEATS; i++) {
		why = compare_seat(w, i);
		if (why)
			return why;
	}
	why = compare_readers(w);
	if (why)
		return why;
	DISAGREE(w->s.open >> MODEL_SEATS, "a seat beyond the readers");
	DISAGREE(w->s.writer_gone != m->writer_gone, "writer_gone");
	DISAGREE(memcmp(nr_state, w->s.nr_state, sizeof(nr_state)) != 0,
		 "a slot is unreachable: counts of states");
	DISAGREE(memcmp(&w->s.count, &m->count, sizeof(m->count)) != 0,
		 "counters");
	DISAGREE(ta_slots_open(&w->s) != open_seats(m), "number of open seats");
	DISAGREE(ta_slots_oldest(&w->s) !=
			 (m->nr_published ? (int)m->published[0].ticket.slot :
					    -1),
		 "oldest publication");
	ta_slots_stats(&w->s, &st);
	DISAGREE(st.free + st.writing + st.published != MODEL_SLOTS ||
			 st.published != m->nr_published,
		 "stats");
	return NULL;
}
