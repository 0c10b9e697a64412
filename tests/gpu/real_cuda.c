// SPDX-License-Identifier: MIT
/* See real_cuda.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real_cuda.h"

#define NON_BLOCKING 1
#define HANG_US 30e6

struct real_cuda cu;
struct real_driver du;

static const char *const runtimes[] = {
	"libcudart.so.13",
	"libcudart.so.12",
	"libcudart.so.11.0",
	"/usr/local/cuda/lib64/libcudart.so",
};

static struct {
	int (*Init)(unsigned int flags);
	int (*DeviceGet)(int *device, int ordinal);
	int (*DeviceGetName)(char *name, int size, int device);
	int (*PrimaryState)(int device, unsigned int *flags, int *active);
	int (*PrimaryRetain)(void **ctx, int device);
	int (*SetCurrent)(void *ctx);
	int (*ModuleLoadData)(void **module, const void *image);
	int (*ModuleGetFunction)(void **function, void *module,
				 const char *name);
	int (*LaunchKernel)(void *function, unsigned int gx, unsigned int gy,
			    unsigned int gz, unsigned int bx, unsigned int by,
			    unsigned int bz, unsigned int shared, void *stream,
			    void **params, void **extra);
} driver;

static const char trap_kernel[] = ".version 7.0\n"
				  ".target sm_52\n"
				  ".address_size 64\n"
				  ".visible .entry ta_trap() { trap; ret; }\n";

static bool find(void *library, const char *name, void *at)
{
	void *symbol = dlsym(library, name);

	memcpy(at, &symbol, sizeof(symbol));
	return symbol;
}

#define RUNTIME(name) find(runtime, "cuda" #name, &cu.name)

static bool load_runtime(void *runtime)
{
	return RUNTIME(GetDeviceCount) && RUNTIME(SetDevice) &&
	       RUNTIME(DeviceReset) && RUNTIME(Free) && RUNTIME(Malloc) &&
	       RUNTIME(MallocHost) && RUNTIME(FreeHost) && RUNTIME(Memcpy) &&
	       RUNTIME(Memset) && RUNTIME(MemcpyAsync) &&
	       RUNTIME(StreamCreateWithFlags) && RUNTIME(StreamDestroy) &&
	       RUNTIME(StreamSynchronize) && RUNTIME(StreamQuery) &&
	       RUNTIME(StreamWaitEvent) && RUNTIME(StreamBeginCapture) &&
	       RUNTIME(StreamEndCapture) && RUNTIME(LaunchHostFunc) &&
	       RUNTIME(EventCreateWithFlags) && RUNTIME(EventRecord) &&
	       RUNTIME(EventQuery) && RUNTIME(EventSynchronize) &&
	       RUNTIME(GetLastError) && RUNTIME(GetErrorName) &&
	       RUNTIME(RuntimeGetVersion) && RUNTIME(DriverGetVersion);
}

static bool load_calls(void *lib)
{
	return find(lib, "cuCtxGetCurrent", &du.CtxGetCurrent) &&
	       find(lib, "cuCtxGetId", &du.CtxGetId) &&
	       find(lib, "cuThreadExchangeStreamCaptureMode",
		    &du.ThreadExchangeStreamCaptureMode) &&
	       find(lib, "cuStreamGetCtx", &du.StreamGetCtx) &&
	       find(lib, "cuStreamIsCapturing", &du.StreamIsCapturing) &&
	       find(lib, "cuMemcpyHtoDAsync_v2", &du.MemcpyHtoDAsync) &&
	       find(lib, "cuEventCreate", &du.EventCreate) &&
	       find(lib, "cuEventRecord", &du.EventRecord) &&
	       find(lib, "cuEventQuery", &du.EventQuery) &&
	       find(lib, "cuEventDestroy_v2", &du.EventDestroy);
}

static bool load_driver(void *lib)
{
	return load_calls(lib) && find(lib, "cuInit", &driver.Init) &&
	       find(lib, "cuDeviceGet", &driver.DeviceGet) &&
	       find(lib, "cuDeviceGetName", &driver.DeviceGetName) &&
	       find(lib, "cuDevicePrimaryCtxGetState", &driver.PrimaryState) &&
	       find(lib, "cuDevicePrimaryCtxRetain", &driver.PrimaryRetain) &&
	       find(lib, "cuCtxSetCurrent", &driver.SetCurrent) &&
	       find(lib, "cuModuleLoadData", &driver.ModuleLoadData) &&
	       find(lib, "cuModuleGetFunction", &driver.ModuleGetFunction) &&
	       find(lib, "cuLaunchKernel", &driver.LaunchKernel);
}

const char *real_load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	void *runtime = NULL;
	size_t i;

	if (!lib)
		return "no NVIDIA driver (libcuda.so.1)";
	for (i = 0; i < sizeof(runtimes) / sizeof(*runtimes) && !runtime; i++)
		runtime = dlopen(runtimes[i], RTLD_NOW);
	if (!runtime)
		return "no CUDA runtime (libcudart.so)";
	if (!load_driver(lib) || !load_runtime(runtime))
		return "a CUDA too old for these tests";
	if (driver.Init(0) || real_devices() < 1)
		return "no GPU";
	return NULL;
}

int real_devices(void)
{
	int count = 0;

	return cu.GetDeviceCount(&count) ? 0 : count;
}

int real_contexts(void)
{
	int i, n = 0;

	for (i = 0; i < real_devices(); i++) {
		unsigned int flags;
		int device, active = 0;

		MUST(!driver.DeviceGet(&device, i));
		MUST(!driver.PrimaryState(device, &flags, &active));
		n += active;
	}
	return n;
}

void real_device_name(char *name, size_t size)
{
	int device;

	MUST(!driver.DeviceGet(&device, 0));
	MUST(!driver.DeviceGetName(name, (int)size, device));
}

void real_driver_context(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	void *ctx;
	int device;

	MUST(lib && load_driver(lib));
	MUST(!driver.Init(0) && !driver.DeviceGet(&device, 0));
	MUST(!driver.PrimaryRetain(&ctx, device) && !driver.SetCurrent(ctx));
}

/* Loading may wait for all streams, so it comes before anything is held. */
void *real_trap_load(void)
{
	void *module, *function;

	MUST(!driver.ModuleLoadData(&module, trap_kernel));
	MUST(!driver.ModuleGetFunction(&function, module, "ta_trap"));
	return function;
}

void real_trap(void *trap, void *stream)
{
	MUST(!driver.LaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
				  NULL));
}

void real_die(const char *file, int line, const char *what, int err)
{
	printf("# %s:%d: %s: %d%s%s\n", file, line, what, err, err ? ", " : "",
	       err < 0			  ? ta_strerror(err) :
	       err > 0 && cu.GetErrorName ? cu.GetErrorName(err) :
					    "");
	fflush(stdout);
	_exit(1);
}

void *real_stream(void)
{
	void *stream;

	CUDA(StreamCreateWithFlags(&stream, NON_BLOCKING));
	return stream;
}

void *real_malloc(size_t size)
{
	void *ptr;

	CUDA(Malloc(&ptr, size));
	CUDA(Memset(ptr, 0, size));
	return ptr;
}

static void wait_for_flag(void *flag)
{
	const struct timespec moment = { 0, 20000 };

	while (!*(volatile int *)flag)
		nanosleep(&moment, NULL);
}

void real_hold(void *stream, volatile int *flag)
{
	CUDA(LaunchHostFunc(stream, wait_for_flag, (void *)flag));
}

static double us_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

double real_us(void)
{
	return us_of(CLOCK_MONOTONIC);
}

double real_thread_cpu_us(void)
{
	return us_of(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double real_median(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), compare);
	return value[n / 2];
}

void real_print_spread(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), compare);
	printf("{\"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"max\": "
	       "%.1f}",
	       value[n / 2], value[n * 90 / 100], value[n * 99 / 100],
	       value[n - 1]);
}

/* ---- bytes and arenas ---- */

static uint64_t word_of(uint64_t seed, size_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + i;

	x ^= x >> 31;
	return x * 0xbf58476d1ce4e5b9u;
}

/* Whole words; what is left is zero. */
void real_fill(void *data, size_t nbytes, uint64_t seed)
{
	uint64_t *word = data;
	size_t i;

	memset((char *)data + nbytes / 8 * 8, 0, nbytes % 8);
	for (i = 0; i < nbytes / 8; i++)
		word[i] = word_of(seed, i);
}

bool real_check(const void *device, size_t nbytes, uint64_t seed)
{
	uint64_t *host = malloc(nbytes + 8);
	bool good = true;
	size_t i;

	MUST(host);
	CUDA(Memcpy(host, device, nbytes, D2H));
	for (i = 0; i < nbytes / 8 && good; i++)
		good = host[i] == word_of(seed, i);
	free(host);
	return good;
}

struct ta_writer *real_writer(uint32_t slots, size_t slot_bytes, uint32_t seats)
{
	struct ta_writer *writer;
	struct ta_options o;
	char why[256];
	int err;

	ta_options_init(&o);
	o.slots = slots;
	o.slot_bytes = slot_bytes;
	o.seats = seats;
	o.flags = TA_NO_MEMORY_CHECK;
	err = ta_create(&o, &writer, why, sizeof(why));
	if (err)
		real_die(__FILE__, __LINE__, why, err);
	return writer;
}

uint32_t real_free_slots(struct ta_writer *writer)
{
	struct ta_stats stats;

	OK(ta_stats(writer, &stats, NULL, 0));
	return stats.free;
}

int real_put(struct ta_writer *writer, size_t nbytes, uint64_t seed,
	     struct ta_ticket *ticket)
{
	struct ta_loan *loan;
	int err;

	err = ta_loan(writer, nbytes, &loan);
	if (err)
		return err;
	real_fill(loan->data, nbytes, seed);
	return ta_commit(loan, nbytes, NULL, ticket);
}

bool real_await_free(struct ta_writer *writer, uint32_t slots)
{
	const struct timespec moment = { 0, 50000 };
	double start = real_us();

	while (real_free_slots(writer) < slots) {
		if (real_us() - start > HANG_US)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}
