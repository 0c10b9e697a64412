// SPDX-License-Identifier: MIT
/* Finding the driver; see cuda_api.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "cuda_api.h"

#define DRIVER "libcuda.so"

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

static const struct symbol symbols[] = {
	SYMBOL(version, "cuDriverGetVersion"),
	SYMBOL(error_name, "cuGetErrorName"),
	SYMBOL(ctx_current, "cuCtxGetCurrent"),
	SYMBOL(ctx_push, "cuCtxPushCurrent_v2"),
	SYMBOL(ctx_pop, "cuCtxPopCurrent_v2"),
	SYMBOL(ctx_device, "cuCtxGetDevice"),
	SYMBOL(ctx_sync, "cuCtxSynchronize"),
	OPTIONAL(ctx_id, "cuCtxGetId"),
	SYMBOL(device_count, "cuDeviceGetCount"),
	SYMBOL(device, "cuDeviceGet"),
	SYMBOL(attribute, "cuDeviceGetAttribute"),
	SYMBOL(primary_state, "cuDevicePrimaryCtxGetState"),
	SYMBOL(primary_retain, "cuDevicePrimaryCtxRetain"),
	SYMBOL(primary_release, "cuDevicePrimaryCtxRelease_v2"),
	SYMBOL(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode"),
	SYMBOL(is_capturing, "cuStreamIsCapturing"),
	SYMBOL(stream_ctx, "cuStreamGetCtx"),
	OPTIONAL(stream_id, "cuStreamGetId"),
	SYMBOL(stream_sync, "cuStreamSynchronize"),
	SYMBOL(host_register, "cuMemHostRegister_v2"),
	SYMBOL(host_unregister, "cuMemHostUnregister"),
	SYMBOL(to_device, "cuMemcpyHtoDAsync_v2"),
	SYMBOL(to_host, "cuMemcpyDtoHAsync_v2"),
	SYMBOL(event_create, "cuEventCreate"),
	SYMBOL(event_record, "cuEventRecord"),
	SYMBOL(event_query, "cuEventQuery"),
	SYMBOL(event_sync, "cuEventSynchronize"),
	SYMBOL(event_destroy, "cuEventDestroy_v2"),
};

static int find_symbols(struct ta_cuda_api *api, void *library)
{
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(library, symbols[i].name);

		if (!found && !symbols[i].optional)
			return -ENODEV;
		memcpy((char *)api + symbols[i].at, &found, sizeof(found));
	}
	return 0;
}

/* Whatever its version is, and wherever it lies. */
static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	char *path = arg;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, DRIVER, strlen(DRIVER)) ||
	    strlen(info->dlpi_name) >= PATH_MAX)
		return 0;
	strcpy(path, info->dlpi_name);
	return 1;
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	(void)size;
	*(unsigned long long *)loads = info->dlpi_adds;
	return 1;
}

/*
 * The dynamic linker's lock is not made anew in a forked child: held by another
 * thread at that moment, it would be held there for ever.  So nobody is in the
 * dynamic linker on our behalf while this process forks.
 */
static pthread_mutex_t linker_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t linker_once = PTHREAD_ONCE_INIT;

static void lock_linker(void)
{
	pthread_mutex_lock(&linker_lock);
}

static void unlock_linker(void)
{
	pthread_mutex_unlock(&linker_lock);
}

static void watch_forks(void)
{
	/* Without it a child has the small chance that it had before. */
	pthread_atfork(lock_linker, unlock_linker, unlock_linker);
}

/*
 * A handle of the driver, if it is loaded.  dlopen() by name would look through
 * the file system for it, each time.
 */
static void *find_loaded(unsigned long long *loads)
{
	unsigned long long now = 0;
	char path[PATH_MAX];

	/* Before the search, so that what is loaded meanwhile is found later. */
	dl_iterate_phdr(note_loads, &now);
	if (now == *loads)
		return NULL;
	if (dl_iterate_phdr(look_at, path))
		return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	*loads = now;
	return NULL;
}

static void *loaded(unsigned long long *loads)
{
	void *driver;

	pthread_once(&linker_once, watch_forks);
	lock_linker();
	driver = find_loaded(loads);
	unlock_linker();
	return driver;
}

int ta_cuda_bind(struct ta_cuda_api *api)
{
	void *driver;
	int err;

	if (api->driver)
		return 0;
	driver = loaded(&api->loads);
	if (!driver)
		return -ENODEV;
	err = find_symbols(api, driver);
	if (err)
		dlclose(driver);
	else
		api->driver = driver;
	return err;
}

void ta_cuda_unbind(struct ta_cuda_api *api)
{
	if (api->driver)
		dlclose(api->driver);
	memset(api, 0, sizeof(*api));
}
