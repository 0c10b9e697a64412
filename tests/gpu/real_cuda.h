/* SPDX-License-Identifier: MIT */
/*
 * A real GPU, for tests and figures.  The runtime is loaded as a program of the
 * user's would have it loaded; its headers are not needed.
 */
#ifndef TA_REAL_CUDA_H
#define TA_REAL_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum {
	H2D = 1,
	D2H = 2
};
enum {
	NOT_READY = 600
};

/* CUDA's functions, under their names without "cuda". */
struct real_cuda {
	int (*GetDeviceCount)(int *count);
	int (*SetDevice)(int device);
	int (*DeviceReset)(void);
	int (*Free)(void *ptr);
	int (*Malloc)(void **ptr, size_t size);
	int (*MallocHost)(void **ptr, size_t size);
	int (*FreeHost)(void *ptr);
	int (*Memcpy)(void *dst, const void *src, size_t size, int kind);
	int (*Memset)(void *ptr, int value, size_t size);
	int (*MemcpyAsync)(void *dst, const void *src, size_t size, int kind,
			   void *stream);
	int (*StreamCreateWithFlags)(void **stream, unsigned int flags);
	int (*StreamDestroy)(void *stream);
	int (*StreamSynchronize)(void *stream);
	int (*StreamQuery)(void *stream);
	int (*StreamWaitEvent)(void *stream, void *event, unsigned int flags);
	int (*StreamBeginCapture)(void *stream, int mode);
	int (*StreamEndCapture)(void *stream, void **graph);
	int (*LaunchHostFunc)(void *stream, void (*fn)(void *), void *arg);
	int (*EventCreateWithFlags)(void **event, unsigned int flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventQuery)(void *event);
	int (*EventSynchronize)(void *event);
	int (*GetLastError)(void);
	const char *(*GetErrorName)(int err);
	int (*RuntimeGetVersion)(int *version);
	int (*DriverGetVersion)(int *version);
};

extern struct real_cuda cu;

/* The driver's that the library calls, under their names without "cu". */
struct real_driver {
	int (*CtxGetCurrent)(void **ctx);
	int (*CtxGetId)(void *ctx, unsigned long long *id);
	int (*ThreadExchangeStreamCaptureMode)(int *mode);
	int (*StreamGetCtx)(void *stream, void **ctx);
	int (*StreamIsCapturing)(void *stream, int *status);
	int (*MemcpyHtoDAsync)(uintptr_t dst, const void *src, size_t size,
			       void *stream);
	int (*EventCreate)(void **event, unsigned int flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventQuery)(void *event);
	int (*EventDestroy)(void *event);
};

extern struct real_driver du;

/* Why there is no GPU to test on, or NULL.  Makes no context. */
const char *real_load(void);
/* GPUs there are.  Makes no context. */
int real_devices(void);
/* Contexts that this process has, as the driver knows them. */
int real_contexts(void);
/* What cudaGetDeviceProperties() calls it; at most @size bytes. */
void real_device_name(char *name, size_t size);
/*
 * Instead of all that: a context by the driver alone, as in programs whose
 * runtime is linked statically.
 */
void real_driver_context(void);
/* A kernel that traps, which is the end of this context. */
void *real_trap_load(void);
void real_trap(void *trap, void *stream);

/* Ends the program, with a line that says what and where. */
void real_die(const char *file, int line, const char *what, int err)
	__attribute__((noreturn));
#define CUDA(call)                                                             \
	do {                                                                   \
		int cuda_err_ = cu.call;                                       \
		if (cuda_err_)                                                 \
			real_die(__FILE__, __LINE__, #call, cuda_err_);        \
	} while (0)
#define OK(call)                                                               \
	do {                                                                   \
		int ok_err_ = (call);                                          \
		if (ok_err_)                                                   \
			real_die(__FILE__, __LINE__, #call, ok_err_);          \
	} while (0)
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			real_die(__FILE__, __LINE__, #condition, 0);           \
	} while (0)

/* A non-blocking stream of the current device. */
void *real_stream(void);
void *real_malloc(size_t size);
/*
 * Keeps a stream from going on until the flag is set: what is sent later waits.
 */
void real_hold(void *stream, volatile int *flag);
double real_us(void);
double real_thread_cpu_us(void);
double real_median(double *value, size_t n);
/* Prints the spread of some figures as a JSON object: p50, p90, p99, max. */
void real_print_spread(double *value, size_t n);

void real_fill(void *data, size_t nbytes, uint64_t seed);
/* Whether device memory holds what real_fill() makes. */
bool real_check(const void *device, size_t nbytes, uint64_t seed);
struct ta_writer *real_writer(uint32_t slots, size_t slot_bytes,
			      uint32_t seats);
uint32_t real_free_slots(struct ta_writer *writer);
/* Puts a pattern: what ta_put() says. */
int real_put(struct ta_writer *writer, size_t nbytes, uint64_t seed,
	     struct ta_ticket *ticket);
/* Waits until that many slots are free; false when they never are. */
bool real_await_free(struct ta_writer *writer, uint32_t slots);

#endif /* TA_REAL_CUDA_H */
