// SPDX-License-Identifier: MIT
/*
 * The floor of the way to the GPU: every reader copies from memory that
 * cudaMallocHost() gave it, at the same time, and no bytes come from anywhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

/**
 * struct waiting - a reader's state
 * @memory: pinned, its own
 */
struct waiting {
	void *bus;
	void *memory;
	struct note note;
};

static void open_writer(struct end *end)
{
	end->state = bus_bind(end);
}

static void meet(struct end *end)
{
	bus_meet(end, end->state);
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	const struct note note = { .nbytes = nbytes };

	(void)src;
	bus_tell(end->state, &note);
}

static void close_writer(struct end *end)
{
	bus_close(end->state);
}

static void open_reader(struct end *end)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w)
		die("pinned", ENOMEM);
	w->memory = gpu_pinned(end->gpu, end->max_bytes);
	memset(w->memory, 1, end->max_bytes);
	w->bus = bus_connect(end);
	end->state = w;
}

static void take(struct end *end, struct bytes *bytes)
{
	struct waiting *w = end->state;

	bus_hear(w->bus, &w->note);
	*bytes = (struct bytes){ w->memory, w->note.nbytes, NULL };
}

static void drop(struct end *end, struct bytes *bytes)
{
	(void)end;
	(void)bytes;
}

static void close_reader(struct end *end)
{
	struct waiting *w = end->state;

	bus_close(w->bus);
}

const struct contender contender_pinned = {
	.name = "pinned",
	.about = "floor: each reader's copy to its GPU from memory of "
		 "cudaMallocHost(), at the same time",
	.floor = true,
	.gpu_only = true,
	.open_writer = open_writer,
	.meet = meet,
	.put = put,
	.close_writer = close_writer,
	.open_reader = open_reader,
	.take = take,
	.drop = drop,
	.close_reader = close_reader,
};
