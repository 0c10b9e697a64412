/* SPDX-License-Identifier: MIT */
/*
 * The message queue between engine and workers, as vLLM's MessageQueue has it
 * for what is large: libzmq, XPUB to SUB over ipc://.  Every contender that
 * needs to tell its readers something does so here, so that all pay the same
 * for it.
 */
#ifndef BENCH_BUS_H
#define BENCH_BUS_H

#include <zmq.h>

#include "contender.h"

/**
 * struct note - the small part of a message: what a step of the engine carries
 * @nbytes: size of the tensor
 * @text: the contender's own, a ticket say
 */
struct note {
	uint64_t nbytes;
	char text[120];
};

/* The socket to send on; fills @end's address.  Its high-water mark is off. */
void *bus_bind(struct end *end);
/* Waits until all readers have subscribed, and shows them that it works. */
void bus_meet(struct end *end, void *socket);
/* The socket to receive from. */
void *bus_connect(const struct end *end);
void bus_close(void *socket);

void bus_tell(void *socket, const struct note *note);
void bus_hear(void *socket, struct note *note);
/* A text to whoever has subscribed, right after the meeting. */
void bus_say(void *socket, const char *text);
/* What it was: @size bytes with NUL. */
void bus_listen(void *socket, char *text, size_t size);
/* One part of a message. */
void bus_send(void *socket, zmq_msg_t *msg, int flags);
void bus_receive(void *socket, zmq_msg_t *msg);

#endif /* BENCH_BUS_H */
