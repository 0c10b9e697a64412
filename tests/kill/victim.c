// SPDX-License-Identifier: MIT
/* The victim: its sequence, and the operations that both roles have. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "kill.h"
#include "uring.h"

void victim_expect(const char *what, int err, int allowed)
{
	if (!err || err == allowed)
		return;
	fprintf(stderr, "# victim: %s: %s\n", what, ta_strerror(err));
	_exit(99);
}

static void say(const struct victim *v, enum message_kind kind, double seconds)
{
	struct message m = { .kind = kind, .seconds = seconds };

	if (v->traced)
		raise(SIGTRAP);
	else if (send(v->sock, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		_exit(98);
}

static void wait_for_go(const struct victim *v)
{
	struct message m;

	if (recv(v->sock, &m, sizeof(m), 0) != sizeof(m))
		_exit(98);
}

/*
 * To the microsecond, which no other process could do; it cannot be missed
 * either, whatever the operation does.  exec() is the end of the timer.
 */
static void set_end(double delay)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGKILL };
	struct itimerspec at = {
		.it_value.tv_sec = (time_t)delay,
		.it_value.tv_nsec =
			1 + (long)((delay - (double)(time_t)delay) * 1e9),
	};
	timer_t timer;

	MUST(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	MUST(!timer_settime(timer, 0, &at, NULL));
}

static void perform(struct victim *v, const struct role *role, uint32_t target)
{
	unsigned int engine = test_engine() == TA_ENGINE_DEVICE ? ON_DEVICE :
								  ON_EMBEDDED;
	double start;
	uint32_t i;

	for (i = 0; i < target; i++)
		if (!role->op[i].alone && role->op[i].engines & engine)
			role->op[i].run(v);
	say(v, MSG_BEGUN, 0);
	if (v->delay > 0)
		set_end(v->delay);
	start = now_seconds();
	role->op[target].run(v);
	say(v, MSG_ENDED, now_seconds() - start);
	for (;;)
		pause();
}

int victim_main(char **argv)
{
	struct victim v = {
		.sock = atoi(argv[2]),
		.lifeline = atoi(argv[3]),
	};
	const struct role *role =
		strcmp(argv[4], reader_role.name) ? &writer_role : &reader_role;
	unsigned int target;
	int traced;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(sscanf(argv[5], "%u %d %" SCNu64 " %lf", &target, &traced,
		    &v.random, &v.delay) == 4);
	v.traced = traced;
	/* Those that only die once they sleep are not in a hurry. */
	if (traced || role->op[target].flags & (OP_SLEEPS | OP_OOM))
		v.delay = 0;
	v.seeds = v.random << 20;
	MUST(!pipe2(v.pipe, O_CLOEXEC));
	fcntl(v.sock, F_SETFD, FD_CLOEXEC);
	snprintf(v.handle, sizeof(v.handle), "%s", argv[6] ? argv[6] : "");
	wait_for_go(&v);
	perform(&v, role, target);
	return 0;
}

/* ---- children and images ---- */

static char *const *linger_args(const struct victim *v, bool traced)
{
	static char fd[16], life[16];
	static char *args[] = { "kill", "linger", fd, life, NULL, NULL };

	snprintf(fd, sizeof(fd), "%d", v->sock);
	snprintf(life, sizeof(life), "%d", v->lifeline);
	args[4] = traced ? "traced" : "untraced";
	return args;
}

void op_fork(struct victim *v)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		victim_linger(v->lifeline);
}

void op_fork_exec(struct victim *v)
{
	char *const *args = linger_args(v, false);
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		execv("/proc/self/exe", args);
		_exit(127);
	}
}

void op_vfork_exec(struct victim *v)
{
	char *const *args = linger_args(v, false);
	pid_t pid = vfork();

	MUST(pid >= 0);
	if (!pid) {
		execv("/proc/self/exe", args);
		_exit(127);
	}
}

void op_exec(struct victim *v)
{
	execv("/proc/self/exe", linger_args(v, v->traced));
	MUST(false);
}

void op_exit(struct victim *v)
{
	(void)v;
	exit(0);
}

/* ---- 64 threads, all of them at it ---- */

static void *be_busy(void *arg)
{
	struct victim *v = arg;

	for (;;) {
		struct ta_stats st;
		struct ta_view *view;
		struct ta_loan *loan;

		if (v->reader && !ta_next(v->reader, 1, &view))
			ta_release(view);
		if (v->writer && !ta_loan(v->writer, 4 * KIB, &loan))
			ta_abort(loan);
		if (v->writer)
			ta_stats(v->writer, &st, NULL, 0);
	}
	return NULL;
}

void op_exit_64_threads(struct victim *v)
{
	pthread_attr_t attr;
	pthread_t thread;
	int i;

	MUST(!pthread_attr_init(&attr));
	MUST(!pthread_attr_setstacksize(&attr, 256 * KIB));
	for (i = 0; i < 64; i++)
		MUST(!pthread_create(&thread, &attr, be_busy, v));
	usleep((useconds_t)random_below(&v->random, 3000));
	_exit(0);
}

/* ---- pages that somebody else refers to ---- */

/*
 * What cudaHostRegister() does to the pages, as far as it can be had without a
 * GPU: io_uring's fixed buffers where they can be registered, and a pipe.
 */
void op_pin_pages(struct victim *v, void *data, size_t bytes, bool writable)
{
	struct iovec iov = { .iov_base = data, .iov_len = bytes };
	int ring;

	if (vmsplice(v->pipe[1], &iov, 1, SPLICE_F_NONBLOCK) < 0)
		victim_expect("vmsplice", -errno, -EAGAIN);
	if (!writable)
		return;
	ring = uring_make();
	if (ring >= 0)
		uring_register(ring, data, bytes);
}

/* ---- more memory than there is ---- */

void eat_memory(struct victim *v)
{
	(void)v;
	for (;;) {
		void *p = malloc(MIB);

		if (p)
			memset(p, 1, MIB);
	}
}
