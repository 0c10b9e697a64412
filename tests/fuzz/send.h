/* SPDX-License-Identifier: MIT */
/* Messages that ta_wire_send() would not send. */
#ifndef TESTS_FUZZ_SEND_H
#define TESTS_FUZZ_SEND_H

#include <sys/socket.h>

#include "fuzz.h"

#define SEND_MAX_FDS 6

/* Any bytes with any descriptors; false when the socket has no room for them. */
static inline bool send_bytes(int sock, const void *data, size_t size,
			      const int *fds, unsigned int nr_fds)
{
	union {
		char buf[CMSG_SPACE(SEND_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { .buf = { 0 } };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nr_fds) {
		hdr.msg_control = control.buf;
		hdr.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, nr_fds * sizeof(int));
	}
	return sendmsg(sock, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

#endif /* TESTS_FUZZ_SEND_H */
