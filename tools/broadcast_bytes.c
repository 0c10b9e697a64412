// SPDX-License-Identifier: MIT
/*
 * A tensor over sockets, to compare with: what an engine without an arena does.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "broadcast_crew_parts.h"
#include "broadcast_wire.h"

/* Whatever the worker takes now; one that is gone is buried. */
static void push(struct crew *crew, struct worker *w, const char *end)
{
	ssize_t n;

	n = send(w->bytes, end - w->left, w->left, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		w->left -= (uint64_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		crew_bury(crew, w);
}

/* A poll set of the workers that have not got all, and @stop; how many. */
static uint32_t fill_set(const struct crew *crew, struct pollfd *set, int stop)
{
	uint32_t i, due = 0;

	for (i = 0; i < crew->nr; i++) {
		const struct worker *w = &crew->worker[i];

		set[i] = (struct pollfd){ w->left ? w->bytes : -1, POLLOUT, 0 };
		due += w->left > 0;
	}
	set[crew->nr] = (struct pollfd){ stop, POLLIN, 0 };
	return due;
}

int crew_send_bytes(struct crew *crew, const struct ta_tensor *tensor,
		    const void *bytes, uint64_t nbytes, int stop,
		    struct reason *why)
{
	const struct wire_tensor message = { nbytes, *tensor };
	const char *end = (const char *)bytes + nbytes;
	struct pollfd set[CREW_MAX + 1];
	uint32_t i;

	for (i = 0; i < crew->nr; i++) {
		struct worker *w = &crew->worker[i];

		if (w->socket < 0)
			continue;
		crew_tell(crew, w, &message, sizeof(message));
		w->left = w->socket < 0 ? 0 : nbytes;
	}
	while (fill_set(crew, set, stop)) {
		if (poll(set, crew->nr + 1, -1) < 0 && errno != EINTR)
			return reason_set(why, "cannot wait for workers: %s",
					  strerror(errno));
		if (set[crew->nr].revents)
			return reason_set(why, "interrupted");
		for (i = 0; i < crew->nr; i++)
			if (set[i].fd >= 0 && set[i].revents)
				push(crew, &crew->worker[i], end);
	}
	return 0;
}
