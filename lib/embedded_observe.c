// SPDX-License-Identifier: MIT
/*
 * Looking at an arena from outside: who knows the handle may see its figures
 * without taking a seat, which would make publications wait.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "embedded.h"
#include "embedded_link.h"

_Static_assert(sizeof(struct ta_wire_observe) <= TA_WIRE_PAYLOAD_MAX,
	       "it fits a message");

int ta_peer_observe(struct ta_embedded *e, struct ta_wire_observe *args,
		    const struct ta_wire_parcel *parcel)
{
	if (args->flags)
		return -EINVAL;
	if (!ta_peer_may(e, args->arena, args->cookie, parcel))
		return -EACCES;

	memset(args, 0, sizeof(*args));
	args->arena = e->arena;
	args->arena_flags = e->flags;
	args->slot_bytes = e->slots.slot_bytes;
	args->stride = e->stride;
	args->writer_pid = getpid();
	pthread_mutex_lock(&e->lock);
	ta_embedded_stats(e, &args->st, args->rows);
	pthread_mutex_unlock(&e->lock);
	args->nr_rows = args->st.nr_readers;
	return 0;
}

int ta_embedded_observe(const struct ta_handle *handle,
			struct ta_wire_observe *seen)
{
	struct ta_wire_message msg = { .header.command = TA_WIRE_OBSERVE };
	uint64_t deadline = ta_attach_deadline();
	struct ta_wire_parcel parcel;
	struct ta_link link;
	int err;

	err = ta_link_open(&link, handle->socket, -1, deadline);
	if (err)
		return err;
	msg.observe.arena = handle->arena;
	memcpy(msg.observe.cookie, handle->cookie, sizeof(msg.observe.cookie));
	err = ta_link_ask(&link, &msg, &parcel, -1, true, deadline);
	if (!err) {
		ta_wire_discard(&parcel);
		err = msg.header.result;
	}
	if (!err && msg.observe.nr_rows > TENSORARENA_MAX_READERS)
		err = -EPROTO;
	if (!err)
		*seen = msg.observe;
	ta_link_close(&link, false);
	return err;
}
