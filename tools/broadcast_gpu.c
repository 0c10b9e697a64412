// SPDX-License-Identifier: MIT
/* See broadcast_gpu.h. */
#include "broadcast_gpu.h"
#include "checksum.h"
#include "clock.h"

static int failed(const struct gpu *gpu, const char *call, int err,
		  struct reason *why)
{
	return reason_set(why, "GPU %d: %s: %s", gpu->device, call,
			  gpu->cuda.GetErrorName(err));
}

/* Calls a function of CUDA; true when it failed. */
#define FAILS(err, gpu, call) (((err) = (gpu)->cuda.call) != 0)

int gpu_open(struct gpu *gpu, uint32_t number, uint64_t nbytes,
	     struct reason *why)
{
	int count = 0;
	int err;

	if (cuda_load(&gpu->cuda, why))
		return -1;
	if (FAILS(err, gpu, GetDeviceCount(&count)))
		return reason_set(why, "there is no GPU to use: %s",
				  gpu->cuda.GetErrorName(err));
	if (!count)
		return reason_set(why, "there is no GPU");
	gpu->nbytes = nbytes ? nbytes : 1;
	gpu->device = (int)(number % (uint32_t)count);
	if (FAILS(err, gpu, SetDevice(gpu->device)))
		return failed(gpu, "cudaSetDevice", err, why);
	/* Makes the context, so that the first view finds one to pin in. */
	if (FAILS(err, gpu,
		  StreamCreateWithFlags(&gpu->stream,
					CUDA_STREAM_NON_BLOCKING)))
		return failed(gpu, "cudaStreamCreateWithFlags", err, why);
	return 0;
}

static int get_memory(struct gpu *gpu, struct reason *why)
{
	int err;

	if (gpu->memory)
		return 0;
	if (FAILS(err, gpu, Malloc(&gpu->memory, gpu->nbytes)))
		return failed(gpu, "cudaMalloc", err, why);
	if (FAILS(err, gpu, MallocHost(&gpu->back, gpu->nbytes)))
		return failed(gpu, "cudaMallocHost", err, why);
	return 0;
}

/* Waits for the copy that was begun at @start. */
static int arrived(struct gpu *gpu, double start, struct gpu_seen *seen,
		   struct reason *why)
{
	int err;

	if (FAILS(err, gpu, StreamSynchronize(gpu->stream)))
		return failed(gpu, "cudaStreamSynchronize", err, why);
	seen->end_ms = clock_ms();
	seen->h2d_ms = seen->end_ms - start;
	return 0;
}

/* To the GPU; the view is released while that goes on. */
static int there(struct gpu *gpu, struct ta_view *view, struct gpu_seen *seen,
		 struct reason *why)
{
	double start = clock_ms();
	int err;

	err = ta_copy_to_device(view, gpu->memory, 0, view->nbytes,
				gpu->stream);
	if (err)
		reason_set(why, "GPU %d: %s", gpu->device, ta_strerror(err));
	if (ta_release(view) && !err)
		err = reason_set(why, "the view cannot be released");
	return err ? -1 : arrived(gpu, start, seen, why);
}

/* What is there, by way of this side. */
static int check(struct gpu *gpu, uint64_t nbytes, struct gpu_seen *seen,
		 struct reason *why)
{
	int err;

	if (FAILS(err, gpu,
		  MemcpyAsync(gpu->back, gpu->memory, nbytes,
			      CUDA_DEVICE_TO_HOST, gpu->stream)) ||
	    FAILS(err, gpu, StreamSynchronize(gpu->stream)))
		return failed(gpu, "cudaMemcpyAsync", err, why);
	seen->digest = checksum(gpu->back, nbytes);
	return 0;
}

int gpu_look(struct gpu *gpu, struct ta_view *view, struct gpu_seen *seen,
	     struct reason *why)
{
	uint64_t nbytes = view->nbytes;

	if (get_memory(gpu, why)) {
		ta_release(view);
		return -1;
	}
	if (there(gpu, view, seen, why))
		return -1;
	return check(gpu, nbytes, seen, why);
}

int gpu_look_at(struct gpu *gpu, const void *bytes, uint64_t nbytes,
		struct gpu_seen *seen, struct reason *why)
{
	double start;
	int err;

	if (get_memory(gpu, why))
		return -1;
	start = clock_ms();
	if (FAILS(err, gpu,
		  MemcpyAsync(gpu->memory, bytes, nbytes, CUDA_HOST_TO_DEVICE,
			      gpu->stream)))
		return failed(gpu, "cudaMemcpyAsync", err, why);
	if (arrived(gpu, start, seen, why))
		return -1;
	return check(gpu, nbytes, seen, why);
}
