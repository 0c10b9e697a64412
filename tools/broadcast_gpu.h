/* SPDX-License-Identifier: MIT */
/*
 * A worker's GPU: the tensor goes there from the slot, and comes back to be
 * checked.
 */
#ifndef TARENA_BROADCAST_GPU_H
#define TARENA_BROADCAST_GPU_H

#include <stdint.h>

#include <tensorarena.h>

#include "complain.h"
#include "cuda.h"

/**
 * struct gpu - one worker's
 * @cuda: the runtime
 * @device: which GPU
 * @stream: where the copies go
 * @memory: device memory, for any tensor
 * @back: pinned memory, for it to come back to
 * @nbytes: of both
 */
struct gpu {
	struct cuda cuda;
	int device;
	void *stream;
	void *memory;
	void *back;
	uint64_t nbytes;
};

/**
 * struct gpu_seen - what a tensor's way to the GPU was like
 * @digest: checksum of what came back from there
 * @h2d_ms: from asking for the copy to its end
 * @end_ms: when that was, on the clock of all processes
 */
struct gpu_seen {
	uint64_t digest;
	double h2d_ms;
	double end_ms;
};

/*
 * Takes the GPU for worker @number, spread over all there are, for tensors of at
 * most @nbytes.
 */
int gpu_open(struct gpu *gpu, uint32_t number, uint64_t nbytes,
	     struct reason *why);
/* Copies a view there, releases it, and checks what arrived. */
int gpu_look(struct gpu *gpu, struct ta_view *view, struct gpu_seen *seen,
	     struct reason *why);
/* The same with bytes that lie in any memory, which is not pinned. */
int gpu_look_at(struct gpu *gpu, const void *bytes, uint64_t nbytes,
		struct gpu_seen *seen, struct reason *why);

#endif /* TARENA_BROADCAST_GPU_H */
