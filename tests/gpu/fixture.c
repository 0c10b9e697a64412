// SPDX-License-Identifier: MIT
/* See fixture.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

/* The stand-in lies beside this program. */
static void *load(const char *name)
{
	char path[4096];
	void *library;
	ssize_t n;

	n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/standin/");
	strcat(path, name);
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		fail_msg("%s", dlerror());
	return library;
}

const struct standin_api *standin_load(void)
{
	const struct standin_api *api;

	api = dlsym(load("libcuda.so.1"), "standin_api");
	assert_non_null(api);
	/* As in any CUDA program; the library has no use for it. */
	load("libcudart.so.13");
	return api;
}

void gpu_open(struct gpu *gpu, uint32_t slots, size_t slot_bytes, bool context)
{
	struct ta_options o = test_options(slots, slot_bytes, 1);

	memset(gpu, 0, sizeof(*gpu));
	gpu->standin = standin_load();
	gpu->state = gpu->standin->state;
	gpu->standin->reset(context);
	gpu->stream = gpu->standin->stream(0);
	gpu->bytes = slot_bytes;
	gpu->device_memory = calloc(1, slot_bytes);
	assert_non_null(gpu->device_memory);
	assert_ok(ta_create(&o, &gpu->writer, NULL, 0));
	assert_ok(ta_attach(ta_handle(gpu->writer), &gpu->reader));
}

void gpu_close_reader(struct gpu *gpu)
{
	ta_reader_close(gpu->reader);
	gpu->reader = NULL;
}

void gpu_close(struct gpu *gpu)
{
	int i;

	gpu_close_reader(gpu);
	ta_writer_close(gpu->writer);
	assert_int_equal(gpu->state->regions, 0);
	assert_int_equal(gpu->state->events, 0);
	assert_int_equal(gpu->state->made, 0);
	assert_int_equal(gpu->state->calls, 0);
	assert_int_equal(gpu->state->unsafe, 0);
	for (i = 0; i < STANDIN_DEVICES; i++)
		assert_int_equal(gpu->state->retained[i], 0);
	free(gpu->device_memory);
	gpu->standin->discard(gpu->stream);
}

struct ta_view *gpu_view(struct gpu *gpu, size_t nbytes, uint64_t seed)
{
	struct ta_ticket ticket;
	struct ta_view *view;

	assert_ok(put_when_free(gpu->writer, nbytes, seed, &ticket));
	assert_ok(ta_view(gpu->reader, &ticket, &view));
	return view;
}

struct ta_cuda_stats gpu_stats(struct gpu *gpu)
{
	struct ta_cuda_stats stats;

	assert_ok(ta_cuda_stats(gpu->reader, &stats, NULL, 0));
	return stats;
}

uint32_t gpu_pin_state(struct gpu *gpu, uint32_t slot)
{
	struct ta_cuda_slot rows[256];
	struct ta_cuda_stats stats;

	assert_ok(ta_cuda_stats(gpu->reader, &stats, rows, 256));
	assert_true(slot < stats.slots);
	return rows[slot].state;
}

int gpu_copy(struct gpu *gpu, struct ta_view *view,
	     struct standin_stream *stream)
{
	return ta_copy_to_device(view, gpu->device_memory, 0, view->nbytes,
				 stream);
}

static void *complete_later(void *arg)
{
	struct gpu *gpu = arg;

	usleep(50000);
	gpu->standin->complete(gpu->stream);
	return NULL;
}

pthread_t gpu_complete_later(struct gpu *gpu)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, complete_later, gpu), 0);
	return thread;
}

static void own_copy(struct gpu *gpu, const char *name, void *dst,
		     const void *src, size_t bytes)
{
	int (*copy)(uintptr_t, uintptr_t, size_t, struct standin_stream *);

	copy = (__typeof__(copy))dlsym(RTLD_DEFAULT, name);
	assert_non_null(copy);
	assert_int_equal(
		copy((uintptr_t)dst, (uintptr_t)src, bytes, gpu->stream), 0);
	/* What the caller does is no business of the library's. */
	gpu->state->unsafe = 0;
}

void gpu_own_copy(struct gpu *gpu, const struct ta_view *view)
{
	own_copy(gpu, "cuMemcpyHtoDAsync_v2", gpu->device_memory, view->data,
		 view->nbytes);
}

void gpu_own_copy_back(struct gpu *gpu, const struct ta_loan *loan)
{
	own_copy(gpu, "cuMemcpyDtoHAsync_v2", loan->data, gpu->device_memory,
		 loan->nbytes);
}

void gpu_check(struct gpu *gpu, size_t nbytes, uint64_t seed)
{
	assert_true(is_pattern(gpu->device_memory, nbytes, seed));
}
