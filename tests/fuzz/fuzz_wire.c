// SPDX-License-Identifier: MIT
/* One message of the embedded engine's socket, with descriptors or without. */
#include <errno.h>

#include "lib/wire.h"
#include "send.h"

static void check(const struct ta_wire_message *msg, size_t size, int err,
		  const struct ta_wire_parcel *parcel)
{
	if (err) {
		MUST(err == -EPROTO || (err == -EPIPE && !size));
		MUST(!parcel->nr_fds);
		return;
	}
	MUST(msg->header.magic == TA_WIRE_MAGIC && msg->header.id);
	MUST(size ==
	     sizeof(msg->header) + ta_wire_payload(msg->header.command));
	MUST(size <= sizeof(*msg));
	MUST(parcel->nr_fds <= TA_WIRE_MAX_FDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int fds[SEND_MAX_FDS];
	struct bytes in = { .at = data, .left = size };
	unsigned int nr_fds = take_u8(&in) % (SEND_MAX_FDS + 1);
	struct ta_wire_message *msg = malloc(sizeof(*msg));
	struct ta_wire_parcel parcel;
	int one = 1, err, pair[2];
	int before;

	before = next_fd();
	MUST(msg);
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	MUST(send_bytes(pair[1], in.at, in.left, fds, nr_fds));
	err = ta_wire_recv(pair[0], msg, &parcel);
	check(msg, in.left, err, &parcel);
	/* As it came, it can be sent on. */
	if (!err)
		MUST(!ta_wire_send(pair[0], msg, parcel.fds, parcel.nr_fds,
				   false));
	ta_wire_discard(&parcel);
	close(pair[0]);
	close(pair[1]);
	free(msg);
	MUST(next_fd() == before);
	return 0;
}
