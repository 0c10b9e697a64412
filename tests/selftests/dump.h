/* SPDX-License-Identifier: GPL-2.0-only */
/* Core dumps that never end: they go to a program that does not read them. */
#ifndef SELFTEST_DUMP_H
#define SELFTEST_DUMP_H

#include <signal.h>
#include <sys/wait.h>

#include "machine.h"
#include "proc.h"

#define CORE_PATTERN "/proc/sys/kernel/core_pattern"
/* Unless it is 0, the kernel waits until the program has ended, too. */
#define CORE_PIPE_LIMIT "/proc/sys/kernel/core_pipe_limit"

/* Has a process dump core until it is killed. */
static inline void start_dump(pid_t pid)
{
	MUST(!write_to(CORE_PATTERN, "|/bin/busybox sleep 3600"));
	MUST(!write_to(CORE_PIPE_LIMIT, "64"));
	MUST(!kill(pid, SIGQUIT));
}

/*
 * After a dump: ends it.  Returns whether it was still under way, and leaves the
 * machine's settings as a kernel starts with them.
 */
static inline bool end_dump(const struct child *c)
{
	siginfo_t info = { 0 };
	bool dumping;

	MUST(!waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT));
	dumping = !info.si_pid;
	MUST(!write_to(CORE_PATTERN, "core"));
	MUST(!write_to(CORE_PIPE_LIMIT, "0"));
	MUST(!kill(c->pid, SIGKILL));
	child_wait(c);
	return dumping;
}

#endif /* SELFTEST_DUMP_H */
