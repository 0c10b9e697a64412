// SPDX-License-Identifier: MIT
/*
 * The worker processes; see broadcast_crew.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broadcast_crew_parts.h"
#include "broadcast_spawn.h"
#include "broadcast_wire.h"
#include "clock.h"

/* An idle worker leaves within a millisecond; one that is stopped never does. */
#define LEAVE_MS 2000

/* Waits for a worker that is dead, dying or killed here. */
static int reap(struct worker *w)
{
	int status = 0;

	close(w->socket);
	w->socket = -1;
	if (w->bytes >= 0)
		close(w->bytes);
	w->bytes = -1;
	w->left = 0;
	w->owes = 0;
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void crew_bury(struct crew *crew, struct worker *w)
{
	int status;

	kill(w->pid, SIGKILL);
	status = reap(w);
	if (WIFSIGNALED(status))
		complain("worker %d (pid %d) died: %s", crew_number(crew, w),
			 w->pid, strsignal(WTERMSIG(status)));
	else
		complain("worker %d (pid %d) left early, with exit code %d",
			 crew_number(crew, w), w->pid, WEXITSTATUS(status));
}

void crew_tell(struct crew *crew, struct worker *w, const void *message,
	       size_t nbytes)
{
	ssize_t n;

	do
		n = send(w->socket, message, nbytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)nbytes)
		w->owes++;
	else
		crew_bury(crew, w);
}

/* The first worker that could not attach, if any, and what it said. */
struct attaching {
	int number;
	int err;
	struct reason why;
};

static void take_attached(struct crew *crew, struct worker *w,
			  const void *message, void *context)
{
	const struct wire_attached *attached = message;
	struct attaching *a = context;

	w->seat = attached->seat;
	w->device = crew->gpu ? attached->device : -1;
	if (attached->err && !a->err) {
		a->number = crew_number(crew, w);
		a->err = attached->err;
		reason_set(&a->why, "%.*s", (int)sizeof(attached->why),
			   attached->why);
	}
}

uint32_t crew_living(const struct crew *crew)
{
	uint32_t i, n = 0;

	for (i = 0; i < crew->nr; i++)
		n += crew->worker[i].socket >= 0;
	return n;
}

static int wait_attached(struct crew *crew, int stop, struct reason *why)
{
	struct wire_attached message;
	struct attaching a = { 0 };

	if (crew_gather(crew, &message, sizeof(message), take_attached, &a,
			stop, why))
		return -1;
	if (a.err)
		return reason_set(why, "worker %d cannot attach: %s", a.number,
				  *a.why.text ? a.why.text :
						ta_strerror(a.err));
	if (crew_living(crew) < crew->nr)
		return reason_set(why, "not every worker could start");
	return 0;
}

static int start_worker(struct crew *crew, uint32_t tensors,
			struct wire_handle *handle, struct reason *why)
{
	struct worker *w = &crew->worker[crew->nr];
	int err;

	/* One piece for all the figures. */
	w->ms = calloc(tensors, 4 * sizeof(*w->ms));
	if (!w->ms)
		return reason_set(why, "no memory for %u answers", tensors);
	w->h2d_ms = w->ms + tensors;
	w->view_ms = w->h2d_ms + tensors;
	w->release_ms = w->view_ms + tensors;
	w->bytes = -1;
	err = spawn_worker(&w->pid, &w->socket,
			   crew->over_socket ? &w->bytes : NULL);
	if (err) {
		free(w->ms);
		return reason_set(why, "cannot start a worker: %s",
				  strerror(-err));
	}
	handle->number = crew->nr;
	crew->nr++;
	crew_tell(crew, w, handle, sizeof(*handle));
	return 0;
}

int crew_start(struct crew *crew, uint32_t nr, uint32_t tensors,
	       const char *handle, int stop, struct reason *why)
{
	struct wire_handle message = {
		.gpu = crew->gpu,
		.socket = crew->over_socket,
		.most_bytes = crew->most_bytes,
	};

	memcpy(message.text, handle, strlen(handle) + 1);
	crew->nr = 0;
	crew->worker = calloc(nr, sizeof(*crew->worker));
	if (!crew->worker)
		return reason_set(why, "no memory for %u workers", nr);
	while (crew->nr < nr) {
		if (start_worker(crew, tensors, &message, why))
			goto err_end;
	}
	if (wait_attached(crew, stop, why))
		goto err_end;
	return 0;

err_end:
	crew_end(crew, true);
	return -1;
}

void crew_send(struct crew *crew, const struct ta_ticket *ticket)
{
	uint32_t i;

	for (i = 0; i < crew->nr; i++) {
		struct worker *w = &crew->worker[i];

		if (w->socket >= 0)
			crew_tell(crew, w, ticket, sizeof(*ticket));
	}
}

/* Hanging up says "leave". */
static void dismiss(struct crew *crew)
{
	uint32_t i;

	for (i = 0; i < crew->nr; i++) {
		if (crew->worker[i].socket >= 0)
			shutdown(crew->worker[i].socket, SHUT_WR);
	}
}

/* Whether the worker has left, as its end of the socket shows, by @deadline. */
static bool has_left(const struct worker *w, double deadline)
{
	/* POLLHUP comes unasked. */
	struct pollfd left = { .fd = w->socket };
	double ms;
	int n;

	do {
		ms = deadline - clock_ms();
		n = poll(&left, 1, ms > 0 ? (int)ms : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

void crew_end(struct crew *crew, bool at_once)
{
	double deadline = clock_ms() + LEAVE_MS;
	uint32_t i;

	if (!at_once)
		dismiss(crew);
	for (i = 0; i < crew->nr; i++) {
		struct worker *w = &crew->worker[i];

		if (w->socket >= 0) {
			if (at_once || !has_left(w, deadline))
				kill(w->pid, SIGKILL);
			reap(w);
		}
		free(w->ms);
	}
	free(crew->worker);
	crew->worker = NULL;
	crew->nr = 0;
}
