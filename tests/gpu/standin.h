/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUDA's driver and runtime, where there is no GPU: two shared
 * libraries with the names of the real ones, loaded by path, so that the
 * library finds them in the process as it would find PyTorch's.  A program that
 * is not a test of the library's finds them by LD_LIBRARY_PATH; its own streams
 * run by themselves, and STANDIN_WRONG_BYTES in its environment has them copy
 * wrongly.
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
#define STANDIN_REGIONS 64

/* @pin: pipe that holds the first page, as the real thing holds them all. */
struct standin_region {
	char *ptr;
	size_t size;
	unsigned int flags;
	int pin[2];
};

/**
 * struct standin - all there is to set and to see
 * @initialised: somebody has called cuInit()
 * @active: of each device, its primary context exists
 * @retained: how often it is
 * @made: contexts that came into being by a runtime call
 * @calls: runtime calls of any kind
 * @read_only_supported: device attribute
 * @stream_ids: streams have ids, as from CUDA 12 on
 * @region: what is registered
 * @regions: how many
 * @registered, @unregistered: how often
 * @events: events in existence
 * @synced: streams and events waited for
 * @last_error: what cudaGetLastError() would say
 * @fail: name of the runtime function that fails next, or NULL
 * @fail_with: how
 * @device_error: what every later use of a device answers, 0: it works
 * @unsafe_queries: queries that would have broken a capture
 */
struct standin {
	bool initialised;
	bool active[STANDIN_DEVICES];
	int retained[STANDIN_DEVICES];
	int made;
	int calls;
	bool read_only_supported;
	bool stream_ids;
	struct standin_region region[STANDIN_REGIONS];
	int regions;
	int registered;
	int unregistered;
	int events;
	int synced;
	int last_error;
	const char *fail;
	int fail_with;
	int device_error;
	int unsafe_queries;
};

struct standin_stream;

/* All functions are in the stand-in driver, looked up by name. */
struct standin_api {
	struct standin *state;
	/* As after loading, with one device in use by the calling thread. */
	void (*reset)(bool context);
	void (*set_current)(int device);
	struct standin_stream *(*stream)(int device);
	void (*discard)(struct standin_stream *stream);
	void (*capture)(struct standin_stream *stream, bool on);
	/* Does all that was sent to the stream so far. */
	void (*complete)(struct standin_stream *stream);
	/* The stream does at once what it is sent from now on. */
	void (*run)(struct standin_stream *stream);
};

extern const struct standin_api standin_api;

#endif /* TA_STANDIN_H */
