// SPDX-License-Identifier: MIT
/* See bus.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

/* One context a process, made when the first socket is. */
static void *context;

static void check(int rc, const char *what)
{
	if (rc < 0)
		die(what, zmq_errno());
}

static void set(void *socket, int option, int value)
{
	check(zmq_setsockopt(socket, option, &value, sizeof(value)),
	      "zmq_setsockopt");
}

static void *make_socket(int type)
{
	void *socket;

	if (!context)
		context = zmq_ctx_new();
	socket = context ? zmq_socket(context, type) : NULL;
	if (!socket)
		die("zmq_socket", zmq_errno());
	set(socket, ZMQ_SNDHWM, 0);
	set(socket, ZMQ_RCVHWM, 0);
	set(socket, ZMQ_LINGER, 0);
	return socket;
}

void *bus_bind(struct end *end)
{
	void *socket = make_socket(ZMQ_XPUB);

	set(socket, ZMQ_XPUB_VERBOSE, 1);
	snprintf(end->address, sizeof(end->address), "ipc://%.200s/%u",
		 end->dir, end->group);
	check(zmq_bind(socket, end->address), "zmq_bind");
	return socket;
}

void bus_meet(struct end *end, void *socket)
{
	const struct note ready = { 0 };
	char subscription[8];
	uint32_t i;

	for (i = 0; i < end->readers; i++)
		check(zmq_recv(socket, subscription, sizeof(subscription), 0),
		      "zmq_recv");
	bus_tell(socket, &ready);
}

void *bus_connect(const struct end *end)
{
	void *socket = make_socket(ZMQ_SUB);

	check(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0), "zmq_setsockopt");
	check(zmq_connect(socket, end->address), "zmq_connect");
	return socket;
}

void bus_close(void *socket)
{
	zmq_close(socket);
	zmq_ctx_term(context);
	context = NULL;
}

void bus_send(void *socket, zmq_msg_t *msg, int flags)
{
	check(zmq_msg_send(msg, socket, flags), "zmq_msg_send");
}

void bus_receive(void *socket, zmq_msg_t *msg)
{
	int rc;

	check(zmq_msg_init(msg), "zmq_msg_init");
	do
		rc = zmq_msg_recv(msg, socket, 0);
	while (rc < 0 && zmq_errno() == EINTR);
	check(rc, "zmq_msg_recv");
}

void bus_tell(void *socket, const struct note *note)
{
	check(zmq_send(socket, note, sizeof(*note), 0), "zmq_send");
}

void bus_say(void *socket, const char *text)
{
	check(zmq_send(socket, text, strlen(text) + 1, 0), "zmq_send");
}

void bus_listen(void *socket, char *text, size_t size)
{
	struct note ready;

	check(zmq_recv(socket, &ready, sizeof(ready), 0), "zmq_recv");
	check(zmq_recv(socket, text, size, 0), "zmq_recv");
	text[size - 1] = '\0';
}

/* What was sent to see whether it works comes before all else. */
void bus_hear(void *socket, struct note *note)
{
	int rc;

	do {
		rc = zmq_recv(socket, note, sizeof(*note), 0);
		if (rc < 0 && zmq_errno() != EINTR)
			die("zmq_recv", zmq_errno());
	} while (rc < 0 || !note->nbytes);
}
