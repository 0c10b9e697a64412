// SPDX-License-Identifier: MIT
/*
 * A reader that lives on.  It reads what comes, checks every byte when it
 * gets a publication and once more when it gives it back, and always keeps the
 * newest, so that it holds one when the writer dies.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kill.h"
#include "pattern.h"

enum request_kind {
	ASK_ATTACH,
	ASK_REPORT,
	ASK_REPORT_GONE,
};

struct request {
	enum request_kind kind;
	char handle[TA_HANDLE_MAX];
};

struct state {
	struct ta_reader *reader;
	struct ta_view *held;
	struct survivor_report report;
};

/* The writer may have thrown us out, and taken the memory away. */
static sigjmp_buf cut_off;

static void on_cut_off(int sig)
{
	(void)sig;
	siglongjmp(cut_off, 1);
}

static bool is_right(const struct ta_view *view)
{
	uint64_t seed;

	/* Then the next call says so. */
	if (sigsetjmp(cut_off, 1))
		return true;
	memcpy(&seed, view->tensor.tag, sizeof(seed));
	return view->tensor.tag_bytes == sizeof(seed) &&
	       is_pattern(view->data, view->nbytes, seed);
}

static void give_back(struct state *s)
{
	if (!s->held)
		return;
	s->report.bad += !is_right(s->held);
	s->report.errors += ta_release(s->held) != 0;
	s->report.seen++;
	s->held = NULL;
}

/* Reads until there is nothing, for @timeout_ms; what ended it. */
static int read_all(struct state *s, int timeout_ms)
{
	struct ta_view *view;
	int err;

	while (!(err = ta_next(s->reader, timeout_ms, &view))) {
		s->report.bad += !is_right(view);
		give_back(s);
		s->held = view;
	}
	return err;
}

static void leave(struct state *s)
{
	ta_reader_close(s->reader);
	s->reader = NULL;
}

static void attach(struct state *s, const char *handle)
{
	leave(s);
	memset(&s->report, 0, sizeof(s->report));
	s->report.attached = ta_attach(handle, &s->reader);
	if (s->report.attached)
		s->reader = NULL;
}

static void report(struct state *s, bool gone)
{
	if (!s->reader)
		return;
	if (gone) {
		s->report.end = read_all(s, (int)(HANG_SECONDS * 500));
		if (s->report.end == -EOWNERDEAD) {
			/* What it holds is void: it may be gone already. */
			ta_release(s->held);
			s->held = NULL;
		}
		give_back(s);
		leave(s);
	} else {
		s->report.end = read_all(s, 0);
		give_back(s);
	}
}

static void serve(struct state *s, int sock)
{
	struct request q;

	if (recv(sock, &q, sizeof(q), 0) != sizeof(q)) {
		leave(s);
		_exit(0);
	}
	if (q.kind == ASK_ATTACH) {
		attach(s, q.handle);
		return;
	}
	report(s, q.kind == ASK_REPORT_GONE);
	if (send(sock, &s->report, sizeof(s->report), MSG_NOSIGNAL) < 0)
		_exit(0);
}

int survivor_main(char **argv)
{
	struct state s = { 0 };
	int sock = atoi(argv[2]);
	bool over = false;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(signal(SIGBUS, on_cut_off) != SIG_ERR);
	for (;;) {
		struct pollfd pfd[2] = { { .fd = sock, .events = POLLIN },
					 { .fd = -1 } };
		short events = 0;

		if (s.reader && !over) {
			pfd[1].fd = ta_reader_poll_fd(s.reader, &events);
			pfd[1].events = events;
		}
		MUST(poll(pfd, 2, -1) > 0 || errno == EINTR);
		if (pfd[0].revents) {
			serve(&s, sock);
			over = false;
			continue;
		}
		/* At the end of an arena poll(2) has no more to say. */
		if (pfd[1].revents)
			over = read_all(&s, 0) != -EAGAIN;
	}
}

/* ---- the director's side ---- */

void survivor_start(struct survivor *s)
{
	s->pid = spawn("survivor", &s->sock, NULL, NULL, NULL, false);
}

void survivor_stop(struct survivor *s)
{
	int status;

	close(s->sock);
	MUST(waitpid(s->pid, &status, 0) == s->pid);
	MUST(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void ask(struct survivor *s, enum request_kind kind, const char *handle)
{
	struct request q = { .kind = kind };

	snprintf(q.handle, sizeof(q.handle), "%s", handle);
	MUST(send(s->sock, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q));
}

void survivor_attach(struct survivor *s, const char *handle)
{
	ask(s, ASK_ATTACH, handle);
}

bool survivor_report(struct survivor *s, bool gone, struct survivor_report *r)
{
	struct pollfd pfd = { .fd = s->sock, .events = POLLIN };

	ask(s, gone ? ASK_REPORT_GONE : ASK_REPORT, "");
	return poll(&pfd, 1, (int)(HANG_SECONDS * 1000)) == 1 &&
	       recv(s->sock, r, sizeof(*r), 0) == sizeof(*r);
}
