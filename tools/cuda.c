// SPDX-License-Identifier: MIT
/* Finding CUDA; see cuda.h. */
#include <dlfcn.h>
#include <string.h>

#include "cuda.h"

/* Newest first. */
static const char *const runtimes[] = {
	"libcudart.so.14", "libcudart.so.13",
	"libcudart.so.12", "libcudart.so.11.0",
	"libcudart.so",	   "/usr/local/cuda/lib64/libcudart.so",
};

static int find(void *library, const char *name, void *at, struct reason *why)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		return reason_set(why, "this CUDA has no %s", name);
	memcpy(at, &symbol, sizeof(symbol));
	return 0;
}

#define RUNTIME(name) find(runtime, "cuda" #name, &cuda->name, why)
#define DRIVER(name) find(library, "cu" #name, &driver->name, why)

int cuda_load(struct cuda *cuda, struct reason *why)
{
	void *runtime = NULL;
	size_t i;

	for (i = 0; i < sizeof(runtimes) / sizeof(*runtimes) && !runtime; i++)
		runtime = dlopen(runtimes[i], RTLD_LAZY);
	if (!runtime)
		return reason_set(why, "no CUDA runtime (libcudart.so) can be "
				       "loaded");
	if (RUNTIME(GetDeviceCount) || RUNTIME(SetDevice) || RUNTIME(Malloc) ||
	    RUNTIME(MallocHost) || RUNTIME(StreamCreateWithFlags) ||
	    RUNTIME(StreamSynchronize) || RUNTIME(MemcpyAsync) ||
	    RUNTIME(RuntimeGetVersion) || RUNTIME(GetErrorName))
		return -1;
	return 0;
}

int cuda_driver_load(struct cuda_driver *driver, struct reason *why)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY);

	if (!library)
		return reason_set(why, "no NVIDIA driver (libcuda.so.1) can be "
				       "loaded");
	if (DRIVER(Init) || DRIVER(DriverGetVersion) ||
	    DRIVER(DeviceGetCount) || DRIVER(DeviceGet) ||
	    DRIVER(DeviceGetName) || DRIVER(DeviceGetAttribute) ||
	    DRIVER(GetErrorName))
		return -1;
	return 0;
}
