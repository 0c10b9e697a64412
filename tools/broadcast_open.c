// SPDX-License-Identifier: MIT
/*
 * What a broadcast takes before its rounds, and gives back after them.
 */
#include <stdlib.h>

#include "broadcast.h"

static int create(struct broadcast *b, struct reason *why)
{
	struct ta_options options;
	char text[256] = "";
	int err;

	ta_options_init(&options);
	options.slot_bytes = b->options->slot_bytes;
	if (!options.slot_bytes)
		options.slot_bytes = b->in.nbytes ? b->in.nbytes : 1;
	options.slots = b->options->slots;
	options.seats = b->options->readers;
	options.engine = b->options->engine;
	err = ta_create(&options, &b->writer, text, sizeof(text));
	if (err)
		return reason_set(why, "cannot create an arena: %s",
				  *text ? text : ta_strerror(err));
	return 0;
}

/* How many tensors each worker will be sent, at most. */
static int count_tensors(const struct broadcast *b, uint32_t *tensors,
			 struct reason *why)
{
	uint64_t each = b->in.list.nr ? b->in.list.nr : 1;

	if (__builtin_mul_overflow(each, b->options->repeat, tensors))
		return reason_set(why, "%u rounds are too many",
				  b->options->repeat);
	return 0;
}

int broadcast_open(struct broadcast *b, struct reason *why)
{
	const struct broadcast_options *o = b->options;
	uint32_t tensors;

	if (count_tensors(b, &tensors, why))
		return -1;
	b->round = calloc(o->repeat, sizeof(*b->round));
	if (!b->round)
		return reason_set(why, "no memory for %u rounds", o->repeat);
	if (!o->socket && create(b, why))
		goto err_round;
	b->crew.gpu = o->gpu;
	b->crew.over_socket = o->socket;
	b->crew.most_bytes = b->in.nbytes;
	if (crew_start(&b->crew, o->readers, tensors,
		       o->socket ? "" : ta_handle(b->writer), b->stop, why))
		goto err_writer;
	return 0;

err_writer:
	ta_writer_close(b->writer);
err_round:
	free(b->round);
	return -1;
}

void broadcast_close(struct broadcast *b, bool at_once)
{
	crew_end(&b->crew, at_once);
	baseline_buffer_free(b->bytes, b->in.nbytes);
	baseline_buffer_free(b->scratch, b->in.nbytes);
	ta_writer_close(b->writer);
	free(b->round);
}
