// SPDX-License-Identifier: MIT
/* The stand-in's driver: devices, memory, copies, events; see standin.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "standin_parts.h"

#define READ_ONLY_SUPPORTED 113
#define DISABLE_TIMING 2

#define state (*standin_api.state)

static int leave(int err)
{
	standin_unlock();
	return err;
}

/* ---- devices ---- */

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

int cuGetErrorName(int err, const char **name)
{
	*name = err == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" :
		err == 700	     ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
				       "CUDA_ERROR_OTHER";
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = STANDIN_DEVICES;
	return state.initialised ? 0 : NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
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
	*value = attribute == READ_ONLY_SUPPORTED && device >= 0 &&
		 state.read_only_supported;
	return 0;
}

/* Also of one that is not there any more. */
int cuCtxGetDevice(int *device)
{
	int err = standin_enter(__func__, false);

	if (!err && !standin_current())
		err = INVALID_CONTEXT;
	if (!err)
		*device = standin_current()->device;
	return leave(err);
}

int cuCtxSynchronize(void)
{
	int err = standin_enter(__func__, true);

	standin_unsafe();
	if (!err) {
		standin_wait_for_all(standin_current());
		err = state.device_error;
	}
	return leave(err);
}

/* ---- streams ---- */

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = *standin_capture_mode();

	*standin_capture_mode() = *mode;
	*mode = before;
	return 0;
}

int cuStreamGetCtx(struct standin_stream *stream, void **ctx)
{
	int err = standin_enter(__func__, true);

	if (!err)
		*ctx = standin_real_stream(stream)->ctx;
	return leave(err);
}

int cuStreamIsCapturing(struct standin_stream *stream, int *status)
{
	int err = standin_enter(__func__, true);

	if (!err)
		*status = standin_real_stream(stream)->capturing;
	return leave(err);
}

int cuStreamGetId(struct standin_stream *stream, unsigned long long *id)
{
	int err = standin_enter(__func__, true);

	if (!err && !state.stream_ids)
		err = INVALID_VALUE;
	if (!err)
		*id = standin_real_stream(stream)->id;
	return leave(err);
}

int cuStreamSynchronize(struct standin_stream *stream)
{
	int err = standin_enter(__func__, true);

	standin_unsafe();
	if (!err) {
		err = state.sync_fails;
		state.sync_fails = 0;
	}
	if (!err) {
		stream = standin_real_stream(stream);
		standin_wait(stream, stream->sent);
		err = state.device_error;
	}
	return leave(err);
}

/* ---- memory ---- */

int standin_find(const void *ptr, size_t size)
{
	const char *at = ptr;
	int i;

	for (i = 0; i < state.regions; i++)
		if (at < state.region[i].ptr + state.region[i].size &&
		    state.region[i].ptr < at + size)
			return i;
	return -1;
}

/* As the real one does, so that what is not there faults here. */
static void touch(const volatile char *ptr, size_t size)
{
	size_t i;

	for (i = 0; i < size; i += 4096)
		(void)ptr[i];
}

static void hold_page(int *pin, void *ptr)
{
	const struct iovec page = { ptr, 4096 };

	if (pipe2(pin, O_CLOEXEC) ||
	    vmsplice(pin[1], &page, 1, SPLICE_F_NONBLOCK) < 0)
		abort();
}

static void let_page_go(const int *pin)
{
	close(pin[0]);
	close(pin[1]);
}

static void drop_region(int i)
{
	let_page_go(state.region[i].pin);
	state.region[i] = state.region[--state.regions];
}

void standin_drop_regions(const struct standin_context *ctx)
{
	int i;

	for (i = state.regions - 1; i >= 0; i--)
		if (!ctx || state.region[i].ctx == ctx)
			drop_region(i);
}

int cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	int err = standin_enter(__func__, true);

	standin_unsafe();
	if (!err && standin_find(ptr, size) >= 0)
		err = ALREADY_REGISTERED;
	if (!err) {
		touch(ptr, size);
		state.region[state.regions++] = (struct standin_region){
			.ptr = ptr,
			.size = size,
			.flags = flags,
			.ctx = standin_current(),
		};
		hold_page(state.region[state.regions - 1].pin, ptr);
		state.registered++;
	}
	return leave(err);
}

int cuMemHostUnregister(void *ptr)
{
	int err = standin_enter(__func__, true);
	int i = standin_find(ptr, 1);

	standin_unsafe();
	if (!err && (i < 0 || state.region[i].ptr != ptr))
		err = NOT_REGISTERED;
	if (!err) {
		/* What is unmapped before it is unregistered faults. */
		touch(ptr, state.region[i].size);
		drop_region(i);
		state.unregistered++;
	}
	return leave(err);
}

static int copy(const char *name, void *dst, const void *src, const void *host,
		size_t bytes, struct standin_stream *stream)
{
	int err = standin_enter(name, true);

	/* From where it is not pinned, it waits a little. */
	if (standin_find(host, bytes) < 0)
		standin_unsafe();
	if (!err || state.half_copies)
		standin_send(standin_real_stream(stream), dst, src,
			     err ? bytes / 2 : bytes);
	return leave(err);
}

int cuMemcpyHtoDAsync_v2(uintptr_t dst, const void *src, size_t bytes,
			 struct standin_stream *stream)
{
	return copy(__func__, (void *)dst, src, src, bytes, stream);
}

int cuMemcpyDtoHAsync_v2(void *dst, uintptr_t src, size_t bytes,
			 struct standin_stream *stream)
{
	return copy(__func__, dst, (void *)src, dst, bytes, stream);
}

/* ---- events ---- */

static struct standin_event *events;

void standin_drop_events(const struct standin_context *ctx)
{
	struct standin_event *event;

	for (event = events; event; event = event->next)
		if (event->ctx == ctx) {
			event->ctx = NULL;
			state.events--;
		}
	while (!ctx && (event = events)) {
		events = event->next;
		free(event);
	}
}

static int check(const struct standin_event *event)
{
	if (!event->ctx && state.ctx_ids)
		abort();
	return event->ctx ? 0 : INVALID_HANDLE;
}

int cuEventCreate(struct standin_event **event, unsigned int flags)
{
	int err = standin_enter(__func__, true);

	if (!err && !(flags & DISABLE_TIMING))
		err = INVALID_VALUE;
	if (!err) {
		*event = calloc(1, sizeof(**event));
		if (!*event)
			abort();
		(*event)->ctx = standin_current();
		(*event)->next = events;
		events = *event;
		state.events++;
	}
	return leave(err);
}

int cuEventRecord(struct standin_event *event, struct standin_stream *stream)
{
	int err = standin_enter(__func__, true);

	if (!err)
		err = check(event);
	if (!err && event->ctx != standin_real_stream(stream)->ctx)
		err = INVALID_HANDLE;
	if (!err) {
		event->stream = standin_real_stream(stream);
		event->at = event->stream->sent;
	}
	return leave(err);
}

int cuEventQuery(struct standin_event *event)
{
	int err = standin_enter(__func__, true);

	standin_unsafe();
	if (!err)
		err = check(event);
	if (!err && event->stream && event->stream->done < event->at)
		err = NOT_READY;
	return leave(err);
}

int cuEventSynchronize(struct standin_event *event)
{
	int err = standin_enter(__func__, true);

	standin_unsafe();
	if (!err)
		err = check(event);
	if (!err) {
		standin_wait(event->stream, event->at);
		err = state.device_error;
	}
	return leave(err);
}

int cuEventDestroy_v2(struct standin_event *event)
{
	int err = standin_enter(__func__, true);
	struct standin_event **link = &events;

	if (!err)
		err = check(event);
	/* Also when it fails because of what happened before. */
	if (event->ctx) {
		while (*link != event)
			link = &(*link)->next;
		*link = event->next;
		free(event);
		state.events--;
	}
	return leave(err);
}
