/* SPDX-License-Identifier: MIT */
/* A reader's GPU, where the tensor is to go. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "tools/cuda.h"

/**
 * struct gpu - one reader's
 * @cuda: the runtime
 * @stream: where copies go
 * @memory: on the GPU
 * @back: where what arrived is looked at
 */
struct gpu {
	struct cuda cuda;
	void *stream;
	void *memory;
	void *back;
};

/**
 * struct gpu_about - what there is
 * @count: GPUs
 * @runtime, @driver: CUDA's numbers, 13000 for 13.0
 * @name: of the first
 * @why: why there is none
 */
struct gpu_about {
	int count;
	int runtime;
	int driver;
	char name[128];
	struct reason why;
};

/*
 * Looks in a process of its own: CUDA does not survive a fork, and processes
 * that use it are forked afterwards.
 */
void gpu_look_for(struct gpu_about *about);

/* The GPU for reader @number, spread over all there are. */
void gpu_open(struct gpu *gpu, uint32_t number, size_t max_bytes);
/* From host memory of any kind; returns when the bytes are there. */
void gpu_copy(struct gpu *gpu, const void *src, size_t nbytes);
/* Waits for what has been sent to the stream. */
void gpu_wait(struct gpu *gpu);
/* Host memory that is pinned from the start. */
void *gpu_pinned(struct gpu *gpu, size_t nbytes);
/* What arrived, back in host memory. */
const void *gpu_fetch(struct gpu *gpu, size_t nbytes);

#endif /* BENCH_GPU_H */
