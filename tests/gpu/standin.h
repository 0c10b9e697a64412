/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUDA's driver and runtime, where there is no GPU: two shared
 * libraries with the names of the real ones.  Tests load the driver by path, so
 * that the library finds it in the process as it would find the real one.  A
 * program that is not a test of the library's finds both by LD_LIBRARY_PATH; its
 * own streams run by themselves, and STANDIN_WRONG_BYTES in its environment has
 * them copy wrongly.
 *
 * Streams do nothing until the test says so.  Then they do what was sent to
 * them, copies included, in order; so a slot that is used again too early shows
 * as wrong bytes.  A runtime call in a thread without a context makes one, as
 * in the real thing, and that is counted.
 */
#ifndef TA_STANDIN_H
#define TA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_DEVICES 2
/* Stands for a device: a context of device 0 that is not the primary one. */
#define STANDIN_OWN_CONTEXT STANDIN_DEVICES
#define STANDIN_REGIONS 64

struct standin_context;
struct standin_stream;

/* @pin: pipe that holds the first page, as the real thing holds them all. */
struct standin_region {
	char *ptr;
	size_t size;
	unsigned int flags;
	const struct standin_context *ctx;
	int pin[2];
};

/* tests/python/stream_test.py describes what follows once more. */
/**
 * struct standin - all there is to set and to see
 * @initialised: somebody has called cuInit()
 * @retained: of each device, how often its primary context is
 * @made: contexts that came into being without having been asked for
 * @driver_calls: most calls of the driver
 * @calls: runtime calls of any kind
 * @runtime_error: what cudaGetLastError() would say
 * @read_only_supported: device attribute
 * @stream_ids: streams have ids, as from CUDA 12 on
 * @ctx_ids: contexts have, else all are 0.  Then a use of an event whose context
 *	is gone is fatal, as it is in the real thing
 * @region: what is registered
 * @regions: how many
 * @registered, @unregistered: how often
 * @events: events in existence
 * @synced: streams and events waited for
 * @fail: name of the function that fails next, or NULL
 * @fail_with: how
 * @fail_always: it fails ever after
 * @dead_push: what pushing a context that is gone answers, 0: it works
 * @refuse: what all calls of the driver answer, 0: they work
 * @sync_fails: what the next cuStreamSynchronize() answers, 0: it works
 * @half_copies: a copy that is to fail has been sent by half
 * @device_error: what every later use of a device answers, 0: it works
 * @unsafe: calls that would have broken a capture under way elsewhere
 */
struct standin {
	bool initialised;
	int retained[STANDIN_DEVICES];
	int made;
	int driver_calls;
	int calls;
	int runtime_error;
	bool read_only_supported;
	bool stream_ids;
	bool ctx_ids;
	struct standin_region region[STANDIN_REGIONS];
	int regions;
	int registered;
	int unregistered;
	int events;
	int synced;
	const char *fail;
	int fail_with;
	bool fail_always;
	int dead_push;
	int refuse;
	int sync_fails;
	bool half_copies;
	int device_error;
	int unsafe;
};

/* All functions are in the stand-in driver, looked up by name. */
struct standin_api {
	struct standin *state;
	/* As after loading, with one device in use by the calling thread. */
	void (*reset)(bool context);
	/* The thread's current context, -1: none. */
	void (*set_current)(int device);
	struct standin_stream *(*stream)(int device);
	void (*discard)(struct standin_stream *stream);
	void (*capture)(struct standin_stream *stream, bool on);
	/* Does all that was sent to the stream so far. */
	void (*complete)(struct standin_stream *stream);
	/* The stream does at once what it is sent from now on; and not. */
	void (*run)(struct standin_stream *stream);
	void (*hold)(struct standin_stream *stream);
	/*
	 * As cudaDeviceReset(): the primary context goes, with what belongs to it,
	 * and stays the current one of threads.  Make new streams afterwards.
	 */
	void (*device_reset)(int device);
	/* As at the end of the process: nothing is registered any more. */
	void (*forget_regions)(void);
};

extern const struct standin_api standin_api;

#endif /* TA_STANDIN_H */
