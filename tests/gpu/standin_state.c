// SPDX-License-Identifier: MIT
/* The stand-in's contexts and streams, and what tests do to them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "standin_parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct standin state;
/* The primary ones, and one more. */
static struct standin_context context[STANDIN_DEVICES + 1];
static struct standin_stream *streams;
static unsigned long long ids;

static __thread struct standin_context *stack[8];
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

void standin_unsafe(void)
{
	state.unsafe += capture_mode != 2;
}

static void activate(struct standin_context *ctx)
{
	if (!ctx->active)
		ctx->id = ++ids;
	ctx->active = true;
}

struct standin_context *standin_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static int how_to_fail(const char *name)
{
	if (state.fail && !strcmp(state.fail, name)) {
		if (!state.fail_always)
			state.fail = NULL;
		return state.fail_with;
	}
	return state.refuse;
}

int standin_enter(const char *name, bool current)
{
	int err;

	standin_lock();
	state.driver_calls++;
	if (!state.initialised)
		return NOT_INITIALIZED;
	err = how_to_fail(name);
	if (err || !current)
		return err;
	if (!standin_current())
		return INVALID_CONTEXT;
	if (!standin_current()->active)
		return CONTEXT_IS_DESTROYED;
	return state.device_error;
}

int standin_enter_runtime(const char *name)
{
	struct standin_context *ctx;

	standin_lock();
	state.calls++;
	ctx = standin_current();
	if (!ctx) {
		ctx = &context[0];
		stack[depth++] = ctx;
	}
	/* What the real runtime does, and the library must not. */
	state.made += !ctx->active;
	state.initialised = true;
	activate(ctx);
	return how_to_fail(name);
}

struct standin_stream *standin_real_stream(struct standin_stream *stream)
{
	return stream ? stream : &standin_current()->legacy;
}

/* ---- streams ---- */

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

void standin_wait_for_all(const struct standin_context *ctx)
{
	struct standin_stream *stream;

	for (stream = streams; stream; stream = stream->next)
		if (stream->ctx == ctx)
			standin_wait(stream, stream->sent);
}

static void drop(struct standin_stream *stream, struct standin_context *ctx)
{
	struct standin_stream *next = stream->next;
	struct standin_op *op;

	while ((op = stream->first)) {
		stream->first = op->next;
		free(op);
	}
	memset(stream, 0, sizeof(*stream));
	stream->next = next;
	stream->ctx = ctx;
	stream->id = ++ids;
}

struct standin_stream *standin_new_stream(struct standin_context *ctx)
{
	struct standin_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	drop(stream, ctx);
	stream->next = streams;
	streams = stream;
	return stream;
}

/* ---- for the test ---- */

static void reset(bool with_context)
{
	int i;

	standin_lock();
	standin_drop_events(NULL);
	memset(&state, 0, sizeof(state));
	state.read_only_supported = true;
	state.stream_ids = true;
	state.ctx_ids = true;
	for (i = 0; i <= STANDIN_DEVICES; i++) {
		context[i].device = i % STANDIN_DEVICES;
		context[i].active = false;
		drop(&context[i].legacy, &context[i]);
	}
	depth = 0;
	if (with_context)
		standin_set_device(0);
	standin_unlock();
}

static void set_current(int device)
{
	depth = 0;
	if (device >= 0) {
		activate(&context[device]);
		stack[depth++] = &context[device];
	}
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

static struct standin_stream *make_stream(int device)
{
	struct standin_stream *stream;

	standin_lock();
	stream = standin_new_stream(&context[device]);
	standin_unlock();
	return stream;
}

static void discard(struct standin_stream *stream)
{
	struct standin_stream **link = &streams;

	standin_lock();
	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	drop(stream, NULL);
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

static void hold(struct standin_stream *stream)
{
	standin_lock();
	stream->running = false;
	standin_unlock();
}

static void device_reset(int device)
{
	struct standin_context *ctx = &context[device];
	struct standin_stream *stream;

	standin_lock();
	ctx->active = false;
	standin_drop_regions(ctx);
	standin_drop_events(ctx);
	drop(&ctx->legacy, ctx);
	for (stream = streams; stream; stream = stream->next)
		if (stream->ctx == ctx)
			drop(stream, NULL);
	standin_unlock();
}

static void forget_regions(void)
{
	standin_lock();
	standin_drop_regions(NULL);
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
	.hold = hold,
	.device_reset = device_reset,
	.forget_regions = forget_regions,
};

/* ---- the driver's contexts ---- */

int cuCtxGetCurrent(struct standin_context **ctx)
{
	if (!state.initialised)
		return NOT_INITIALIZED;
	*ctx = standin_current();
	return 0;
}

int cuCtxPushCurrent_v2(struct standin_context *ctx)
{
	int err = standin_enter(__func__, false);

	if (!err && !ctx->active)
		err = state.dead_push;
	if (!err)
		stack[depth++] = ctx;
	standin_unlock();
	return err;
}

int cuCtxPopCurrent_v2(struct standin_context **ctx)
{
	*ctx = stack[--depth];
	return 0;
}

int cuCtxGetId(struct standin_context *ctx, unsigned long long *id)
{
	int err = standin_enter(__func__, false);

	if (!err && state.ctx_ids && !ctx->active)
		err = CONTEXT_IS_DESTROYED;
	/* As if there were no such function. */
	*id = state.ctx_ids && !err ? ctx->id : 0;
	standin_unlock();
	return err;
}

int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	standin_lock();
	*flags = 0;
	*active = context[device].active;
	standin_unlock();
	return 0;
}

int cuDevicePrimaryCtxRetain(struct standin_context **ctx, int device)
{
	standin_lock();
	state.made += !context[device].active;
	activate(&context[device]);
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
