// SPDX-License-Identifier: MIT
/*
 * Killing a process at a chosen point.
 *
 * At a stop: the victim is traced with PTRACE_SEIZE.  It runs freely until it
 * raises SIGTRAP where the operation begins; from there on every thread stops
 * at the beginning and the end of every system call, and the k-th such stop is
 * its last.  In time: it is not traced at all.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kill.h"

#define TRACE_OPTIONS                                                          \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |    \
	 PTRACE_O_TRACEVFORK)
#define MAX_TRACED 256

/**
 * struct trace - a victim being traced
 * @victim: its process
 * @task: threads and child processes of it
 * @nr: how many
 * @stepping: the operation has begun
 * @stops: system call stops since
 */
struct trace {
	pid_t victim;
	struct {
		pid_t tid;
		bool child;
	} task[MAX_TRACED];
	uint32_t nr;
	bool stepping;
	uint32_t stops;
};

static void remember(struct trace *t, pid_t tid, bool child)
{
	MUST(t->nr < MAX_TRACED);
	t->task[t->nr].tid = tid;
	t->task[t->nr++].child = child;
}

static void forget(struct trace *t, pid_t tid)
{
	uint32_t i;

	for (i = 0; i < t->nr; i++)
		if (t->task[i].tid == tid)
			t->task[i] = t->task[--t->nr];
}

static bool is_child(const struct trace *t, pid_t tid)
{
	uint32_t i;

	for (i = 0; i < t->nr; i++)
		if (t->task[i].tid == tid)
			return t->task[i].child;
	return false;
}

static void resume(const struct trace *t, pid_t tid, int sig)
{
	/* It may have been killed meanwhile. */
	if (ptrace(t->stepping ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, sig))
		MUST(errno == ESRCH);
}

/* Every thread but the one that is stopped anyway. */
static void start_stepping(struct trace *t, pid_t here)
{
	uint32_t i;

	t->stepping = true;
	for (i = 0; i < t->nr; i++)
		if (t->task[i].tid != here)
			ptrace(PTRACE_INTERRUPT, t->task[i].tid, 0, 0);
}

static void let_child_go(struct trace *t, pid_t tid)
{
	if (!is_child(t, tid))
		return;
	ptrace(PTRACE_DETACH, tid, 0, 0);
	forget(t, tid);
}

/* Children outlive the victim, untraced. */
static void let_children_go(struct trace *t)
{
	uint32_t i;
	int status;

	for (i = 0; i < t->nr; i++) {
		pid_t tid = t->task[i].tid;

		if (!t->task[i].child || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
		    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			continue;
		ptrace(PTRACE_DETACH, tid, 0, 0);
	}
}

enum event {
	EV_NONE,
	EV_MARK, /* an operation begins or ends */
	EV_STOP, /* a system call begins or ends */
	EV_GONE,
};

static void new_task(struct trace *t, pid_t parent, bool child)
{
	unsigned long tid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, parent, 0, &tid))
		return;
	forget(t, (pid_t)tid);
	remember(t, (pid_t)tid, child || is_child(t, parent));
}

/* One thing that happens to the victim; @tid stays stopped at all but NONE. */
static enum event next_event(struct trace *t, pid_t *tid, int *status)
{
	int sig;

	*tid = waitpid(-1, status, __WALL);
	if (*tid < 0) {
		MUST(errno == EINTR);
		return EV_NONE;
	}
	if (!WIFSTOPPED(*status)) {
		forget(t, *tid);
		return *tid == t->victim ? EV_GONE : EV_NONE;
	}
	sig = WSTOPSIG(*status);
	switch (*status >> 16) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		new_task(t, *tid, *status >> 16 != PTRACE_EVENT_CLONE);
		sig = 0;
		break;
	case PTRACE_EVENT_STOP:
		sig = 0;
		break;
	default:
		if (sig == SIGTRAP && (*tid == t->victim || !is_child(t, *tid)))
			return EV_MARK;
		if (sig == (SIGTRAP | 0x80))
			return EV_STOP;
	}
	resume(t, *tid, sig);
	return EV_NONE;
}

/*
 * The victim's end, however many of its threads are yet to be told.  @tid: who
 * is stopped now.
 */
static void kill_traced(struct trace *t, pid_t tid, int *status)
{
	MUST(!kill(t->victim, SIGKILL));
	let_child_go(t, tid);
	for (;;) {
		enum event event = next_event(t, &tid, status);

		if (event == EV_GONE)
			break;
		if (event != EV_NONE)
			resume(t, tid, 0);
	}
	let_children_go(t);
}

static void let_go(const struct usher *u)
{
	const struct message go = { .kind = MSG_GO };

	MUST(send(u->sock, &go, sizeof(go), MSG_NOSIGNAL) == sizeof(go));
}

static void strike_at_stop(struct usher *u, const struct blow *blow,
			   struct outcome *o)
{
	struct trace t = { .victim = u->pid };
	bool done = false;
	pid_t tid;

	remember(&t, u->pid, false);
	MUST(!ptrace(PTRACE_SEIZE, u->pid, 0, TRACE_OPTIONS));
	let_go(u);
	while (!done) {
		switch (next_event(&t, &tid, &o->status)) {
		case EV_NONE:
			continue;
		case EV_GONE:
			o->self = true;
			o->stops = t.stops;
			let_children_go(&t);
			return;
		case EV_MARK:
			if (t.stepping) {
				o->ended = true;
				done = true;
				continue;
			}
			start_stepping(&t, tid);
			break;
		case EV_STOP:
			if (t.stops == blow->stop) {
				done = true;
				continue;
			}
			t.stops++;
			break;
		}
		resume(&t, tid, 0);
	}
	o->stops = t.stops;
	kill_traced(&t, tid, &o->status);
}

static void sleep_seconds(double seconds)
{
	struct timespec ts = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	nanosleep(&ts, NULL);
}

/* Whether the process's first thread sleeps. */
static bool is_asleep(pid_t pid)
{
	char path[64], text[512] = "";
	const char *after;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	MUST(fgets(text, sizeof(text), f));
	fclose(f);
	after = strrchr(text, ')');
	return after && (after[2] == 'S' || after[2] == 'D');
}

static void wait_asleep(pid_t victim)
{
	double end = now_seconds() + HANG_SECONDS;

	while (!is_asleep(victim) && now_seconds() < end)
		sleep_seconds(0.0005);
}

/* Whether it dies within @seconds of what it did itself. */
static bool dies(pid_t victim, double seconds, int *status)
{
	double end = now_seconds() + seconds;

	do {
		if (waitpid(victim, status, WNOHANG) == victim)
			return true;
		sleep_seconds(0.0002);
	} while (now_seconds() < end);
	return false;
}

static void finish_off(pid_t victim, int *status)
{
	MUST(!kill(victim, SIGKILL));
	while (waitpid(victim, status, 0) < 0)
		MUST(errno == EINTR);
}

/* More than a timer may be late; only exec() makes us wait so long. */
#define LATE 0.5

static void strike_in_time(struct usher *u, const struct blow *blow,
			   const struct op *op, struct outcome *o)
{
	let_go(u);
	while (sem_wait(&u->begun))
		MUST(errno == EINTR);
	if (op->flags & OP_SLEEPS) {
		wait_asleep(u->pid);
		sleep_seconds(blow->delay);
		finish_off(u->pid, &o->status);
	} else if (op->flags & OP_OOM) {
		if (!dies(u->pid, HANG_SECONDS, &o->status))
			finish_off(u->pid, &o->status);
	} else if (blow->delay > 0 || op->flags & OP_ENDS) {
		if (!dies(u->pid, blow->delay + LATE, &o->status))
			finish_off(u->pid, &o->status);
	} else {
		while (!u->ended && !dies(u->pid, 0, &o->status))
			;
		if (u->ended)
			finish_off(u->pid, &o->status);
	}
	o->self = WIFEXITED(o->status) || op->flags & OP_OOM;
}

void strike(struct usher *u, const struct blow *blow, const struct op *op,
	    struct outcome *outcome)
{
	*outcome = (struct outcome){ 0 };
	if (blow->traced)
		strike_at_stop(u, blow, outcome);
	else
		strike_in_time(u, blow, op, outcome);
	usher_end(u);
	if (u->ended) {
		outcome->ended = true;
		outcome->seconds = u->seconds;
	}
}
