/* SPDX-License-Identifier: MIT */
/*
 * CUDA as the tool needs it, found when it runs: the tool is built without it
 * and does without it.
 */
#ifndef TARENA_CUDA_H
#define TARENA_CUDA_H

#include <stddef.h>

#include "complain.h"

/**
 * struct cuda - the runtime's functions, under their names without "cuda", and
 * the driver's
 */
struct cuda {
	int (*GetDeviceCount)(int *count);
	int (*SetDevice)(int device);
	int (*Malloc)(void **ptr, size_t size);
	int (*MallocHost)(void **ptr, size_t size);
	int (*StreamCreateWithFlags)(void **stream, unsigned int flags);
	int (*StreamSynchronize)(void *stream);
	int (*MemcpyAsync)(void *dst, const void *src, size_t size, int kind,
			   void *stream);
	int (*RuntimeGetVersion)(int *version);
	const char *(*GetErrorName)(int err);
};

struct cuda_driver {
	int (*Init)(unsigned int flags);
	int (*DriverGetVersion)(int *version);
	int (*DeviceGetCount)(int *count);
	int (*DeviceGet)(int *device, int ordinal);
	int (*DeviceGetName)(char *name, int size, int device);
	int (*DeviceGetAttribute)(int *value, int attribute, int device);
	int (*GetErrorName)(int err, const char **name);
};

/* What the directions are called to MemcpyAsync. */
#define CUDA_HOST_TO_DEVICE 1
#define CUDA_DEVICE_TO_HOST 2
#define CUDA_STREAM_NON_BLOCKING 1u

/* The newest runtime there is: 0, or -1 with @why. */
int cuda_load(struct cuda *cuda, struct reason *why);
/* The driver, not yet initialised. */
int cuda_driver_load(struct cuda_driver *driver, struct reason *why);

#endif /* TARENA_CUDA_H */
