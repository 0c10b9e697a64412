/* SPDX-License-Identifier: MIT */
/*
 * What has died and waits to be given back.
 *
 * The last object that shares a slot's memory may go in any thread, with or
 * without the GIL, in the middle of a garbage collection, or while the
 * interpreter ends.  So it only puts the memory into a queue: no lock, no system
 * call but the one that wakes a sleeper.  Whoever calls next empties the queue,
 * or else the reaper, a thread that starts when the first view is made.
 */
#ifndef TENSORARENA_REAPER_H
#define TENSORARENA_REAPER_H

#include <stdbool.h>

/**
 * struct dead - to be embedded in what may die
 * @next: in a queue
 * @bury: gives back what it held; false: not now, try again in a while.  Called
 *	without the GIL, one at a time.
 * @last: bury after all others, and where it delays nobody, as it may wait
 */
struct dead {
	struct dead *next;
	bool (*bury)(struct dead *dead);
	bool last;
};

/* Puts it into the queue.  Never waits. */
void reaper_push(struct dead *dead);
/*
 * Buries all that is in the queue; on return what was there before the call has
 * been.  To be called without the GIL.
 */
void reaper_drain(void);
/* Whether reaper_drain() would find something to do or to wait for. */
bool reaper_is_busy(void);
/* Starts the reaper, if it can be had; with the GIL. */
void reaper_start(void);
bool reaper_is_running(void);
/* In a forked child: nothing is queued, and there is no reaper. */
void reaper_forget(void);

#endif /* TENSORARENA_REAPER_H */
