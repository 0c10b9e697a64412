/* SPDX-License-Identifier: MIT */
/* What the parts of the stand-in share. */
#ifndef TA_STANDIN_PARTS_H
#define TA_STANDIN_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "standin.h"

/* CUDA's numbers. */
enum {
	INVALID_VALUE = 1,
	NOT_INITIALIZED = 3,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_READY = 600,
	CONTEXT_IS_DESTROYED = 709,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
};

struct standin_op {
	void *dst;
	const void *src;
	size_t bytes;
	struct standin_op *next;
};

/* @sent, @done: how many operations. */
struct standin_stream {
	struct standin_context *ctx;
	unsigned long long id;
	bool capturing;
	bool running;
	struct standin_op *first;
	struct standin_op *last;
	unsigned long sent;
	unsigned long done;
	struct standin_stream *next;
};

/* @id: of this time that it is active.  @legacy: its default stream. */
struct standin_context {
	int device;
	bool active;
	unsigned long long id;
	struct standin_stream legacy;
};

/*
 * All are listed, those of a context that is gone (@ctx is NULL) until the next
 * test, so that a use of them is noticed.
 */
struct standin_event {
	struct standin_context *ctx;
	struct standin_stream *stream;
	unsigned long at;
	struct standin_event *next;
};

void standin_lock(void);
void standin_unlock(void);

/*
 * Starts a driver call, which standin_unlock() ends: says how the call is to
 * fail at once, or 0.  @current: it needs a context.
 */
int standin_enter(const char *name, bool current);
/* The same of a runtime call, which makes a context where there is none. */
int standin_enter_runtime(const char *name);

/* What follows is called inside. */

struct standin_context *standin_current(void);
/* A call that, outside of relaxed mode, would break a capture elsewhere. */
void standin_unsafe(void);
/* @stream, or the default one of the current context. */
struct standin_stream *standin_real_stream(struct standin_stream *stream);
struct standin_stream *standin_new_stream(struct standin_context *ctx);
void standin_send(struct standin_stream *stream, void *dst, const void *src,
		  size_t bytes);
void standin_wait(struct standin_stream *stream, unsigned long until);
/* For all that a context's streams, but the default one, have been sent. */
void standin_wait_for_all(const struct standin_context *ctx);
void standin_set_device(int device);
/* Those of a context, or, when NULL, all. */
void standin_drop_regions(const struct standin_context *ctx);
void standin_drop_events(const struct standin_context *ctx);
/* Whether any of these bytes is registered: its index, or -1. */
int standin_find(const void *ptr, size_t size);

int *standin_capture_mode(void);

#endif /* TA_STANDIN_PARTS_H */
