// SPDX-License-Identifier: MIT
/*
 * The out-of-band broadcast: the tensor is a frame of its own, sent from where
 * it is, received into memory that libzmq gets for it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bus.h"

/**
 * struct sending - the writer's state
 * @freed: eventfd, written to when libzmq is done with the source
 */
struct sending {
	void *bus;
	int freed;
};

static void open_writer(struct end *end)
{
	struct sending *s = calloc(1, sizeof(*s));

	if (!s)
		die("socket", ENOMEM);
	s->bus = bus_bind(end);
	s->freed = eventfd(0, EFD_CLOEXEC);
	if (s->freed < 0)
		die("eventfd", errno);
	end->state = s;
}

static void meet(struct end *end)
{
	struct sending *s = end->state;

	bus_meet(end, s->bus);
}

/* Called by libzmq's own thread, when the last reader's copy has been sent. */
static void source_is_free(void *data, void *hint)
{
	const uint64_t one = 1;

	(void)data;
	if (write(*(int *)hint, &one, sizeof(one)) != (ssize_t)sizeof(one))
		die("eventfd", errno);
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	struct sending *s = end->state;
	const struct note note = { .nbytes = nbytes };
	zmq_msg_t msg;

	if (zmq_send(s->bus, &note, sizeof(note), ZMQ_SNDMORE) < 0)
		die("zmq_send", zmq_errno());
	if (zmq_msg_init_data(&msg, (void *)src, nbytes, source_is_free,
			      &s->freed))
		die("zmq_msg_init_data", zmq_errno());
	bus_send(s->bus, &msg, 0);
}

static void settle(struct end *end)
{
	struct sending *s = end->state;
	uint64_t times;

	while (read(s->freed, &times, sizeof(times)) < 0)
		if (errno != EINTR)
			die("eventfd", errno);
}

static void close_writer(struct end *end)
{
	struct sending *s = end->state;

	bus_close(s->bus);
	close(s->freed);
}

static void open_reader(struct end *end)
{
	end->state = bus_connect(end);
}

static void take(struct end *end, struct bytes *bytes)
{
	zmq_msg_t *frame = malloc(sizeof(*frame));
	struct note note;

	if (!frame)
		die("socket", ENOMEM);
	bus_hear(end->state, &note);
	bus_receive(end->state, frame);
	*bytes = (struct bytes){ zmq_msg_data(frame), zmq_msg_size(frame),
				 frame };
}

static void drop(struct end *end, struct bytes *bytes)
{
	(void)end;
	zmq_msg_close(bytes->hold);
	free(bytes->hold);
}

static void close_reader(struct end *end)
{
	bus_close(end->state);
}

const struct contender contender_socket = {
	.name = "socket",
	.about = "out-of-band socket broadcast: libzmq XPUB/SUB over ipc, the "
		 "tensor a frame of its own, sent without a copy",
	/* Into the kernel's buffers and out of them. */
	.copies_take = 2,
	.copies_gpu = 1,
	.open_writer = open_writer,
	.meet = meet,
	.put = put,
	.settle = settle,
	.close_writer = close_writer,
	.open_reader = open_reader,
	.take = take,
	.drop = drop,
	.close_reader = close_reader,
};
