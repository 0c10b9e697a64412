// SPDX-License-Identifier: MIT
/* A reader's connection; see embedded_link.h. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "embedded.h"
#include "embedded_link.h"
#include "pidfd.h"

/* The process that made the other end, if we can see it and it lives. */
static int open_writer(struct ta_link *link)
{
	struct ucred creds;
	socklen_t size = sizeof(creds);

	if (getsockopt(link->sock, SOL_SOCKET, SO_PEERCRED, &creds, &size))
		return -errno;
	link->writer = creds.pid ? ta_pidfd_open(creds.pid) : -1;
	if (link->writer == -ESRCH)
		return -EPIPE;
	/* Any other reason: then time will tell. */
	return 0;
}

static int check_socket(int fd)
{
	socklen_t size = sizeof(int);
	int domain, type;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size))
		return -errno;
	return domain == AF_UNIX && type == SOCK_SEQPACKET ? 0 : -EPROTOTYPE;
}

int ta_link_open(struct ta_link *link, const char *socket, int fd,
		 uint64_t deadline)
{
	int err;

	*link = (struct ta_link){ .sock = fd, .writer = -1 };
	if (fd >= 0) {
		err = check_socket(fd);
		return err ? err : open_writer(link);
	}
	link->sock = ta_embedded_dial(socket, deadline);
	if (link->sock < 0)
		return link->sock;
	err = open_writer(link);
	if (err)
		close(link->sock);
	return err;
}

/* Waits until the socket is ready: 0, -EPIPE or -ETIMEDOUT. */
static int wait_for(const struct ta_link *link, short events, uint64_t deadline)
{
	struct pollfd fds[2] = {
		{ .fd = link->sock, .events = events },
		{ .fd = link->writer, .events = POLLIN },
	};
	uint64_t now;
	int left = -1;

	for (;;) {
		if (deadline) {
			now = ta_now_ns();
			if (now >= deadline)
				return -ETIMEDOUT;
			left = (int)((deadline - now) / 1000000) + 1;
		}
		if (poll(fds, 2, left) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		/* What the writer sent before it died still counts. */
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			return -EPIPE;
	}
}

static int send_request(const struct ta_link *link,
			const struct ta_wire_message *msg, int fd, bool say_who,
			uint64_t deadline)
{
	int err;

	for (;;) {
		err = ta_wire_send(link->sock, msg, &fd, fd >= 0, say_who);
		if (err != -EAGAIN)
			return err;
		err = wait_for(link, POLLOUT, deadline);
		if (err)
			return err;
	}
}

static int receive_answer(const struct ta_link *link,
			  struct ta_wire_message *msg,
			  struct ta_wire_parcel *parcel, uint64_t deadline)
{
	uint64_t id = msg->header.id;
	uint32_t command = msg->header.command;
	int err;

	for (;;) {
		err = wait_for(link, POLLIN, deadline);
		if (!err)
			err = ta_wire_recv(link->sock, msg, parcel);
		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		if (msg->header.id == id)
			break;
		/* The answer to a forked child that we do not know of. */
		ta_wire_discard(parcel);
	}
	if (msg->header.command == command && msg->header.result <= 0 &&
	    msg->header.result >= -4095)
		return 0;
	ta_wire_discard(parcel);
	return -EPROTO;
}

int ta_link_ask(struct ta_link *link, struct ta_wire_message *msg,
		struct ta_wire_parcel *parcel, int fd, bool say_who,
		uint64_t deadline)
{
	int err;

	msg->header.magic = TA_WIRE_MAGIC;
	msg->header.result = 0;
	msg->header.flags = 0;
	msg->header.id = ++link->id;

	err = send_request(link, msg, fd, say_who, deadline);
	if (!err)
		err = receive_answer(link, msg, parcel, deadline);
	if (err)
		ta_link_hang_up(link);
	return err;
}

void ta_link_post(struct ta_link *link, uint32_t command)
{
	struct ta_wire_message msg;

	msg.header = (struct ta_wire_header){
		.magic = TA_WIRE_MAGIC,
		.command = command,
		.id = ++link->id,
	};
	/* If nobody is there, the next question finds that out. */
	ta_wire_send(link->sock, &msg, NULL, 0, false);
}

void ta_link_hang_up(struct ta_link *link)
{
	link->gone = true;
	/* Fails when the other end was first. */
	shutdown(link->sock, SHUT_RDWR);
}

void ta_link_close(struct ta_link *link, bool keep_sock)
{
	if (!keep_sock)
		close(link->sock);
	if (link->writer >= 0)
		close(link->writer);
}
