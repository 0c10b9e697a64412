// SPDX-License-Identifier: MIT
/*
 * Streaming a file of many tensors; see broadcast_stream.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "broadcast_stream.h"
#include "checksum.h"
#include "clock.h"
#include "input_kinds.h"
#include "stop.h"

/* A dead worker's slots come back within a second or so. */
#define SLOT_WAIT_MS 10000
/* Whatever poll misses is seen at the next look. */
#define SLOT_LOOK_MS 100

static struct stream_round *this_round(struct stream *s)
{
	return &s->round[s->rounds];
}

static int fail(const struct stream_tensor *t, struct reason *why,
		const char *what)
{
	return reason_set(why, "tensor '%.*s': %s",
			  (int)t->from->tensor.tag_bytes, t->from->tensor.tag,
			  what);
}

/* Answers come in meanwhile, or the workers would get stuck with them. */
static int wait_for_slot(struct stream *s, double since, struct reason *why)
{
	struct broadcast *b = s->b;
	struct pollfd slot;

	this_round(s)->declined++;
	if (clock_ms() - since > SLOT_WAIT_MS)
		return reason_set(why, "no slot became free within %d s",
				  SLOT_WAIT_MS / 1000);
	slot.fd = ta_writer_poll_fd(b->writer, &slot.events);
	return crew_take_in(&b->crew, s->expects, s->seen, &slot, SLOT_LOOK_MS,
			    b->stop, why);
}

/* 0 and *@err: 0 or why the arena declines the tensor. */
static int load(struct stream *s, struct stream_tensor *t,
		struct ta_ticket *ticket, int *err, struct reason *why)
{
	struct stream_round *round = this_round(s);
	double since = clock_ms();
	double start;

	for (;;) {
		start = clock_ms();
		*err = ta_load_file(s->b->writer, s->b->in.fd, t->from->offset,
				    t->from->nbytes, &t->from->tensor, ticket);
		if (*err != -EAGAIN)
			break;
		if (wait_for_slot(s, since, why))
			return -1;
	}
	if (*err == -ENOTCONN)
		return reason_set(why, "no worker is left");
	if (*err)
		return ta_is_decline(*err) ? 0 :
					     fail(t, why, ta_strerror(*err));
	t->ms[t->sent++] = clock_ms() - start;
	round->load_ms += t->ms[t->sent - 1];
	round->bytes += t->from->nbytes;
	return 0;
}

/* The checksum, once, of what is in the file rather than in the slot. */
static int check(struct stream *s, struct stream_tensor *t, struct reason *why)
{
	double start = clock_ms();

	if (t->sent == 1 &&
	    input_file_checksum(&s->b->in, t->from->offset, t->from->nbytes,
				s->b->stop, &t->digest, why))
		return -1;
	this_round(s)->check_ms += clock_ms() - start;
	return 0;
}

static int stream_one(struct stream *s, uint32_t i, struct reason *why)
{
	struct stream_tensor *t = &s->tensor[i];
	uint32_t n = this_round(s)->tensors;
	struct ta_ticket ticket;
	int err;

	if (load(s, t, &ticket, &err, why))
		return -1;
	if (err) {
		t->err = err;
		return 0;
	}
	crew_send(&s->b->crew, &ticket);
	/* Meanwhile the workers look at it. */
	if (check(s, t, why))
		return -1;
	s->which[n] = i;
	s->seen[n] = 0;
	s->expects[n] = (struct crew_expects){
		.tensor = &t->from->tensor,
		.nbytes = t->from->nbytes,
		.digest = t->digest,
	};
	this_round(s)->tensors++;
	return crew_take_in(&s->b->crew, s->expects, s->seen, NULL, 0,
			    s->b->stop, why);
}

static void tally(struct stream *s)
{
	struct stream_round *round = this_round(s);
	uint32_t i;

	for (i = 0; i < round->tensors; i++) {
		s->tensor[s->which[i]].verified += s->seen[i];
		round->verified += s->seen[i] == s->b->options->readers;
	}
}

static int run_round(struct stream *s, struct reason *why)
{
	double start = clock_ms();
	uint32_t i;

	crew_restart(&s->b->crew);
	for (i = 0; i < s->nr; i++) {
		if (stop_requested(s->b->stop))
			return reason_set(why, "interrupted");
		if (stream_one(s, i, why))
			return -1;
	}
	if (crew_collect_all(&s->b->crew, s->expects, s->seen, s->b->stop, why))
		return -1;
	this_round(s)->all_verified_ms = clock_ms() - start;
	tally(s);
	s->rounds++;
	return 0;
}

static int report(struct stream *s, struct reason *why)
{
	struct ta_stats stats;
	int err;

	err = ta_stats(s->b->writer, &stats, NULL, 0);
	if (!err)
		err = ta_load_stats(s->b->writer, &s->load);
	if (err)
		return reason_set(why, "the arena gives no statistics: %s",
				  ta_strerror(err));
	s->b->slot_memory = stats.allocated_bytes;
	if (s->b->options->json)
		return stream_report_json(s, why);
	stream_report_end(s);
	return 0;
}

uint32_t stream_verified(const struct stream *s)
{
	uint64_t all = (uint64_t)s->rounds * s->b->options->readers;
	uint32_t i, n = 0;

	for (i = 0; i < s->nr; i++)
		n += s->tensor[i].verified == all;
	return n;
}

/* After the report: whether it is one of success. */
static int judge(const struct stream *s, struct reason *why)
{
	uint32_t i, declined = 0;
	int err = 0;

	for (i = 0; i < s->nr; i++) {
		declined += s->tensor[i].err != 0;
		if (s->tensor[i].err)
			err = s->tensor[i].err;
	}
	if (declined)
		return reason_set(why,
				  "the arena declined %u of %u tensors: %s",
				  declined, s->nr, ta_strerror(err));
	if (stream_verified(s) < s->nr)
		return reason_set(why, "not every worker saw its bytes in "
				       "every round");
	return 0;
}

static int run_rounds(struct stream *s, struct reason *why)
{
	const struct broadcast_options *options = s->b->options;
	uint32_t i;

	if (!options->json)
		report_start(s->b);
	for (i = 0; i < options->repeat; i++) {
		if (run_round(s, why))
			return -1;
		if (options->json)
			continue;
		if (!i)
			stream_report_tensors(s);
		stream_report_round(s, i);
	}
	return report(s, why) ? -1 : judge(s, why);
}

static int get_memory(struct stream *s, uint32_t rounds)
{
	uint32_t i;

	s->tensor = calloc(s->nr, sizeof(*s->tensor));
	s->round = calloc(rounds, sizeof(*s->round));
	s->expects = calloc(s->nr, sizeof(*s->expects));
	s->seen = calloc(s->nr, sizeof(*s->seen));
	s->which = calloc(s->nr, sizeof(*s->which));
	s->ms = calloc((size_t)s->nr * rounds, sizeof(*s->ms));
	if (!s->tensor || !s->round || !s->expects || !s->seen || !s->which ||
	    !s->ms)
		return -1;
	for (i = 0; i < s->nr; i++) {
		s->tensor[i].from = &s->b->in.list.tensor[i];
		s->tensor[i].ms = s->ms + (size_t)i * rounds;
	}
	return 0;
}

int stream_run(struct broadcast *b, struct reason *why)
{
	struct stream s = { .b = b, .nr = (uint32_t)b->in.list.nr };
	int err;

	if (get_memory(&s, b->options->repeat))
		err = reason_set(why, "no memory for %u rounds of %u tensors",
				 b->options->repeat, s.nr);
	else
		err = run_rounds(&s, why);
	free(s.tensor);
	free(s.round);
	free(s.expects);
	free(s.seen);
	free(s.which);
	free(s.ms);
	return err;
}
