/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Child processes for tests, which talk with their parent over a socket.
 *
 * A child that reads from a parent that is gone ends itself, so nothing is
 * left behind when a test fails half way.
 */
#ifndef SELFTEST_PROC_H
#define SELFTEST_PROC_H

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"

/* Longer than anything takes; only a hang reaches it. */
#define HANG_MS 20000

struct child {
	pid_t pid;
	int sock;
};

static inline void tell(int sock, int64_t value)
{
	ssize_t n;

	do
		n = send(sock, &value, sizeof(value), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	MUST(n == sizeof(value));
}

/* False when the other side is gone. */
static inline bool hear(int sock, int64_t *value)
{
	ssize_t n;

	do
		n = recv(sock, value, sizeof(*value), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*value);
}

static inline int64_t hear_or_exit(int sock)
{
	int64_t value;

	if (!hear(sock, &value))
		_exit(0);
	return value;
}

static inline int64_t must_hear(int sock)
{
	int64_t value;

	MUST(hear(sock, &value));
	return value;
}

/* Until the other side is gone. */
static inline void __attribute__((noreturn)) wait_for_the_end(int sock)
{
	int64_t value;

	while (hear(sock, &value))
		;
	_exit(0);
}

/*
 * Runs @body in a child.  The arena's writer file is closed there unless
 * @body is the writer: what ends with its last close shall end with ours.
 */
static inline struct child child_start(void (*body)(int sock, void *arg),
				       void *arg, int close_fd)
{
	struct child c;
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	c.pid = fork();
	MUST(c.pid >= 0);
	if (!c.pid) {
		MUST(!close(pair[0]));
		if (close_fd >= 0)
			MUST(!close(close_fd));
		body(pair[1], arg);
		_exit(0);
	}
	MUST(!close(pair[1]));
	c.sock = pair[0];
	return c;
}

/* Waits for the child; its wait status. */
static inline int child_wait(const struct child *c)
{
	int status;

	while (waitpid(c->pid, &status, 0) != c->pid)
		MUST(errno == EINTR);
	return status;
}

/* Whether it ended by _exit(0). */
static inline bool child_ended_well(struct child *c)
{
	int status;

	MUST(!close(c->sock));
	status = child_wait(c);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline void child_kill(struct child *c)
{
	int status;

	MUST(!kill(c->pid, SIGKILL));
	status = child_wait(c);
	MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- descriptors ---- */

static inline void send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	MUST(sendmsg(sock, &msg, MSG_NOSIGNAL) == 1);
}

static inline int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd;

	MUST(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1);
	cmsg = CMSG_FIRSTHDR(&msg);
	MUST(cmsg && cmsg->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

/* ---- events and faults ---- */

static inline double now_ms(void)
{
	struct timespec ts;

	MUST(!clock_gettime(CLOCK_MONOTONIC, &ts));
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/*
 * What poll(2) reports within @timeout_ms; 0: nothing.  It looks once more when
 * its time is up: what it finds then nobody has woken it for, so that counts
 * as nothing.
 */
static inline short poll_for(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	double start = now_ms();
	int n;

	do
		n = poll(&pfd, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	MUST(n >= 0);
	if (timeout_ms && now_ms() - start >= timeout_ms)
		return 0;
	return n ? pfd.revents : 0;
}

static inline short poll_now(int fd)
{
	return poll_for(fd, POLLIN | POLLOUT, 0);
}

static sigjmp_buf touch_env;

static void touch_failed(int sig)
{
	siglongjmp(touch_env, sig);
}

/* Reads a byte, or writes one: 0, or the signal that came of it. */
static inline int touch(volatile uint8_t *p, bool write)
{
	struct sigaction action = { .sa_handler = touch_failed };
	struct sigaction bus, segv;
	int sig;

	MUST(!sigaction(SIGBUS, &action, &bus));
	MUST(!sigaction(SIGSEGV, &action, &segv));
	sig = sigsetjmp(touch_env, 1);
	if (!sig) {
		if (write)
			*p = 1;
		else
			(void)*p;
	}
	MUST(!sigaction(SIGBUS, &bus, NULL));
	MUST(!sigaction(SIGSEGV, &segv, NULL));
	return sig;
}

static inline int touch_read(const uint8_t *p)
{
	return touch((volatile uint8_t *)p, false);
}

static inline int touch_write(uint8_t *p)
{
	return touch(p, true);
}

#endif /* SELFTEST_PROC_H */
