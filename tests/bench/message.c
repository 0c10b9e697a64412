// SPDX-License-Identifier: MIT
/*
 * A step of the engine that carries no tensor: a message of a few hundred bytes
 * over the bus, in processes that have an arena and never use it, and in
 * processes that have none.
 */
#include <errno.h>
#include <stdlib.h>

#include <tensorarena.h>

#include "bus.h"

/**
 * struct messaging - an end's state
 * @writer, @reader: the arena's end, or NULL
 */
struct messaging {
	void *bus;
	struct ta_writer *writer;
	struct ta_reader *reader;
};

static struct messaging *open_end(struct end *end)
{
	struct messaging *m = calloc(1, sizeof(*m));

	if (!m)
		die("message", ENOMEM);
	end->state = m;
	return m;
}

static void open_writer(struct end *end)
{
	open_end(end)->bus = bus_bind(end);
}

/* As the engine would have it: the default options, whatever they may cost. */
static void open_writer_with_arena(struct end *end)
{
	struct messaging *m = open_end(end);
	struct ta_options options;
	char why[256];

	ta_options_init(&options);
	options.seats = end->readers;
	options.engine = end->engine;
	/* It shall not be used. */
	options.flags = TA_NO_MEMORY_CHECK;
	if (ta_create(&options, &m->writer, why, sizeof(why)))
		die(why, 0);
	m->bus = bus_bind(end);
}

static void meet(struct end *end)
{
	struct messaging *m = end->state;

	bus_meet(end, m->bus);
	if (m->writer)
		bus_say(m->bus, ta_handle(m->writer));
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	struct messaging *m = end->state;
	const struct note note = { .nbytes = nbytes };

	(void)src;
	bus_tell(m->bus, &note);
}

static void open_reader(struct end *end)
{
	open_end(end)->bus = bus_connect(end);
}

static void take(struct end *end, struct bytes *bytes)
{
	struct messaging *m = end->state;
	struct note note;

	bus_hear(m->bus, &note);
	*bytes = (struct bytes){ .nbytes = note.nbytes };
}

static void take_with_arena(struct end *end, struct bytes *bytes)
{
	struct messaging *m = end->state;
	char handle[TA_HANDLE_MAX];
	int err;

	if (!m->reader) {
		bus_listen(m->bus, handle, sizeof(handle));
		err = ta_attach(handle, &m->reader);
		if (err)
			die("ta_attach", err);
	}
	take(end, bytes);
}

static void drop(struct end *end, struct bytes *bytes)
{
	(void)end;
	(void)bytes;
}

static void close_end(struct end *end)
{
	struct messaging *m = end->state;

	ta_reader_close(m->reader);
	ta_writer_close(m->writer);
	bus_close(m->bus);
}

const struct contender contender_message = {
	.name = "message",
	.about = "a message without a tensor, over the bus",
	.floor = true,
	.message = true,
	.open_writer = open_writer,
	.meet = meet,
	.put = put,
	.close_writer = close_end,
	.open_reader = open_reader,
	.take = take,
	.drop = drop,
	.close_reader = close_end,
};

const struct contender contender_message_arena = {
	.name = "message beside arena",
	.about = "the same between processes that have an arena, never used",
	.floor = true,
	.message = true,
	.open_writer = open_writer_with_arena,
	.meet = meet,
	.put = put,
	.close_writer = close_end,
	.open_reader = open_reader,
	.take = take_with_arena,
	.drop = drop,
	.close_reader = close_end,
};
