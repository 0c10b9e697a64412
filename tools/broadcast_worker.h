/* SPDX-License-Identifier: MIT */
/* What the two ways to be a worker share: by an arena, and over a socket. */
#ifndef TARENA_BROADCAST_WORKER_H
#define TARENA_BROADCAST_WORKER_H

#include "broadcast_gpu.h"
#include "broadcast_wire.h"

/* A whole message: 0, or -1 when the engine process is gone. */
int worker_get(void *message, size_t nbytes);
int worker_answer(const void *message, size_t nbytes);

/*
 * Receives tensors of at most @most_bytes, and says what it saw, until the engine
 * process hangs up; an exit code.  @gpu: where they are to go, or NULL.
 */
int worker_receive(struct gpu *gpu, uint64_t most_bytes);

#endif /* TARENA_BROADCAST_WORKER_H */
