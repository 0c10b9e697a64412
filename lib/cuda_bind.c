// SPDX-License-Identifier: MIT
/* Finding the driver and the runtime; see cuda_api.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "cuda_api.h"

#define DRIVER "libcuda.so"
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

/* A search through what this process has loaded. */
struct search {
	const char *prefix;
	char path[PATH_MAX];
};

/* Wheels and conda give the files names of their own, so any ending will do. */
static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct search *search = arg;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, search->prefix, strlen(search->prefix)) ||
	    strlen(info->dlpi_name) >= sizeof(search->path))
		return 0;
	strcpy(search->path, info->dlpi_name);
	return 1;
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	(void)size;
	*(unsigned long long *)loads = info->dlpi_adds;
	return 1;
}

/*
 * A handle of the library whose name starts with @prefix, if it is loaded.
 * dlopen() by name would look through the file system for it, each time.
 */
static void *loaded(const char *prefix, unsigned long long *loads)
{
	unsigned long long now = 0;
	struct search search;

	/* Before the search, so that what is loaded meanwhile is found later. */
	dl_iterate_phdr(note_loads, &now);
	if (now == *loads)
		return NULL;
	search.prefix = prefix;
	if (dl_iterate_phdr(look_at, &search))
		return dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	*loads = now;
	return NULL;
}

int ta_cuda_bind_driver(struct ta_cuda_api *api)
{
	void *driver;
	int err;

	if (api->driver)
		return 0;
	driver = loaded(DRIVER, &api->loads);
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

int ta_cuda_bind_runtime(struct ta_cuda_api *api)
{
	unsigned long long loads = 0;
	size_t i;

	if (api->runtime)
		return 0;
	if (use_runtime(api, loaded(RUNTIME, &loads)))
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
