/* SPDX-License-Identifier: MIT */
/*
 * The CUDA functions that are used, found at run time.
 *
 * Nothing of CUDA is needed to build or to link.  The runtime (libcudart) does
 * the work: the one this process has loaded already, whichever major version,
 * else the newest that can be loaded, as in a process whose own runtime is
 * linked statically.  All runtimes of a process share the driver's primary
 * contexts, so pointers, streams and events are the same to each.
 *
 * Most runtime calls create a context when there is none, which takes half a
 * gigabyte of GPU memory.  So the driver (libcuda) is asked first, by calls
 * that create nothing, and the runtime is entered only while a context is
 * current: see struct ta_cuda_scope.
 */
#ifndef TA_CUDA_API_H
#define TA_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the driver, values as in cuda.h. */
#define TA_CU_SUCCESS 0

/* Of the runtime, values as in driver_types.h. */
enum ta_cudart_error {
	TA_CUDART_SUCCESS = 0,
	TA_CUDART_UNLOADING = 4,
	TA_CUDART_NOT_READY = 600,
	TA_CUDART_ALREADY_REGISTERED = 712,
	TA_CUDART_NOT_REGISTERED = 713,
	TA_CUDART_NOT_PERMITTED = 800,
	TA_CUDART_CAPTURE_FIRST = 900,
	TA_CUDART_CAPTURE_LAST = 908,
};

#define TA_CUDART_REGISTER_PORTABLE 0x01u
#define TA_CUDART_REGISTER_READ_ONLY 0x08u
#define TA_CUDART_READ_ONLY_SUPPORTED 113
#define TA_CUDART_EVENT_BLOCKING_SYNC 0x01u
#define TA_CUDART_EVENT_DISABLE_TIMING 0x02u
#define TA_CUDART_CAPTURE_RELAXED 2

enum ta_cudart_direction {
	TA_CUDART_HOST_TO_DEVICE = 1,
	TA_CUDART_DEVICE_TO_HOST = 2,
};

/**
 * struct ta_cuda_api - the functions, once bound
 *
 * Names and parameters are CUDA's; handles are opaque.  @stream_id is NULL in
 * runtimes before 12.  @loads: how many libraries this process had ever loaded
 * when the driver was last looked for in vain.
 */
struct ta_cuda_api {
	void *driver;
	void *runtime;
	unsigned long long loads;

	int (*ctx_current)(void **ctx);
	int (*ctx_push)(void *ctx);
	int (*ctx_pop)(void **ctx);
	int (*device_count)(int *count);
	int (*device)(int *device, int ordinal);
	int (*primary_state)(int device, unsigned int *flags, int *active);
	int (*primary_retain)(void **ctx, int device);
	int (*primary_release)(int device);
	int (*stream_ctx)(void *stream, void **ctx);

	int (*version)(int *version);
	int (*last_error)(void);
	const char *(*error_name)(int err);
	int (*current_device)(int *device);
	int (*attribute)(int *value, int attribute, int device);
	int (*exchange_capture_mode)(int *mode);
	int (*is_capturing)(void *stream, int *status);
	int (*stream_id)(void *stream, unsigned long long *id);
	int (*stream_sync)(void *stream);
	int (*host_register)(void *ptr, size_t size, unsigned int flags);
	int (*host_unregister)(void *ptr);
	int (*copy)(void *dst, const void *src, size_t bytes, int direction,
		    void *stream);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_sync)(void *event);
	int (*event_destroy)(void *event);
};

/*
 * Binds the driver, if this process has it: whoever has a context does.  Then
 * the runtime, once ta_cuda_bind_runtime() is asked to.  Both may be repeated,
 * and cost little once they have worked.  -ENODEV: there is none.
 */
int ta_cuda_bind_driver(struct ta_cuda_api *api);
int ta_cuda_bind_runtime(struct ta_cuda_api *api);
void ta_cuda_unbind(struct ta_cuda_api *api);

/**
 * struct ta_cuda_scope - a context to work in
 * @pushed: it is not the one the thread had
 * @retained: device whose primary context is kept alive meanwhile, or -1
 * @mode: the thread's capture mode outside
 * @ctx: the context
 *
 * Inside, the thread's capture mode is "relaxed": a query of an event would
 * otherwise break the capture of a graph that any thread has under way.
 */
struct ta_cuda_scope {
	bool pushed;
	int retained;
	int mode;
	void *ctx;
};

/*
 * Enters @ctx or, when NULL, the thread's own, or else the primary context of
 * the first device that has one.  -ENODEV: there is no context or no runtime;
 * none is ever made.
 */
int ta_cuda_enter(struct ta_cuda_api *api, void *ctx,
		  struct ta_cuda_scope *scope);
void ta_cuda_leave(struct ta_cuda_api *api, struct ta_cuda_scope *scope);

#endif /* TA_CUDA_API_H */
