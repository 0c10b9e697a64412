// SPDX-License-Identifier: MIT
/* Remembering streams; see stream.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <lib/cuda_api.h>

#include "stream.h"

struct stream {
	void *handle;
	void *ctx;
	SLIST_ENTRY(stream) link;
};

/* What the library knows of CUDA, for ourselves; @lock guards it. */
static struct {
	pthread_mutex_t lock;
	struct ta_cuda_api api;
} cuda = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* NULL: none, or no CUDA. */
static void *current_context(void)
{
	void *ctx = NULL;

	pthread_mutex_lock(&cuda.lock);
	if (!ta_cuda_bind(&cuda.api))
		cuda.api.ctx_current(&ctx);
	pthread_mutex_unlock(&cuda.lock);
	return ctx;
}

int stream_add(struct streams *streams, void *handle)
{
	void *ctx = current_context();
	struct stream *stream;

	SLIST_FOREACH(stream, streams, link)
		if (stream->handle == handle && stream->ctx == ctx)
			return 0;
	stream = malloc(sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	stream->handle = handle;
	stream->ctx = ctx;
	SLIST_INSERT_HEAD(streams, stream, link);
	return 0;
}

/* ta_release_after() in the context that a stream was named in. */
static int mark(const struct stream *stream, struct ta_view *view)
{
	struct ta_cuda_scope scope;
	struct ta_cuda_api api;
	int err;

	pthread_mutex_lock(&cuda.lock);
	err = ta_cuda_bind(&cuda.api);
	api = cuda.api;
	pthread_mutex_unlock(&cuda.lock);
	if (!err)
		err = ta_cuda_enter(&api, stream->ctx, &scope);
	/* Which says nothing of the stream. */
	if (err == -EREMOTEIO)
		return -EINPROGRESS;
	if (err)
		return err;
	err = ta_release_after(view, stream->handle);
	ta_cuda_leave(&api, &scope);
	return err;
}

int stream_mark(struct streams *streams, struct ta_view *view)
{
	struct streams later = SLIST_HEAD_INITIALIZER(later);
	struct stream *stream;

	while ((stream = SLIST_FIRST(streams))) {
		SLIST_REMOVE_HEAD(streams, link);
		/*
		 * After anything else it is not needed any more: its context is
		 * gone, or ta_release_after() has waited for it, or has the view
		 * wait for all of its context.
		 */
		if (mark(stream, view) == -EINPROGRESS)
			SLIST_INSERT_HEAD(&later, stream, link);
		else
			free(stream);
	}
	*streams = later;
	return SLIST_EMPTY(streams) ? 0 : -EINPROGRESS;
}

void stream_forget(struct streams *streams)
{
	struct stream *stream;

	while ((stream = SLIST_FIRST(streams))) {
		SLIST_REMOVE_HEAD(streams, link);
		free(stream);
	}
}

void stream_reset(void)
{
	pthread_mutex_init(&cuda.lock, NULL);
}
