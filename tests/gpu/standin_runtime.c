// SPDX-License-Identifier: MIT
/* The stand-in's runtime half; see standin.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "standin.h"
#include "standin_parts.h"

enum {
	INVALID_VALUE = 1,
	CAPTURE_UNSUPPORTED = 900,
	NOT_READY = 600,
	INVALID_HANDLE = 400,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	RELAXED = 2,
	READ_ONLY = 0x08,
	READ_ONLY_SUPPORTED = 113,
};

struct standin_event {
	int device;
	struct standin_stream *stream;
	unsigned long at;
};

#define state (*standin_api.state)

/*
 * Starts a runtime call: takes the lock, sees to the context, and says whether
 * the call is to fail at once.
 */
static int enter(const char *name)
{
	int err = state.device_error;

	standin_lock();
	state.calls++;
	standin_device();
	if (state.fail && !strcmp(state.fail, name)) {
		state.fail = NULL;
		err = state.fail_with;
	}
	return err;
}

static int leave(int err)
{
	if (err)
		state.last_error = err;
	standin_unlock();
	return err;
}

int cudaRuntimeGetVersion(int *version)
{
	*version = 13099;
	return 0;
}

int cudaGetLastError(void)
{
	int err = state.last_error;

	state.last_error = 0;
	return err;
}

const char *cudaGetErrorName(int err)
{
	switch (err) {
	case INVALID_VALUE:
		return "cudaErrorInvalidValue";
	case 700:
		return "cudaErrorIllegalAddress";
	default:
		return "cudaErrorOther";
	}
}

int cudaGetDevice(int *device)
{
	int err = enter(__func__);

	*device = standin_device();
	return leave(err);
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	int err = enter(__func__);

	*value = attribute == READ_ONLY_SUPPORTED && device >= 0 &&
		 state.read_only_supported;
	return leave(err);
}

int cudaThreadExchangeStreamCaptureMode(int *mode)
{
	int before = *standin_capture_mode();

	*standin_capture_mode() = *mode;
	*mode = before;
	return 0;
}

int cudaStreamIsCapturing(struct standin_stream *stream, int *status)
{
	int err = enter(__func__);

	*status = standin_real_stream(stream)->capturing;
	return leave(err);
}

int cudaStreamGetId(struct standin_stream *stream, unsigned long long *id)
{
	int err = enter(__func__);

	*id = standin_real_stream(stream)->id;
	if (!err && !state.stream_ids)
		err = INVALID_VALUE;
	return leave(err);
}

int cudaStreamSynchronize(struct standin_stream *stream)
{
	int err = enter(__func__);

	stream = standin_real_stream(stream);
	if (!err)
		standin_wait(stream, stream->sent);
	return leave(err);
}

static int find(const char *ptr, size_t size)
{
	int i;

	for (i = 0; i < state.regions; i++)
		if (ptr < state.region[i].ptr + state.region[i].size &&
		    state.region[i].ptr < ptr + size)
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

int cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	int err = enter(__func__);

	if (!err && find(ptr, size) >= 0)
		err = ALREADY_REGISTERED;
	if (!err) {
		touch(ptr, size);
		state.region[state.regions++] = (struct standin_region){
			.ptr = ptr,
			.size = size,
			.flags = flags,
		};
		hold_page(state.region[state.regions - 1].pin, ptr);
		state.registered++;
	}
	return leave(err);
}

int cudaHostUnregister(void *ptr)
{
	int err = enter(__func__);
	int i = find(ptr, 1);

	if (!err && (i < 0 || state.region[i].ptr != ptr))
		err = NOT_REGISTERED;
	if (!err) {
		/* What is unmapped before it is unregistered faults. */
		touch(ptr, state.region[i].size);
		let_page_go(state.region[i].pin);
		state.region[i] = state.region[--state.regions];
		state.unregistered++;
	}
	return leave(err);
}

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int direction,
		    struct standin_stream *stream)
{
	int err = enter(__func__);

	if (!err && direction != 1 && direction != 2)
		err = INVALID_VALUE;
	if (!err)
		standin_send(standin_real_stream(stream), dst, src, bytes);
	return leave(err);
}

int cudaEventCreateWithFlags(struct standin_event **event, unsigned int flags)
{
	int err = enter(__func__);

	if (!err && !(flags & 2))
		err = INVALID_VALUE;
	*event = err ? NULL : calloc(1, sizeof(**event));
	if (*event) {
		(*event)->device = standin_device();
		state.events++;
	}
	return leave(err);
}

int cudaEventRecord(struct standin_event *event, struct standin_stream *stream)
{
	int err = enter(__func__);

	stream = standin_real_stream(stream);
	if (!err && event->device != stream->device)
		err = INVALID_HANDLE;
	if (!err) {
		event->stream = stream;
		event->at = stream->sent;
	}
	return leave(err);
}

int cudaEventQuery(struct standin_event *event)
{
	int err = enter(__func__);

	if (*standin_capture_mode() != RELAXED)
		state.unsafe_queries++;
	if (!err && event->stream->done < event->at)
		err = NOT_READY;
	return leave(err);
}

int cudaEventSynchronize(struct standin_event *event)
{
	int err = enter(__func__);

	if (!err)
		standin_wait(event->stream, event->at);
	return leave(err ? err : state.device_error);
}

int cudaEventDestroy(struct standin_event *event)
{
	int err = enter(__func__);

	free(event);
	state.events--;
	return leave(err);
}

/* ---- for programs of their own ---- */

int cudaGetDeviceCount(int *count)
{
	*count = STANDIN_DEVICES;
	return 0;
}

int cudaSetDevice(int device)
{
	standin_lock();
	standin_set_device(device);
	standin_unlock();
	return 0;
}

int cudaMalloc(void **ptr, size_t size);
int cudaMalloc(void **ptr, size_t size)
{
	int err = enter(__func__);

	*ptr = calloc(1, size);
	return leave(*ptr ? err : 2);
}

int cudaMallocHost(void **ptr, size_t size)
{
	return cudaMalloc(ptr, size);
}

int cudaStreamCreateWithFlags(struct standin_stream **stream,
			      unsigned int flags)
{
	int err = enter(__func__);

	(void)flags;
	*stream = standin_new_stream(standin_device());
	(*stream)->running = true;
	return leave(err);
}
