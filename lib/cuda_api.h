/* SPDX-License-Identifier: MIT */
/*
 * The CUDA functions that are used, found at run time.
 *
 * All are the driver's (libcuda).  A process has one driver, whichever runtimes
 * (libcudart) it has: PyTorch's, one that is linked statically, several, none;
 * and contexts, streams and pointers are the same to all of them.  The runtime
 * would do harm.  A call of it that fails, and "not ready" is a failure, takes
 * the place of the error that the calling thread has yet to ask for with
 * cudaGetLastError(); and most of its calls create a context where there is
 * none, which takes half a gigabyte of GPU memory.
 *
 * Nothing of CUDA is needed to build or to link.
 */
#ifndef TA_CUDA_API_H
#define TA_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values as in cuda.h. */
enum ta_cu_result {
	TA_CU_SUCCESS = 0,
	TA_CU_DEINITIALIZED = 4,
	TA_CU_INVALID_CONTEXT = 201,
	TA_CU_ECC_UNCORRECTABLE = 214,
	TA_CU_NVLINK_UNCORRECTABLE = 220,
	TA_CU_CONTAINED = 226,
	TA_CU_INVALID_HANDLE = 400,
	TA_CU_NOT_READY = 600,
	TA_CU_ILLEGAL_ADDRESS = 700,
	TA_CU_LAUNCH_TIMEOUT = 702,
	TA_CU_CONTEXT_IS_DESTROYED = 709,
	TA_CU_ASSERT = 710,
	TA_CU_ALREADY_REGISTERED = 712,
	TA_CU_NOT_REGISTERED = 713,
	TA_CU_HARDWARE_STACK_ERROR = 714,
	TA_CU_ILLEGAL_INSTRUCTION = 715,
	TA_CU_MISALIGNED_ADDRESS = 716,
	TA_CU_INVALID_ADDRESS_SPACE = 717,
	TA_CU_INVALID_PC = 718,
	TA_CU_LAUNCH_FAILED = 719,
	TA_CU_TENSOR_MEMORY_LEAK = 721,
	TA_CU_MPS_CLIENT_TERMINATED = 810,
	TA_CU_CAPTURE_FIRST = 900,
	TA_CU_CAPTURE_LAST = 908,
	TA_CU_EXTERNAL_DEVICE = 911,
};

#define TA_CU_REGISTER_PORTABLE 0x01u
#define TA_CU_REGISTER_READ_ONLY 0x08u
#define TA_CU_READ_ONLY_SUPPORTED 113
#define TA_CU_EVENT_BLOCKING_SYNC 0x01u
#define TA_CU_EVENT_DISABLE_TIMING 0x02u
#define TA_CU_CAPTURE_RELAXED 2

/* Memory on a GPU: a number to the driver, a pointer to everybody else. */
typedef uintptr_t ta_cu_device_ptr;

/**
 * struct ta_cuda_api - the functions, once bound
 *
 * Names and parameters are CUDA's; handles are opaque.  @stream_id and @ctx_id are
 * NULL in drivers before 12.  @loads: how many libraries this process had ever loaded
 * when the driver was last looked for in vain.
 */
struct ta_cuda_api {
	void *driver;
	unsigned long long loads;

	int (*version)(int *version);
	int (*error_name)(int result, const char **name);
	int (*ctx_current)(void **ctx);
	int (*ctx_push)(void *ctx);
	int (*ctx_pop)(void **ctx);
	int (*ctx_device)(int *device);
	int (*ctx_sync)(void);
	int (*ctx_id)(void *ctx, unsigned long long *id);
	int (*device_count)(int *count);
	int (*device)(int *device, int ordinal);
	int (*attribute)(int *value, int attribute, int device);
	int (*primary_state)(int device, unsigned int *flags, int *active);
	int (*primary_retain)(void **ctx, int device);
	int (*primary_release)(int device);
	int (*exchange_capture_mode)(int *mode);
	int (*is_capturing)(void *stream, int *status);
	int (*stream_ctx)(void *stream, void **ctx);
	int (*stream_id)(void *stream, unsigned long long *id);
	int (*stream_sync)(void *stream);
	int (*host_register)(void *ptr, size_t size, unsigned int flags);
	int (*host_unregister)(void *ptr);
	int (*to_device)(ta_cu_device_ptr dst, const void *src, size_t bytes,
			 void *stream);
	int (*to_host)(void *dst, ta_cu_device_ptr src, size_t bytes,
		       void *stream);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_sync)(void *event);
	int (*event_destroy)(void *event);
};

/*
 * Binds the driver, if this process has it: whoever has a context does.  May be
 * repeated, and costs little once it has worked.  -ENODEV: there is none.
 */
int ta_cuda_bind(struct ta_cuda_api *api);
void ta_cuda_unbind(struct ta_cuda_api *api);

/* In place of an id that could not be had: whichever context has the handle. */
#define TA_CUDA_ANY_ID UINT64_MAX

/**
 * struct ta_cuda_scope - a context to work in
 * @pushed: it is not the one the thread had
 * @relaxed: the thread's capture mode has been changed
 * @retained: device whose primary context is kept alive meanwhile, or -1
 * @mode: the thread's capture mode outside
 * @ctx: the context
 * @id: tells it from others that had the same handle, as a primary context has
 *	after a reset; 0: not known
 * @result: what CUDA said when it could not be entered, else TA_CU_NOT_READY
 */
struct ta_cuda_scope {
	bool pushed;
	bool relaxed;
	int retained;
	int mode;
	void *ctx;
	uint64_t id;
	int result;
};

/* Whether a result of a call in a context means that it is there no more. */
bool ta_cuda_is_gone(int result);
/*
 * Whether it means that nothing which was sent there before is running, or ever
 * will: the context is gone, or the device failed in a way that ends it.  No
 * other failure means that.
 */
bool ta_cuda_is_over(int result);

/*
 * Enters @ctx or, when NULL, the thread's own, or else the primary context of
 * the first device that has one; none is made, but see cuda_scope.c for a race.
 *
 * -ENODEV: there is none.  -ESHUTDOWN: @ctx is over, as above.  -EREMOTEIO: CUDA
 * would not, which says nothing of @ctx.
 */
int ta_cuda_enter(struct ta_cuda_api *api, void *ctx,
		  struct ta_cuda_scope *scope);
/* Enters a context again; another one in its place is -ESHUTDOWN. */
int ta_cuda_enter_again(struct ta_cuda_api *api, void *ctx, uint64_t id,
			struct ta_cuda_scope *scope);
/*
 * Makes the thread's capture mode "relaxed" for the rest of the scope.  Without
 * that, queries, waiting, registering and copies of memory that is not pinned
 * would break the capture of a graph that any thread has under way.
 */
void ta_cuda_relax(const struct ta_cuda_api *api, struct ta_cuda_scope *scope);
void ta_cuda_leave(const struct ta_cuda_api *api, struct ta_cuda_scope *scope);

#endif /* TA_CUDA_API_H */
