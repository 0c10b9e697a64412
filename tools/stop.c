// SPDX-License-Identifier: MIT
/*
 * Ctrl-C as a descriptor; see stop.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "stop.h"

/* A signal that was ignored from the start (nohup, a shell's "&") stays so. */
static void add_unless_ignored(sigset_t *set, int signo)
{
	struct sigaction old;

	if (sigaction(signo, NULL, &old) || old.sa_handler != SIG_IGN)
		sigaddset(set, signo);
}

int stop_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool stop_requested(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

void stop_obey(int fd)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	signal(info.ssi_signo, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, info.ssi_signo);
	raise(info.ssi_signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
