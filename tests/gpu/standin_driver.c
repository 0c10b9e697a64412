// SPDX-License-Identifier: MIT
/* The stand-in's driver half, and its state; see standin.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"
#include "standin_parts.h"

#define CU_NOT_INITIALIZED 3
#define CU_INVALID_CONTEXT 201

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct standin state;
static int context[STANDIN_DEVICES];
/* The legacy default stream of each context. */
static struct standin_stream legacy[STANDIN_DEVICES];
static unsigned long long ids;

static __thread void *stack[8];
static __thread int depth;
static __thread int capture_mode;

void standin_lock(void)
{
	pthread_mutex_lock(&lock);
}

void standin_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

int *standin_capture_mode(void)
{
	return &capture_mode;
}

int standin_device(void)
{
	int *ctx = depth ? stack[depth - 1] : NULL;

	if (!ctx) {
		/* What the real runtime does, and the library must not. */
		state.made++;
		state.active[0] = true;
		ctx = &context[0];
		if (!depth)
			depth = 1;
		stack[depth - 1] = ctx;
	}
	return (int)(ctx - context);
}

struct standin_stream *standin_real_stream(struct standin_stream *stream)
{
	return stream ? stream : &legacy[standin_device()];
}

static void do_all(struct standin_stream *stream)
{
	struct standin_op *op;

	while ((op = stream->first)) {
		stream->first = op->next;
		if (op->bytes)
			memcpy(op->dst, op->src, op->bytes);
		if (op->bytes && getenv("STANDIN_WRONG_BYTES"))
			*(char *)op->dst += 1;
		free(op);
	}
	stream->last = NULL;
	stream->done = stream->sent;
	pthread_cond_broadcast(&moved);
}

void standin_send(struct standin_stream *stream, void *dst, const void *src,
		  size_t bytes)
{
	struct standin_op *op = calloc(1, sizeof(*op));

	if (!op)
		abort();
	op->dst = dst;
	op->src = src;
	op->bytes = bytes;
	if (stream->last)
		stream->last->next = op;
	else
		stream->first = op;
	stream->last = op;
	stream->sent++;
	if (stream->running)
		do_all(stream);
}

void standin_wait(struct standin_stream *stream, unsigned long until)
{
	while (stream->done < until && !state.device_error)
		pthread_cond_wait(&moved, &lock);
	state.synced++;
}

/* ---- for the test ---- */

static void drop(struct standin_stream *stream, int device)
{
	struct standin_op *op;

	while ((op = stream->first)) {
		stream->first = op->next;
		free(op);
	}
	memset(stream, 0, sizeof(*stream));
	stream->device = device;
	stream->id = ++ids;
}

static void reset(bool with_context)
{
	int i;

	standin_lock();
	memset(&state, 0, sizeof(state));
	state.read_only_supported = true;
	state.stream_ids = true;
	for (i = 0; i < STANDIN_DEVICES; i++)
		drop(&legacy[i], i);
	depth = 0;
	if (with_context) {
		state.initialised = true;
		state.active[0] = true;
		stack[depth++] = &context[0];
	}
	standin_unlock();
}

static void set_current(int device)
{
	depth = 0;
	if (device >= 0) {
		state.active[device] = true;
		stack[depth++] = &context[device];
	}
}

struct standin_stream *standin_new_stream(int device)
{
	struct standin_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	drop(stream, device);
	return stream;
}

static struct standin_stream *make_stream(int device)
{
	struct standin_stream *stream;

	standin_lock();
	stream = standin_new_stream(device);
	standin_unlock();
	return stream;
}

void standin_set_device(int device)
{
	state.initialised = true;
	set_current(device);
}

/* For a program that knows nothing of a stand-in. */
__attribute__((constructor)) static void start(void)
{
	reset(false);
}

static void discard(struct standin_stream *stream)
{
	standin_lock();
	drop(stream, 0);
	standin_unlock();
	free(stream);
}

static void capture(struct standin_stream *stream, bool on)
{
	standin_lock();
	stream->capturing = on;
	standin_unlock();
}

static void complete(struct standin_stream *stream)
{
	standin_lock();
	do_all(stream);
	standin_unlock();
}

static void run(struct standin_stream *stream)
{
	standin_lock();
	stream->running = true;
	do_all(stream);
	standin_unlock();
}

const struct standin_api standin_api = {
	.state = &state,
	.reset = reset,
	.set_current = set_current,
	.stream = make_stream,
	.discard = discard,
	.capture = capture,
	.complete = complete,
	.run = run,
};

/* ---- the driver ---- */

int cuCtxGetCurrent(void **ctx)
{
	if (!state.initialised)
		return CU_NOT_INITIALIZED;
	*ctx = depth ? stack[depth - 1] : NULL;
	return 0;
}

int cuCtxPushCurrent_v2(void *ctx)
{
	if (!ctx || !state.active[(int *)ctx - context])
		return CU_INVALID_CONTEXT;
	stack[depth++] = ctx;
	return 0;
}

int cuCtxPopCurrent_v2(void **ctx)
{
	*ctx = stack[--depth];
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = STANDIN_DEVICES;
	return state.initialised ? 0 : CU_NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = state.active[device];
	return 0;
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
	standin_lock();
	state.made += !state.active[device];
	state.active[device] = true;
	state.retained[device]++;
	standin_unlock();
	*ctx = &context[device];
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	standin_lock();
	state.retained[device]--;
	standin_unlock();
	return 0;
}

int cuStreamGetCtx(struct standin_stream *stream, void **ctx)
{
	standin_lock();
	*ctx = &context[standin_real_stream(stream)->device];
	standin_unlock();
	return 0;
}

/* ---- what only programs that look around ask ---- */

int cuInit(unsigned int flags)
{
	state.initialised = !flags;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 13099;
	return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "Stand-in GPU");
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)attribute;
	(void)device;
	*value = state.read_only_supported;
	return 0;
}

int cuGetErrorName(int err, const char **name)
{
	(void)err;
	*name = "CUDA_ERROR";
	return 0;
}
