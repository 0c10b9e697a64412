// SPDX-License-Identifier: MIT
/*
 * tensorarena: ta_put(), the ticket over the bus, ta_view().  To a GPU from the
 * slot, which is pinned once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tensorarena.h>

#include "bus.h"

_Static_assert(sizeof(struct ta_ticket) <= sizeof(((struct note *)0)->text),
	       "a ticket fits into a note");

/**
 * struct writing, struct reading - an end's state
 * @bus: where tickets go
 * @note: the one that goes, or came, last
 */
struct writing {
	struct ta_writer *writer;
	void *bus;
	struct note note;
};

struct reading {
	struct ta_reader *reader;
	void *bus;
	struct note note;
};

/* The address is the bus's; the handle comes before the first note. */
static void open_writer(struct end *end)
{
	struct writing *w = calloc(1, sizeof(*w));
	struct ta_options options;
	char why[256];
	int err;

	ta_options_init(&options);
	options.slot_bytes = end->max_bytes;
	options.slots = 2;
	options.seats = end->readers;
	options.engine = end->engine;
	err = w ? ta_create(&options, &w->writer, why, sizeof(why)) : -ENOMEM;
	if (err)
		die(w ? why : "arena", w ? 0 : err);
	w->bus = bus_bind(end);
	snprintf(end->about, sizeof(end->about), "%s engine",
		 ta_writer_engine(w->writer) == TA_ENGINE_DEVICE ? "device" :
								   "embedded");
	end->state = w;
}

static void meet(struct end *end)
{
	struct writing *w = end->state;

	bus_meet(end, w->bus);
	bus_say(w->bus, ta_handle(w->writer));
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	struct writing *w = end->state;
	struct ta_ticket ticket;
	int err;

	err = ta_put(w->writer, src, nbytes, NULL, &ticket);
	if (err)
		die("ta_put", err);
	w->note.nbytes = nbytes;
	memcpy(w->note.text, &ticket, sizeof(ticket));
}

static void announce(struct end *end)
{
	struct writing *w = end->state;

	bus_tell(w->bus, &w->note);
}

static void close_writer(struct end *end)
{
	struct writing *w = end->state;

	ta_writer_close(w->writer);
	bus_close(w->bus);
}

static void open_reader(struct end *end)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		die("arena", ENOMEM);
	r->bus = bus_connect(end);
	end->state = r;
}

static void attach(struct reading *r)
{
	char handle[TA_HANDLE_MAX];
	int err;

	bus_listen(r->bus, handle, sizeof(handle));
	err = ta_attach(handle, &r->reader);
	if (err)
		die("ta_attach", err);
}

static void take(struct end *end, struct bytes *bytes)
{
	struct reading *r = end->state;
	struct ta_ticket ticket;
	struct ta_view *view;
	int err;

	if (!r->reader)
		attach(r);
	bus_hear(r->bus, &r->note);
	memcpy(&ticket, r->note.text, sizeof(ticket));
	err = ta_view(r->reader, &ticket, &view);
	if (err)
		die("ta_view", err);
	*bytes = (struct bytes){ view->data, view->nbytes, view };
}

static void to_gpu(struct end *end, const struct bytes *bytes)
{
	int err;

	err = ta_copy_to_device(bytes->hold, end->gpu->memory, 0, bytes->nbytes,
				end->gpu->stream);
	if (err)
		die("ta_copy_to_device", err);
	gpu_wait(end->gpu);
}

static void drop(struct end *end, struct bytes *bytes)
{
	int err = ta_release(bytes->hold);

	(void)end;
	if (err)
		die("ta_release", err);
}

static void close_reader(struct end *end)
{
	struct reading *r = end->state;

	ta_reader_close(r->reader);
	bus_close(r->bus);
}

const struct contender contender_arena = {
	.name = "arena",
	.about = "tensorarena: ta_put(), the ticket over the bus, ta_view()",
	.copies_put = 1,
	.open_writer = open_writer,
	.meet = meet,
	.put = put,
	.announce = announce,
	.close_writer = close_writer,
	.open_reader = open_reader,
	.take = take,
	.to_gpu = to_gpu,
	.drop = drop,
	.close_reader = close_reader,
};
