/* SPDX-License-Identifier: MIT */
/*
 * The CUDA streams that read a view, remembered until it goes.
 *
 * A stream that is NULL belongs to the device that is current in the thread
 * that names it, and the memory goes in another thread.  So what is remembered
 * is the stream with that thread's context.
 */
#ifndef TENSORARENA_STREAM_H
#define TENSORARENA_STREAM_H

#include <sys/queue.h>

#include <tensorarena.h>

SLIST_HEAD(streams, stream);

/* Adds a stream of this thread's context: 0 or -ENOMEM. */
int stream_add(struct streams *streams, void *handle);
/*
 * Marks a view with where the streams are now, and forgets them; waits for one that
 * cannot be marked.  -EINPROGRESS: one is being captured into a graph, or its context
 * cannot be entered now, and is still among them.
 */
int stream_mark(struct streams *streams, struct ta_view *view);
void stream_forget(struct streams *streams);
/* In a forked child, where another thread may have held the lock. */
void stream_reset(void);

#endif /* TENSORARENA_STREAM_H */
