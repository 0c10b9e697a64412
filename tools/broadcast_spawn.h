/* SPDX-License-Identifier: MIT */
#ifndef TARENA_BROADCAST_SPAWN_H
#define TARENA_BROADCAST_SPAWN_H

#include <sys/types.h>

/*
 * Starts this program again as a worker, in an address space of its own.
 * 0 or -errno; @socket: our end of its socket pair; @bytes: of the one for bytes,
 * NULL: it is to have none.
 */
int spawn_worker(pid_t *pid, int *socket, int *bytes);

#endif /* TARENA_BROADCAST_SPAWN_H */
