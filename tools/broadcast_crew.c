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

#include "broadcast_crew.h"
#include "broadcast_spawn.h"
#include "broadcast_wire.h"
#include "clock.h"
#include "stop.h"

/* An idle worker leaves within a millisecond; one that is stopped never does. */
#define LEAVE_MS 2000

static int worker_number(const struct crew *crew, const struct worker *w)
{
	return w - crew->worker;
}

/* Waits for a worker that is dead, dying or killed here. */
static int reap(struct worker *w)
{
	int status = 0;

	close(w->socket);
	w->socket = -1;
	w->owes = false;
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* A worker that has hung up, or broken the protocol, is finished. */
static void bury(struct crew *crew, struct worker *w)
{
	int status;

	kill(w->pid, SIGKILL);
	status = reap(w);
	if (WIFSIGNALED(status))
		complain("worker %d (pid %d) died: %s", worker_number(crew, w),
			 w->pid, strsignal(WTERMSIG(status)));
	else
		complain("worker %d (pid %d) left early, with exit code %d",
			 worker_number(crew, w), w->pid, WEXITSTATUS(status));
}

static void send_to(struct crew *crew, struct worker *w, const void *message,
		    size_t nbytes)
{
	ssize_t n;

	do
		n = send(w->socket, message, nbytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	w->owes = n == (ssize_t)nbytes;
	if (!w->owes)
		bury(crew, w);
}

/* Whether any answer is due, and a poll set of those that are and @stop. */
static bool owed(const struct crew *crew, struct pollfd *set, int stop)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < crew->nr; i++) {
		const struct worker *w = &crew->worker[i];

		set[i].fd = w->owes ? w->socket : -1;
		set[i].events = POLLIN;
		any |= w->owes;
	}
	set[crew->nr].fd = stop;
	set[crew->nr].events = POLLIN;
	return any;
}

typedef void crew_taker(struct crew *crew, struct worker *w,
			const void *message, void *context);

static void take(struct crew *crew, struct worker *w, void *message,
		 size_t nbytes, crew_taker *taker, void *context)
{
	ssize_t n = recv(w->socket, message, nbytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n != (ssize_t)nbytes) {
		bury(crew, w);
		return;
	}
	w->owes = false;
	taker(crew, w, message, context);
}

/* Hands the answers that are due, each of @nbytes, to @taker. */
static int gather(struct crew *crew, void *message, size_t nbytes,
		  crew_taker *taker, void *context, int stop,
		  struct reason *why)
{
	struct pollfd set[CREW_MAX + 1];
	uint32_t i;

	while (owed(crew, set, stop)) {
		if (poll(set, crew->nr + 1, -1) < 0 && errno != EINTR)
			return reason_set(why, "cannot wait for workers: %s",
					  strerror(errno));
		if (stop_requested(stop))
			return reason_set(why, "interrupted");
		for (i = 0; i < crew->nr; i++) {
			if (set[i].fd >= 0 && set[i].revents)
				take(crew, &crew->worker[i], message, nbytes,
				     taker, context);
		}
	}
	return 0;
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
		a->number = worker_number(crew, w);
		a->err = attached->err;
		reason_set(&a->why, "%.*s", (int)sizeof(attached->why),
			   attached->why);
	}
}

static uint32_t living(const struct crew *crew)
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

	if (gather(crew, &message, sizeof(message), take_attached, &a, stop,
		   why))
		return -1;
	if (a.err)
		return reason_set(why, "worker %d cannot attach: %s", a.number,
				  *a.why.text ? a.why.text :
						ta_strerror(a.err));
	if (living(crew) < crew->nr)
		return reason_set(why, "not every worker could start");
	return 0;
}

static int start_worker(struct crew *crew, uint32_t rounds,
			struct wire_handle *handle, struct reason *why)
{
	struct worker *w = &crew->worker[crew->nr];
	int err;

	w->ms = calloc(rounds, sizeof(*w->ms));
	w->h2d_ms = calloc(rounds, sizeof(*w->h2d_ms));
	if (!w->ms || !w->h2d_ms) {
		free(w->ms);
		free(w->h2d_ms);
		return reason_set(why, "no memory for %u rounds", rounds);
	}
	err = spawn_worker(&w->pid, &w->socket);
	if (err) {
		free(w->ms);
		free(w->h2d_ms);
		return reason_set(why, "cannot start a worker: %s",
				  strerror(-err));
	}
	handle->number = crew->nr;
	crew->nr++;
	send_to(crew, w, handle, sizeof(*handle));
	return 0;
}

int crew_start(struct crew *crew, uint32_t nr, uint32_t rounds,
	       const char *handle, int stop, struct reason *why)
{
	struct wire_handle message = { .gpu = crew->gpu };

	memcpy(message.text, handle, strlen(handle) + 1);
	crew->nr = 0;
	crew->worker = calloc(nr, sizeof(*crew->worker));
	if (!crew->worker)
		return reason_set(why, "no memory for %u workers", nr);
	while (crew->nr < nr) {
		if (start_worker(crew, rounds, &message, why))
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
			send_to(crew, w, ticket, sizeof(*ticket));
	}
}

struct collecting {
	const struct crew_expects *expects;
	int verified;
};

static void take_seen(struct crew *crew, struct worker *w, const void *message,
		      void *context)
{
	const struct wire_seen *seen = message;
	struct collecting *c = context;
	const struct crew_expects *e = c->expects;
	int number = worker_number(crew, w);

	if (seen->err) {
		complain("worker %d could not look at the tensor: %s", number,
			 ta_strerror(seen->err));
	} else if (seen->nbytes != e->nbytes ||
		   memcmp(&seen->tensor, e->tensor, sizeof(*e->tensor))) {
		complain("worker %d got another type, shape or size", number);
	} else if (seen->digest != e->digest) {
		complain("worker %d got other bytes", number);
	} else {
		w->h2d_ms[w->verified] = seen->h2d_ms;
		w->pin_ms = seen->pin_ms;
		w->ms[w->verified++] = seen->ms;
		if (seen->end_ms > crew->end_ms)
			crew->end_ms = seen->end_ms;
		c->verified++;
	}
}

int crew_collect(struct crew *crew, const struct crew_expects *expects,
		 int stop, struct reason *why)
{
	struct collecting c = { .expects = expects };
	struct wire_seen message;

	crew->end_ms = 0;
	if (gather(crew, &message, sizeof(message), take_seen, &c, stop, why))
		return -1;
	if (!living(crew))
		return reason_set(why, "no worker is left");
	return c.verified;
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
		free(w->h2d_ms);
	}
	free(crew->worker);
	crew->worker = NULL;
	crew->nr = 0;
}
