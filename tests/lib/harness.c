// SPDX-License-Identifier: MIT
/* The test's side; see harness.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"
#include "harness.h"

enum ta_engine_kind test_engine(void)
{
	const char *name = getenv("TENSORARENA_TEST_ENGINE");

	if (!name || !strcmp(name, "embedded"))
		return TA_ENGINE_EMBEDDED;
	if (!strcmp(name, "device"))
		return TA_ENGINE_DEVICE;
	fail_msg("TENSORARENA_TEST_ENGINE=%s", name);
	return TA_ENGINE_AUTO;
}

struct ta_options test_options(uint32_t slots, uint64_t slot_bytes,
			       uint32_t seats)
{
	struct ta_options o;

	ta_options_init(&o);
	o.engine = test_engine();
	o.slots = slots;
	o.slot_bytes = slot_bytes;
	o.seats = seats;
	return o;
}

/* Read by ThreadSanitizer, which would else end forked children. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* ---- actors ---- */

/*
 * Both ends of a pipe that nobody writes to.  What should live exactly as long
 * as this program reads from it; only this program has the other end.
 */
static int lifeline(void)
{
	static int end[2] = { -1, -1 };

	if (end[0] < 0) {
		assert_int_equal(pipe2(end, O_CLOEXEC), 0);
		assert_int_not_equal(fcntl(end[0], F_SETFD, 0), -1);
	}
	return end[0];
}

struct actor actor_start(void)
{
	char path[4096], fd[16], life[16];
	struct actor actor;
	int pair[2];
	ssize_t n;

	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	snprintf(life, sizeof(life), "%d", lifeline());
	fflush(NULL);
	actor.pid = fork();
	assert_true(actor.pid >= 0);
	if (!actor.pid) {
		fcntl(pair[1], F_SETFD, 0);
		snprintf(fd, sizeof(fd), "%d", pair[1]);
		execl(path, path, "actor", fd, life, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	actor.socket = pair[0];
	return actor;
}

static void reap(struct actor *actor, int expected)
{
	int status;

	while (waitpid(actor->pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	if (status != expected)
		fail_msg("actor ended with status 0x%x", status);
	close(actor->socket);
	actor->pid = 0;
}

void actor_stop(struct actor *actor)
{
	shutdown(actor->socket, SHUT_WR);
	reap(actor, 0);
}

void actor_kill(struct actor *actor)
{
	clock_gettime(CLOCK_MONOTONIC, &actor->end);
	assert_int_equal(kill(actor->pid, SIGKILL), 0);
	reap(actor, SIGKILL);
}

static void ask(struct actor *actor, const struct actor_request *q)
{
	assert_int_equal(send(actor->socket, q, sizeof(*q), MSG_NOSIGNAL),
			 sizeof(*q));
}

static int await(struct actor *actor, struct actor_answer *a)
{
	struct pollfd pfd = { .fd = actor->socket, .events = POLLIN };

	if (poll(&pfd, 1, 2 * HANG_MS) != 1)
		fail_msg("an actor does not answer");
	if (recv(actor->socket, a, sizeof(*a), 0) != sizeof(*a))
		fail_msg("an actor has ended");
	return a->err;
}

static int tell(struct actor *actor, const struct actor_request *q)
{
	struct actor_answer a;

	ask(actor, q);
	return await(actor, &a);
}

int actor_attach(struct actor *actor, const char *handle)
{
	struct actor_request q = { .op = ACTOR_ATTACH };

	strcpy(q.handle, handle);
	return tell(actor, &q);
}

uint64_t actor_reader_id(struct actor *actor)
{
	const struct actor_request q = { .op = ACTOR_READER_ID };
	struct actor_answer a;

	ask(actor, &q);
	assert_ok(await(actor, &a));
	return (uint64_t)a.number;
}

int actor_next(struct actor *actor, int view, int timeout_ms)
{
	const struct actor_request q = {
		.op = ACTOR_NEXT,
		.view = view,
		.timeout_ms = timeout_ms,
	};

	return tell(actor, &q);
}

int actor_view(struct actor *actor, int view, const struct ta_ticket *ticket)
{
	const struct actor_request q = {
		.op = ACTOR_VIEW,
		.view = view,
		.ticket = *ticket,
	};

	return tell(actor, &q);
}

void actor_describe(struct actor *actor, int view, struct ta_ticket *ticket,
		    struct ta_tensor *tensor)
{
	const struct actor_request q = { .op = ACTOR_DESCRIBE, .view = view };
	struct actor_answer a;

	ask(actor, &q);
	assert_ok(await(actor, &a));
	*ticket = a.ticket;
	*tensor = a.tensor;
}

int actor_check(struct actor *actor, int view, uint64_t seed)
{
	const struct actor_request q = {
		.op = ACTOR_CHECK,
		.view = view,
		.seed = seed,
	};

	return tell(actor, &q);
}

int actor_release(struct actor *actor, int view)
{
	const struct actor_request q = { .op = ACTOR_RELEASE, .view = view };

	return tell(actor, &q);
}

int actor_close_reader(struct actor *actor)
{
	const struct actor_request q = { .op = ACTOR_CLOSE_READER };

	return tell(actor, &q);
}

void actor_drain_start(struct actor *actor, uint32_t count)
{
	const struct actor_request q = { .op = ACTOR_DRAIN, .count = count };

	ask(actor, &q);
}

int actor_drain_end(struct actor *actor)
{
	struct actor_answer a;

	return await(actor, &a);
}

int actor_create(struct actor *actor, const struct ta_options *options,
		 char handle[TA_HANDLE_MAX])
{
	const struct actor_request q = {
		.op = ACTOR_CREATE,
		.options = *options,
	};
	struct actor_answer a;
	int err;

	ask(actor, &q);
	err = await(actor, &a);
	strcpy(handle, a.handle);
	return err;
}

int actor_put(struct actor *actor, size_t nbytes, uint64_t seed,
	      struct ta_ticket *ticket)
{
	const struct actor_request q = {
		.op = ACTOR_PUT,
		.nbytes = nbytes,
		.seed = seed,
	};
	struct actor_answer a;
	int err;

	ask(actor, &q);
	err = await(actor, &a);
	if (ticket)
		*ticket = a.ticket;
	return err;
}

int actor_loan(struct actor *actor, size_t nbytes)
{
	const struct actor_request q = { .op = ACTOR_LOAN, .nbytes = nbytes };

	return tell(actor, &q);
}

int actor_close_writer(struct actor *actor)
{
	const struct actor_request q = { .op = ACTOR_CLOSE_WRITER };

	return tell(actor, &q);
}

pid_t actor_fork(struct actor *actor)
{
	const struct actor_request q = { .op = ACTOR_FORK };
	struct actor_answer a;

	ask(actor, &q);
	assert_ok(await(actor, &a));
	return (pid_t)a.number;
}

void kill_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
}

void actor_exec(struct actor *actor)
{
	const struct actor_request q = { .op = ACTOR_EXEC };

	clock_gettime(CLOCK_MONOTONIC, &actor->end);
	assert_ok(tell(actor, &q));
}

/* ---- arenas ---- */

void arena_open(struct arena *arena, const struct ta_options *options,
		unsigned int actors)
{
	char why[256];
	unsigned int i;
	int err;

	assert_in_range(actors, 0, MAX_ACTORS);
	arena->actors = actors;
	err = ta_create(options, &arena->writer, why, sizeof(why));
	if (err)
		fail_msg("ta_create: %s (%s)", why, ta_strerror(err));
	for (i = 0; i < actors; i++) {
		arena->actor[i] = actor_start();
		assert_ok(actor_attach(&arena->actor[i],
				       ta_handle(arena->writer)));
	}
}

void arena_close(struct arena *arena)
{
	unsigned int i;

	for (i = 0; i < arena->actors; i++)
		if (arena->actor[i].pid)
			actor_stop(&arena->actor[i]);
	ta_writer_close(arena->writer);
}

struct ta_stats stats_of(struct ta_writer *writer)
{
	struct ta_stats st;

	assert_ok(ta_stats(writer, &st, NULL, 0));
	return st;
}

double ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}
