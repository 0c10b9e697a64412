// SPDX-License-Identifier: MIT
/* The actor's side: a loop that does what the test asks and answers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actor.h"
#include "harness.h"

struct stage {
	struct ta_writer *writer;
	struct ta_reader *reader;
	struct ta_view *view[ACTOR_VIEWS];
	int lifeline; /* reads end-of-file when the test program is gone */
};

/* Lives until the test program is gone. */
static void linger(int lifeline)
{
	char byte;

	while (read(lifeline, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int drain_one(struct stage *s)
{
	struct ta_view *view;
	uint64_t seed;
	int err;

	err = ta_next(s->reader, HANG_MS, &view);
	if (err)
		return err;
	memcpy(&seed, view->tensor.tag, sizeof(seed));
	if (view->tensor.tag_bytes != sizeof(seed) ||
	    !is_pattern(view->data, view->nbytes, seed))
		err = -EBADMSG;
	return ta_release(view) ?: err;
}

static int drain(struct stage *s, uint32_t count)
{
	int err = 0;

	while (!err && count--)
		err = drain_one(s);
	return err;
}

static pid_t fork_child(struct stage *s)
{
	pid_t pid = fork();

	if (!pid)
		linger(s->lifeline);
	return pid;
}

static int act(struct stage *s, const struct actor_request *q,
	       struct actor_answer *a)
{
	struct ta_view **view = &s->view[q->view];
	struct ta_loan *loan;
	int err;

	switch (q->op) {
	case ACTOR_ATTACH:
		return ta_attach(q->handle, &s->reader);
	case ACTOR_READER_ID:
		a->number = (int64_t)ta_reader_id(s->reader);
		return 0;
	case ACTOR_NEXT:
		return ta_next(s->reader, q->timeout_ms, view);
	case ACTOR_VIEW:
		return ta_view(s->reader, &q->ticket, view);
	case ACTOR_DESCRIBE:
		a->ticket = (*view)->ticket;
		a->tensor = (*view)->tensor;
		return 0;
	case ACTOR_CHECK:
		return is_pattern((*view)->data, (*view)->nbytes, q->seed) ?
			       0 :
			       -EBADMSG;
	case ACTOR_RELEASE:
		return ta_release(*view);
	case ACTOR_CLOSE_READER:
		ta_reader_close(s->reader);
		s->reader = NULL;
		return 0;
	case ACTOR_DRAIN:
		return drain(s, q->count);
	case ACTOR_CREATE:
		err = ta_create(&q->options, &s->writer, NULL, 0);
		if (!err)
			strcpy(a->handle, ta_handle(s->writer));
		return err;
	case ACTOR_PUT:
		return put_pattern(s->writer, q->nbytes, q->seed, &a->ticket);
	case ACTOR_LOAN:
		return ta_loan(s->writer, q->nbytes, &loan);
	case ACTOR_CLOSE_WRITER:
		ta_writer_close(s->writer);
		s->writer = NULL;
		return 0;
	case ACTOR_FORK:
		a->number = fork_child(s);
		return a->number < 0 ? -errno : 0;
	case ACTOR_EXEC:
		/* Answered by the new image: see actor_main(). */
		break;
	}
	return -ENOSYS;
}

static void become_another(struct stage *s, int sock)
{
	char path[4096], lifeline[16], fd[16];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		_exit(1);
	path[n] = '\0';
	snprintf(fd, sizeof(fd), "%d", sock);
	snprintf(lifeline, sizeof(lifeline), "%d", s->lifeline);
	execl(path, path, "another", fd, lifeline, (char *)NULL);
	_exit(1);
}

static void answer(int sock, const struct actor_answer *a)
{
	if (send(sock, a, sizeof(*a), MSG_NOSIGNAL) != sizeof(*a))
		_exit(1);
}

bool is_actor(int argc, char **argv)
{
	return argc == 4 &&
	       (!strcmp(argv[1], "actor") || !strcmp(argv[1], "another"));
}

int actor_main(char **argv)
{
	const struct actor_answer done = { 0 };
	struct stage s = { .lifeline = atoi(argv[3]) };
	int sock = atoi(argv[2]);
	struct actor_request q;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(argv[1], "another"))
		answer(sock, &done);
	while ((n = recv(sock, &q, sizeof(q), 0)) == sizeof(q)) {
		struct actor_answer a = { 0 };

		if (q.op == ACTOR_EXEC)
			become_another(&s, sock);
		a.err = act(&s, &q, &a);
		answer(sock, &a);
	}
	ta_reader_close(s.reader);
	ta_writer_close(s.writer);
	return n ? 1 : 0;
}
