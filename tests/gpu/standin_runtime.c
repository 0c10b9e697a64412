// SPDX-License-Identifier: MIT
/* The stand-in's runtime, for programs of their own; see standin.h. */
#include <stdlib.h>

#include "standin_parts.h"

#define state (*standin_api.state)

static int leave(int err)
{
	if (err)
		state.runtime_error = err;
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
	int err = state.runtime_error;

	state.runtime_error = 0;
	return err;
}

const char *cudaGetErrorName(int err)
{
	return err ? "cudaErrorOther" : "cudaSuccess";
}

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

int cudaMalloc(void **ptr, size_t size)
{
	int err = standin_enter_runtime(__func__);

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
	int err = standin_enter_runtime(__func__);

	(void)flags;
	*stream = standin_new_stream(standin_current());
	(*stream)->running = true;
	return leave(err);
}

int cudaStreamSynchronize(struct standin_stream *stream)
{
	int err = standin_enter_runtime(__func__);

	stream = standin_real_stream(stream);
	if (!err)
		standin_wait(stream, stream->sent);
	return leave(err);
}

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int direction,
		    struct standin_stream *stream)
{
	int err = standin_enter_runtime(__func__);

	if (!err && direction != 1 && direction != 2)
		err = INVALID_VALUE;
	if (!err)
		standin_send(standin_real_stream(stream), dst, src, bytes);
	return leave(err);
}
