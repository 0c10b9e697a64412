// SPDX-License-Identifier: MIT
/* Waiting for workers; see broadcast_crew_parts.h. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "broadcast_crew_parts.h"
#include "stop.h"

/* The two behind the workers in a poll set. */
#define SET_STOP CREW_MAX
#define SET_ALSO (CREW_MAX + 1)
#define SET_NR (CREW_MAX + 2)

/* A poll set of the workers that owe answers, @stop and @also. */
static void fill_set(const struct crew *crew, struct pollfd *set, int stop,
		     const struct pollfd *also)
{
	uint32_t i;

	for (i = 0; i < SET_NR; i++) {
		bool due = i < crew->nr && crew->worker[i].owes;

		set[i].fd = due ? crew->worker[i].socket : -1;
		set[i].events = POLLIN;
		set[i].revents = 0;
	}
	set[SET_STOP].fd = stop;
	if (also)
		set[SET_ALSO] = *also;
}

static bool owed(const struct crew *crew)
{
	uint32_t i;

	for (i = 0; i < crew->nr; i++) {
		if (crew->worker[i].owes)
			return true;
	}
	return false;
}

static void take(struct crew *crew, struct worker *w, void *message,
		 size_t nbytes, crew_taker *taker, void *context)
{
	ssize_t n = recv(w->socket, message, nbytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n != (ssize_t)nbytes) {
		crew_bury(crew, w);
		return;
	}
	w->owes--;
	taker(crew, w, message, context);
}

int crew_gather_once(struct crew *crew, void *message, size_t nbytes,
		     crew_taker *taker, void *context,
		     const struct pollfd *also, int timeout_ms, int stop,
		     struct reason *why)
{
	struct pollfd set[SET_NR];
	uint32_t i;

	fill_set(crew, set, stop, also);
	if (poll(set, SET_NR, timeout_ms) < 0 && errno != EINTR)
		return reason_set(why, "cannot wait for workers: %s",
				  strerror(errno));
	if (stop_requested(stop))
		return reason_set(why, "interrupted");
	for (i = 0; i < crew->nr; i++) {
		if (set[i].fd >= 0 && set[i].revents)
			take(crew, &crew->worker[i], message, nbytes, taker,
			     context);
	}
	return 0;
}

int crew_gather(struct crew *crew, void *message, size_t nbytes,
		crew_taker *taker, void *context, int stop, struct reason *why)
{
	while (owed(crew)) {
		if (crew_gather_once(crew, message, nbytes, taker, context,
				     NULL, -1, stop, why))
			return -1;
	}
	return 0;
}
