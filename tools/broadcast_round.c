// SPDX-License-Identifier: MIT
/*
 * One round: the tensor into a slot, tickets out, answers in.
 *
 * A decoder's tensor is produced right in a slot the first time.  From then on,
 * and for other files always, it lies in private memory and is put: copied
 * once into a slot.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "broadcast.h"
#include "broadcast_free.h"
#include "checksum.h"
#include "clock.h"
#include "stop.h"

/* A dead worker's slots come back within a second or so. */
#define SLOT_WAIT_MS 10000
/* Whatever poll misses is seen at the next look. */
#define SLOT_LOOK_MS 100
/* Anything the tensor is unlikely to consist of. */
#define WIPE_BYTE 0xa5

/* What a put or loan that did not work means for the broadcast. */
static int give_up(int err, const struct broadcast *b, struct reason *why)
{
	return reason_set(why, "the arena %s %" PRIu64 " bytes: %s",
			  ta_is_decline(err) ? "declines" : "cannot take",
			  b->in.nbytes, ta_strerror(err));
}

/*
 * After a decline: 0 when it is worth asking again, because a slot may be
 * free by now.  @since: when the round began to ask.
 */
static int wait_for_slot(struct broadcast *b, int err, double since,
			 struct reason *why)
{
	struct pollfd set[2] = { { .fd = b->stop, .events = POLLIN } };

	if (err != -EAGAIN)
		return give_up(err, b, why);
	b->round[b->rounds].declined++;
	if (clock_ms() - since > SLOT_WAIT_MS)
		return reason_set(why, "no slot became free within %d s",
				  SLOT_WAIT_MS / 1000);

	set[1].fd = ta_writer_poll_fd(b->writer, &set[1].events);
	if (poll(set, 2, SLOT_LOOK_MS) < 0 && errno != EINTR)
		return reason_set(why, "cannot wait for a slot: %s",
				  strerror(errno));
	if (stop_requested(b->stop))
		return reason_set(why, "interrupted");
	return 0;
}

static int loan(struct broadcast *b, struct ta_loan **loan, struct reason *why)
{
	double since = clock_ms();
	int err;

	while ((err = ta_loan(b->writer, b->in.nbytes, loan))) {
		if (wait_for_slot(b, err, since, why))
			return -1;
	}
	return 0;
}

static int put(struct broadcast *b, struct ta_ticket *ticket,
	       struct reason *why)
{
	struct broadcast_round *round = &b->round[b->rounds];
	double since = clock_ms();
	int err;

	while ((err = ta_put(b->writer, b->bytes, b->in.nbytes, &b->in.tensor,
			     ticket))) {
		if (wait_for_slot(b, err, since, why))
			return -1;
	}
	round->put_ms = clock_ms() - since;
	return 0;
}

/* The private memory that the tensor is put from, and the yardstick's. */
static int get_memory(struct broadcast *b, struct reason *why)
{
	b->bytes = baseline_buffer(b->in.nbytes);
	b->scratch = baseline_buffer(b->in.nbytes);
	if (!b->bytes || !b->scratch)
		return reason_set(why,
				  "no memory for two copies of %" PRIu64
				  " bytes",
				  b->in.nbytes);
	return 0;
}

/* Decodes into the slot, and keeps a copy for later rounds. */
static int produce(struct broadcast *b, struct ta_loan *loan,
		   struct reason *why)
{
	struct broadcast_round *round = &b->round[b->rounds];
	double start;

	if (get_memory(b, why))
		return -1;
	start = clock_ms();
	if (input_produce(&b->in, loan->data, b->stop, why))
		return -1;
	round->produce_ms = clock_ms() - start;

	b->digest = checksum(loan->data, b->in.nbytes);
	memcpy(b->bytes, loan->data, b->in.nbytes);
	return 0;
}

static int put_in_place(struct broadcast *b, struct ta_ticket *ticket,
			struct reason *why)
{
	struct broadcast_round *round = &b->round[b->rounds];
	double start = clock_ms();
	struct ta_loan *filled;
	double loan_ms;
	int err;

	round->loaned = true;
	if (loan(b, &filled, why))
		return -1;
	loan_ms = clock_ms() - start;

	if (produce(b, filled, why)) {
		ta_abort(filled);
		return -1;
	}

	start = clock_ms();
	err = ta_commit(filled, b->in.nbytes, &b->in.tensor, ticket);
	round->put_ms = loan_ms + clock_ms() - start;
	if (err && err != -ENOTCONN)
		ta_abort(filled);
	return err ? give_up(err, b, why) : 0;
}

/* Reads a file that needs no decoding. */
static int load(struct broadcast *b, struct reason *why)
{
	if (get_memory(b, why) || input_produce(&b->in, b->bytes, b->stop, why))
		return -1;
	b->digest = checksum(b->bytes, b->in.nbytes);
	return 0;
}

/*
 * The same tensor is put round after round, most likely into the same slot.
 * Without this a round whose bytes never arrived would pass unnoticed.
 */
static void wipe_a_slot(struct broadcast *b)
{
	struct ta_loan *old;

	if (ta_loan(b->writer, b->in.nbytes, &old))
		return;
	memset(old->data, WIPE_BYTE, b->in.nbytes);
	ta_abort(old);
}

static int send_bytes(struct broadcast *b, struct reason *why)
{
	double start = clock_ms();

	if (crew_send_bytes(&b->crew, &b->in.tensor, b->bytes, b->in.nbytes,
			    b->stop, why))
		return -1;
	b->round[b->rounds].put_ms = clock_ms() - start;
	return 0;
}

static int put_somehow(struct broadcast *b, struct ta_ticket *ticket,
		       struct reason *why)
{
	if (b->options->socket)
		return !b->rounds && load(b, why) ? -1 : send_bytes(b, why);
	if (b->rounds)
		wipe_a_slot(b);
	else if (b->in.decoded)
		return put_in_place(b, ticket, why);
	else if (load(b, why))
		return -1;
	return put(b, ticket, why);
}

/* Collects the answers and, with GPUs, the moment the slot is free again. */
static int collect(struct broadcast *b, const struct ta_ticket *ticket,
		   struct reason *why)
{
	struct broadcast_round *round = &b->round[b->rounds];
	const struct crew_expects expects = {
		.tensor = &b->in.tensor,
		.nbytes = b->in.nbytes,
		.digest = b->digest,
	};
	bool watched = b->options->gpu && !b->options->socket;
	struct free_watch watch;
	double free_ms;
	int verified;

	if (watched && free_watch_start(&watch, b->writer, why))
		return -1;
	if (!b->options->socket)
		crew_send(&b->crew, ticket);
	verified = crew_collect(&b->crew, &expects, b->stop, why);
	if (watched) {
		free_ms = free_watch_end(&watch, verified > 0);
		if (free_ms > b->crew.end_ms)
			round->slot_free_ms = free_ms - b->crew.end_ms;
	}
	return verified;
}

int broadcast_round_run(struct broadcast *b, struct reason *why)
{
	struct broadcast_round *round = &b->round[b->rounds];
	struct ta_ticket ticket;
	double published;
	int verified;

	if (put_somehow(b, &ticket, why))
		return -1;
	published = clock_ms();

	verified = collect(b, &ticket, why);
	if (verified < 0)
		return -1;
	round->verified = verified;
	round->all_verified_ms = round->put_ms + clock_ms() - published;
	if (baseline_sample(&round->bare, b->scratch, b->bytes, b->in.nbytes,
			    b->options->readers, why))
		return -1;
	b->rounds++;
	return 0;
}
