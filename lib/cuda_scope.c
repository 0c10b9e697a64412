// SPDX-License-Identifier: MIT
/* Working in a context that exists, and never making one; see cuda_api.h. */
#include <errno.h>
#include <stddef.h>

#include "cuda_api.h"

/* The first device whose primary context exists; -1: none has. */
static int active_device(const struct ta_cuda_api *api)
{
	unsigned int flags;
	int device, active, count, i;

	/* It also fails when nobody has initialised the driver. */
	if (api->device_count(&count) != TA_CU_SUCCESS)
		return -1;
	for (i = 0; i < count; i++) {
		active = 0;
		if (api->device(&device, i) == TA_CU_SUCCESS &&
		    api->primary_state(device, &flags, &active) ==
			    TA_CU_SUCCESS &&
		    active)
			return device;
	}
	return -1;
}

static void *current(const struct ta_cuda_api *api)
{
	void *ctx = NULL;

	return api->ctx_current(&ctx) == TA_CU_SUCCESS ? ctx : NULL;
}

/* Makes the primary context of @device, which exists, the scope's. */
static int borrow_primary(struct ta_cuda_api *api, int device,
			  struct ta_cuda_scope *scope)
{
	if (device < 0 ||
	    api->primary_retain(&scope->ctx, device) != TA_CU_SUCCESS)
		return -ENODEV;
	scope->retained = device;
	return 0;
}

int ta_cuda_enter(struct ta_cuda_api *api, void *ctx,
		  struct ta_cuda_scope *scope)
{
	void *own;
	int err;

	err = ta_cuda_bind(api);
	if (err)
		return err;
	own = current(api);
	*scope = (struct ta_cuda_scope){
		.retained = -1,
		.mode = TA_CU_CAPTURE_RELAXED,
		.ctx = ctx ? ctx : own,
	};
	if (!scope->ctx)
		err = borrow_primary(api, active_device(api), scope);
	if (!err && scope->ctx != own) {
		scope->pushed = api->ctx_push(scope->ctx) == TA_CU_SUCCESS;
		err = scope->pushed ? 0 : -ENODEV;
	}
	if (!err) {
		api->exchange_capture_mode(&scope->mode);
		return 0;
	}
	if (scope->retained >= 0)
		api->primary_release(scope->retained);
	return err;
}

void ta_cuda_leave(struct ta_cuda_api *api, struct ta_cuda_scope *scope)
{
	void *ctx;

	api->exchange_capture_mode(&scope->mode);
	if (scope->pushed)
		api->ctx_pop(&ctx);
	if (scope->retained >= 0)
		api->primary_release(scope->retained);
}
