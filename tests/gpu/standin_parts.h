/* SPDX-License-Identifier: MIT */
/* What the two halves of the stand-in share. */
#ifndef TA_STANDIN_PARTS_H
#define TA_STANDIN_PARTS_H

#include <stdbool.h>
#include <stddef.h>

struct standin_op {
	void *dst;
	const void *src;
	size_t bytes;
	struct standin_op *next;
};

/* @sent, @done: how many operations. */
struct standin_stream {
	int device;
	unsigned long long id;
	bool capturing;
	bool running;
	struct standin_op *first;
	struct standin_op *last;
	unsigned long sent;
	unsigned long done;
};

void standin_lock(void);
void standin_unlock(void);
/* What follows is called under the lock. */

/* The calling thread's device, of which it gets a context if it has none. */
int standin_device(void);
int *standin_capture_mode(void);
/* A new stream, already under the lock. */
struct standin_stream *standin_new_stream(int device);
void standin_set_device(int device);
struct standin_stream *standin_real_stream(struct standin_stream *stream);
void standin_send(struct standin_stream *stream, void *dst, const void *src,
		  size_t bytes);
void standin_wait(struct standin_stream *stream, unsigned long until);

/* Real prototypes are CUDA's, whose headers need not be here. */
int cuCtxGetCurrent(void **ctx);
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPopCurrent_v2(void **ctx);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuStreamGetCtx(struct standin_stream *stream, void **ctx);

#endif /* TA_STANDIN_PARTS_H */
