// SPDX-License-Identifier: MIT
/* Messages of the embedded engine; see wire.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

/*
 * Room for more descriptors than a message may carry: the kernel installs what
 * fits, and what was installed unasked must be seen to be closed.
 */
#define CONTROL_FDS (TA_WIRE_MAX_FDS + 2)

union control {
	char buf[CMSG_SPACE(sizeof(struct ucred)) +
		 CMSG_SPACE(CONTROL_FDS * sizeof(int))];
	struct cmsghdr align;
};

_Static_assert(sizeof(struct ta_wire_header) == 24, "no holes");
_Static_assert(_IOC_SIZEMASK >= TA_WIRE_PAYLOAD_MAX, "sizes fit a command");

static struct cmsghdr *add_control(struct msghdr *hdr, int type,
				   const void *data, size_t size)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)((char *)hdr->msg_control +
						  hdr->msg_controllen);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), data, size);
	hdr->msg_controllen += CMSG_SPACE(size);
	return cmsg;
}

/*
 * Whether the receiver has to be told whose message it is: by itself the kernel
 * tells the real ids.  It takes none that have no name in our user namespace.
 */
static bool is_somebody_else(void)
{
	return geteuid() != getuid() || getegid() != getgid();
}

int ta_wire_send(int sock, const struct ta_wire_message *msg, const int *fds,
		 uint32_t nr_fds, bool say_who)
{
	struct ucred creds = {
		.pid = getpid(),
		.uid = geteuid(),
		.gid = getegid(),
	};
	struct iovec iov = {
		.iov_base = (void *)msg,
		.iov_len = sizeof(msg->header) +
			   ta_wire_payload(msg->header.command),
	};
	union control control = { .buf = { 0 } };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
	};

	if (say_who && is_somebody_else())
		add_control(&hdr, SCM_CREDENTIALS, &creds, sizeof(creds));
	if (nr_fds)
		add_control(&hdr, SCM_RIGHTS, fds, nr_fds * sizeof(*fds));
	if (!hdr.msg_controllen)
		hdr.msg_control = NULL;

	for (;;) {
		if (sendmsg(sock, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE :
								  -errno;
	}
}

static void take_fds(struct ta_wire_parcel *parcel, const struct cmsghdr *cmsg)
{
	size_t nr = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	size_t i;

	for (i = 0; i < nr; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
		if (parcel->nr_fds < TA_WIRE_MAX_FDS) {
			parcel->fds[parcel->nr_fds++] = fd;
		} else {
			close(fd);
			parcel->lost_fds = true;
		}
	}
}

static void unpack_control(struct msghdr *hdr, struct ta_wire_parcel *parcel)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_RIGHTS)
			take_fds(parcel, cmsg);
		else if (cmsg->cmsg_type == SCM_CREDENTIALS)
			memcpy(&parcel->creds, CMSG_DATA(cmsg),
			       sizeof(parcel->creds));
	}
	if (hdr->msg_flags & MSG_CTRUNC)
		parcel->lost_fds = true;
}

static bool well_formed(const struct ta_wire_message *msg, size_t length)
{
	return length >= sizeof(msg->header) &&
	       msg->header.magic == TA_WIRE_MAGIC && msg->header.id &&
	       length == sizeof(msg->header) +
				 ta_wire_payload(msg->header.command);
}

int ta_wire_recv(int sock, struct ta_wire_message *msg,
		 struct ta_wire_parcel *parcel)
{
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	union control control;
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t length;

	*parcel = (struct ta_wire_parcel){ .creds.uid = (uid_t)-1 };
	do {
		length = recvmsg(sock, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE :
								  -errno;
	unpack_control(&hdr, parcel);
	if (!(hdr.msg_flags & MSG_TRUNC) && well_formed(msg, (size_t)length))
		return 0;
	ta_wire_discard(parcel);
	/* An empty message looks like the end, and ends things as well. */
	return length ? -EPROTO : -EPIPE;
}

void ta_wire_discard(struct ta_wire_parcel *parcel)
{
	uint32_t i;

	for (i = 0; i < parcel->nr_fds; i++)
		if (parcel->fds[i] >= 0)
			close(parcel->fds[i]);
	parcel->nr_fds = 0;
}
