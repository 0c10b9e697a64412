/* SPDX-License-Identifier: MIT */
/* An arena whose writer and readers are this process, and a stand-in GPU. */
#ifndef TA_GPU_FIXTURE_H
#define TA_GPU_FIXTURE_H

#include <pthread.h>

#include "../lib/harness.h"
#include "standin.h"

#define READ_ONLY_FLAG 0x08u
#define PORTABLE_FLAG 0x01u
#define SOME_BYTES (100 * KIB)

/**
 * struct gpu - one arena, one reader, one stand-in
 * @device_memory: where copies go; as large as a slot
 */
struct gpu {
	const struct standin_api *standin;
	struct standin *state;
	struct standin_stream *stream;
	struct ta_writer *writer;
	struct ta_reader *reader;
	char *device_memory;
	size_t bytes;
};

/* Loads the stand-in, unless that has been done. */
const struct standin_api *standin_load(void);
/* @context: this thread has one. */
void gpu_open(struct gpu *gpu, uint32_t slots, size_t slot_bytes, bool context);
/* All must be as before: nothing registered, no event, no context made. */
void gpu_close(struct gpu *gpu);
/* Closes the reader alone. */
void gpu_close_reader(struct gpu *gpu);

/* Puts a pattern and views it. */
struct ta_view *gpu_view(struct gpu *gpu, size_t nbytes, uint64_t seed);
struct ta_cuda_stats gpu_stats(struct gpu *gpu);
uint32_t gpu_pin_state(struct gpu *gpu, uint32_t slot);
/* Sends a whole view to device memory. */
int gpu_copy(struct gpu *gpu, struct ta_view *view,
	     struct standin_stream *stream);
/* The stream does what it was sent in a moment; join the thread. */
pthread_t gpu_complete_later(struct gpu *gpu);
/* The same as the caller's own work, which the library does not know of. */
void gpu_own_copy(struct gpu *gpu, const struct ta_view *view);
/* And from device memory to a loan. */
void gpu_own_copy_back(struct gpu *gpu, const struct ta_loan *loan);
/* What is in device memory is the pattern. */
void gpu_check(struct gpu *gpu, size_t nbytes, uint64_t seed);

#endif /* TA_GPU_FIXTURE_H */
