// SPDX-License-Identifier: MIT
/* Working in a context that exists, and never making one; see cuda_api.h. */
#include <errno.h>
#include <stddef.h>

#include "cuda_api.h"

bool ta_cuda_is_gone(int result)
{
	return result == TA_CU_DEINITIALIZED ||
	       result == TA_CU_INVALID_CONTEXT ||
	       result == TA_CU_CONTEXT_IS_DESTROYED;
}

bool ta_cuda_is_over(int result)
{
	switch (result) {
	/* After these a context can only be destroyed, or the process end. */
	case TA_CU_ECC_UNCORRECTABLE:
	case TA_CU_NVLINK_UNCORRECTABLE:
	case TA_CU_CONTAINED:
	case TA_CU_ILLEGAL_ADDRESS:
	case TA_CU_LAUNCH_TIMEOUT:
	case TA_CU_ASSERT:
	case TA_CU_HARDWARE_STACK_ERROR:
	case TA_CU_ILLEGAL_INSTRUCTION:
	case TA_CU_MISALIGNED_ADDRESS:
	case TA_CU_INVALID_ADDRESS_SPACE:
	case TA_CU_INVALID_PC:
	case TA_CU_LAUNCH_FAILED:
	case TA_CU_TENSOR_MEMORY_LEAK:
	case TA_CU_MPS_CLIENT_TERMINATED:
	case TA_CU_EXTERNAL_DEVICE:
		return true;
	default:
		return ta_cuda_is_gone(result);
	}
}

static bool is_active(const struct ta_cuda_api *api, int device)
{
	unsigned int flags;
	int active = 0;

	return api->primary_state(device, &flags, &active) == TA_CU_SUCCESS &&
	       active;
}

/* The first device whose primary context exists; -1: none has. */
static int active_device(const struct ta_cuda_api *api)
{
	int device, count, i;

	/* It also fails when nobody has initialised the driver. */
	if (api->device_count(&count) != TA_CU_SUCCESS)
		return -1;
	for (i = 0; i < count; i++)
		if (api->device(&device, i) == TA_CU_SUCCESS &&
		    is_active(api, device))
			return device;
	return -1;
}

/* The thread's context, whether it is there or not. */
static void *current(const struct ta_cuda_api *api)
{
	void *ctx = NULL;

	return api->ctx_current(&ctx) == TA_CU_SUCCESS ? ctx : NULL;
}

/*
 * Whether the thread's context is there.  After a cudaDeviceReset() threads still
 * have the primary context as their own, but nothing can be done in it until
 * somebody makes it anew.
 */
static bool is_there(const struct ta_cuda_api *api, void *own)
{
	unsigned long long id = 0;
	int result, device;
	void *event;

	result = api->ctx_id ? api->ctx_id(own, &id) : TA_CU_SUCCESS;
	if (result || id)
		return !ta_cuda_is_gone(result);
	/* A driver that knows no ids. */
	result = api->ctx_device(&device);
	if (result)
		return !ta_cuda_is_gone(result);
	if (is_active(api, device))
		return true;
	/* One of the program's own making, or a primary one that was reset. */
	result = api->event_create(&event, TA_CU_EVENT_DISABLE_TIMING);
	if (!result)
		api->event_destroy(event);
	return !ta_cuda_is_gone(result);
}

/*
 * Makes the primary context of @device, which exists, the scope's.
 *
 * Should other code destroy that context between our look and this call, and
 * nobody else use the device, this makes it anew, until the scope is left: CUDA
 * has no way to retain a context only if it is there.
 */
static int borrow_primary(struct ta_cuda_api *api, int device,
			  struct ta_cuda_scope *scope)
{
	if (device < 0 ||
	    api->primary_retain(&scope->ctx, device) != TA_CU_SUCCESS)
		return -ENODEV;
	scope->retained = device;
	return 0;
}

static int push(const struct ta_cuda_api *api, struct ta_cuda_scope *scope)
{
	scope->result = api->ctx_push(scope->ctx);
	scope->pushed = !scope->result;
	if (scope->pushed)
		return 0;
	return ta_cuda_is_over(scope->result) ? -ESHUTDOWN : -EREMOTEIO;
}

/* Which context it is; as ta_cuda_enter(). */
static int identify(const struct ta_cuda_api *api, struct ta_cuda_scope *scope)
{
	unsigned long long id = 0;
	int result;

	result = api->ctx_id ? api->ctx_id(scope->ctx, &id) : TA_CU_SUCCESS;
	scope->id = result ? TA_CUDA_ANY_ID : id;
	if (!result)
		return 0;
	scope->result = result;
	return ta_cuda_is_over(result) ? -ESHUTDOWN : -EREMOTEIO;
}

int ta_cuda_enter(struct ta_cuda_api *api, void *ctx,
		  struct ta_cuda_scope *scope)
{
	void *own;
	int err;

	*scope = (struct ta_cuda_scope){
		.retained = -1,
		.result = TA_CU_NOT_READY,
	};
	err = ta_cuda_bind(api);
	if (err)
		return err;
	own = current(api);
	scope->ctx = ctx ? ctx : own;
	if (!ctx && own && !is_there(api, own))
		scope->ctx = NULL;
	if (!scope->ctx)
		err = borrow_primary(api, active_device(api), scope);
	if (!err)
		err = identify(api, scope);
	if (!err && scope->ctx != own)
		err = push(api, scope);
	if (err && scope->retained >= 0)
		api->primary_release(scope->retained);
	return err;
}

int ta_cuda_enter_again(struct ta_cuda_api *api, void *ctx, uint64_t id,
			struct ta_cuda_scope *scope)
{
	int err = ta_cuda_enter(api, ctx, scope);

	if (err || scope->id == id || id == TA_CUDA_ANY_ID)
		return err;
	ta_cuda_leave(api, scope);
	scope->result = TA_CU_CONTEXT_IS_DESTROYED;
	return -ESHUTDOWN;
}

void ta_cuda_relax(const struct ta_cuda_api *api, struct ta_cuda_scope *scope)
{
	if (scope->relaxed)
		return;
	scope->relaxed = true;
	scope->mode = TA_CU_CAPTURE_RELAXED;
	api->exchange_capture_mode(&scope->mode);
}

void ta_cuda_leave(const struct ta_cuda_api *api, struct ta_cuda_scope *scope)
{
	void *ctx;

	if (scope->relaxed)
		api->exchange_capture_mode(&scope->mode);
	if (scope->pushed)
		api->ctx_pop(&ctx);
	if (scope->retained >= 0)
		api->primary_release(scope->retained);
}
