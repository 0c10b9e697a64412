// SPDX-License-Identifier: MIT
/* Finding the driver and the runtime; see cuda_api.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "cuda_api.h"

#define DRIVER "libcuda.so.1"
#define RUNTIME "libcudart"

/* When none is loaded.  Newest first. */
static const char *const runtimes[] = {
	"libcudart.so.14", "libcudart.so.13",
	"libcudart.so.12", "libcudart.so.11.0",
	"libcudart.so",	   "/usr/local/cuda/lib64/libcudart.so",
};

struct symbol {
	const char *name;
	size_t at;
	bool optional;
};

#define SYMBOL(field, symbol)                                                  \
	{                                                                      \
		symbol, offsetof(struct ta_cuda_api, field), false             \
	}
#define OPTIONAL(field, symbol)                                                \
	{                                                                      \
		symbol, offsetof(struct ta_cuda_api, field), true              \
	}

static const struct symbol driver_symbols[] = {
	SYMBOL(ctx_current, "cuCtxGetCurrent"),
	SYMBOL(ctx_push, "cuCtxPushCurrent_v2"),
	SYMBOL(ctx_pop, "cuCtxPopCurrent_v2"),
	SYMBOL(device_count, "cuDeviceGetCount"),
	SYMBOL(device, "cuDeviceGet"),
	SYMBOL(primary_state, "cuDevicePrimaryCtxGetState"),
	SYMBOL(primary_retain, "cuDevicePrimaryCtxRetain"),
	SYMBOL(primary_release, "cuDevicePrimaryCtxRelease_v2"),
	SYMBOL(stream_ctx, "cuStreamGetCtx"),
};

static const struct symbol runtime_symbols[] = {
	SYMBOL(version, "cudaRuntimeGetVersion"),
	SYMBOL(last_error, "cudaGetLastError"),
	SYMBOL(error_name, "cudaGetErrorName"),
	SYMBOL(current_device, "cudaGetDevice"),
	SYMBOL(attribute, "cudaDeviceGetAttribute"),
	SYMBOL(exchange_capture_mode, "cudaThreadExchangeStreamCaptureMode"),
	SYMBOL(is_capturing, "cudaStreamIsCapturing"),
	OPTIONAL(stream_id, "cudaStreamGetId"),
	SYMBOL(stream_sync, "cudaStreamSynchronize"),
	SYMBOL(host_register, "cudaHostRegister"),
	SYMBOL(host_unregister, "cudaHostUnregister"),
	SYMBOL(copy, "cudaMemcpyAsync"),
	SYMBOL(event_create, "cudaEventCreateWithFlags"),
	SYMBOL(event_record, "cudaEventRecord"),
	SYMBOL(event_query, "cudaEventQuery"),
	SYMBOL(event_sync, "cudaEventSynchronize"),
	SYMBOL(event_destroy, "cudaEventDestroy"),
};

static int find_symbols(struct ta_cuda_api *api, void *library,
			const struct symbol *symbol, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		void *found = dlsym(library, symbol[i].name);

		if (!found && !symbol[i].optional)
			return -ENODEV;
		memcpy((char *)api + symbol[i].at, &found, sizeof(found));
	}
	return 0;
}

#define FIND_SYMBOLS(api, library, symbols)                                    \
	find_symbols(api, library, symbols,                                    \
		     sizeof(symbols) / sizeof((symbols)[0]))

int ta_cuda_bind_driver(struct ta_cuda_api *api)
{
	void *driver;
	int err;

	if (api->driver)
		return 0;
	driver = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
	if (!driver)
		return -ENODEV;
	err = FIND_SYMBOLS(api, driver, driver_symbols);
	if (err)
		dlclose(driver);
	else
		api->driver = driver;
	return err;
}

static bool use_runtime(struct ta_cuda_api *api, void *runtime)
{
	if (!runtime)
		return false;
	if (FIND_SYMBOLS(api, runtime, runtime_symbols)) {
		dlclose(runtime);
		return false;
	}
	api->runtime = runtime;
	return true;
}

/* Wheels and conda give the file names of their own, so any will do. */
static int look_at(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, RUNTIME, sizeof(RUNTIME) - 1) ||
	    strlen(info->dlpi_name) >= PATH_MAX)
		return 0;
	strcpy(path, info->dlpi_name);
	return 1;
}

int ta_cuda_bind_runtime(struct ta_cuda_api *api)
{
	char path[PATH_MAX];
	size_t i;

	if (api->runtime)
		return 0;
	if (dl_iterate_phdr(look_at, path) &&
	    use_runtime(api, dlopen(path, RTLD_LAZY | RTLD_NOLOAD)))
		return 0;
	for (i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (use_runtime(api, dlopen(runtimes[i], RTLD_LAZY)))
			return 0;
	return -ENODEV;
}

void ta_cuda_unbind(struct ta_cuda_api *api)
{
	if (api->runtime)
		dlclose(api->runtime);
	if (api->driver)
		dlclose(api->driver);
	memset(api, 0, sizeof(*api));
}
