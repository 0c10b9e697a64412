/* SPDX-License-Identifier: MIT */
/*
 * Watches from the engine's side for the moment at which a slot is free again.
 */
#ifndef TARENA_BROADCAST_FREE_H
#define TARENA_BROADCAST_FREE_H

#include <pthread.h>
#include <stdatomic.h>

#include <tensorarena.h>

#include "complain.h"

/**
 * struct free_watch - a thread that looks every few microseconds
 * @writer: at this arena
 * @thread: the thread
 * @stop: it is to end
 * @free_ms: when no slot was published any more; 0: not yet
 */
struct free_watch {
	struct ta_writer *writer;
	pthread_t thread;
	atomic_bool stop;
	double free_ms;
};

int free_watch_start(struct free_watch *watch, struct ta_writer *writer,
		     struct reason *why);
/*
 * Returns free_ms.  Waits until all slots are free, if @wait, but not longer
 * than anybody would.
 */
double free_watch_end(struct free_watch *watch, bool wait);

#endif /* TARENA_BROADCAST_FREE_H */
