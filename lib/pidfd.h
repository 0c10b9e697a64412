/* SPDX-License-Identifier: MIT */
/* Descriptors that stand for a process and are readable once it is dead. */
#ifndef TA_PIDFD_H
#define TA_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/* O_CLOEXEC; -ESRCH: there is no such process.  -ENOSYS: Linux before 5.3. */
int ta_pidfd_open(pid_t pid);
/* Whether a descriptor that somebody sent us is one. */
bool ta_pidfd_is(int fd);

#endif /* TA_PIDFD_H */
