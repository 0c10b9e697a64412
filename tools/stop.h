/* SPDX-License-Identifier: MIT */
/*
 * Ctrl-C as a descriptor: the signals that end the tool are blocked and read
 * from a signalfd, so that they interrupt nothing half-way and every path out
 * is an ordinary return.
 */
#ifndef TARENA_STOP_H
#define TARENA_STOP_H

#include <stdbool.h>

/* Blocks SIGINT, SIGTERM and SIGHUP; a descriptor, or -errno. */
int stop_open(void);
/* Whether one of them has arrived.  Cheap; with @fd -1 the answer is no. */
bool stop_requested(int fd);
/*
 * Ends the process by the signal that arrived, as a shell expects of a command
 * that was interrupted.  Returns only when none had.
 */
void stop_obey(int fd);

#endif /* TARENA_STOP_H */
