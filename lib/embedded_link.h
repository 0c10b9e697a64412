/* SPDX-License-Identifier: MIT */
/* A reader's connection to the server of the embedded engine. */
#ifndef TA_EMBEDDED_LINK_H
#define TA_EMBEDDED_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/**
 * struct ta_link - a connection
 * @sock: the socket
 * @writer: pidfd of the writer's process, or -1 when that is not known.  Its
 *	forked children may hold the other end of @sock open after its death.
 * @id: number of the last request
 * @gone: the writer is; nothing is sent any more
 */
struct ta_link {
	int sock;
	int writer;
	uint64_t id;
	bool gone;
};

/*
 * Connects to the socket a handle names, or over @fd if that is not -1.
 * -ECONNREFUSED, -EPIPE: the writer is gone.  -ETIMEDOUT: @deadline has passed.
 */
int ta_link_open(struct ta_link *link, const char *socket, int fd,
		 uint64_t deadline);
/*
 * Sends @msg, which holds header.command and its structure, and receives the
 * answer into it: 0, whatever the answer's result, or -errno, after which the
 * connection is gone.
 *
 * @fd: descriptor to send along, or -1
 * @say_who: see ta_wire_send()
 * @deadline: 0: as long as the writer lives, however long it is stopped
 */
int ta_link_ask(struct ta_link *link, struct ta_wire_message *msg,
		struct ta_wire_parcel *parcel, int fd, bool say_who,
		uint64_t deadline);
/*
 * Sends a command that has no structure and no answer.  It may be lost, when the
 * server has not read what was sent before.
 */
void ta_link_post(struct ta_link *link, uint32_t command);
/* No more is sent; the server, if it lives, sees a hang-up. */
void ta_link_hang_up(struct ta_link *link);
/* Closes the descriptors, except for @sock if @keep_sock. */
void ta_link_close(struct ta_link *link, bool keep_sock);

#endif /* TA_EMBEDDED_LINK_H */
