// SPDX-License-Identifier: MIT
/* Descriptors that stand for a process; see pidfd.h. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pidfd.h"

/* Not in every C library we build with; the numbers are the kernel's. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define ID_IS_PIDFD 3

int ta_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/*
 * Waiting, without waiting, fails with ECHILD for a process that is not our
 * child, but with EBADF or EINVAL for any other kind of descriptor.  Nothing
 * of the descriptor's own is run, so a hostile one cannot stall us.
 */
bool ta_pidfd_is(int fd)
{
	siginfo_t info;

	return !waitid((idtype_t)ID_IS_PIDFD, (id_t)fd, &info,
		       WEXITED | WNOHANG | WNOWAIT) ||
	       errno == ECHILD;
}
