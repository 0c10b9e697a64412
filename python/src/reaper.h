/* SPDX-License-Identifier: MIT */
/*
 * What has died and waits to be given back.
 *
 * The last object that shares a slot's memory may go in any thread, with or
 * without the GIL, in the middle of a garbage collection, or while the
 * interpreter ends.  So it only puts the memory into a queue: no lock, no system
 * call but the one that wakes a sleeper.  Whoever calls next empties the queue,
 * or else the reaper, a thread that starts when the first view is made or reader
 * is dropped.
 *
 * To give back may wait for as long as the process is stopped that an arena
 * comes from.  So each end has a grave of its own, callers wait for no other
 * that is far, and while the reaper is at one, another thread of its kind looks
 * after the rest.
 */
#ifndef TENSORARENA_REAPER_H
#define TENSORARENA_REAPER_H

#include <stdbool.h>
#include <sys/queue.h>

/**
 * struct dead - to be embedded in what may die
 * @next: in a queue
 * @grave: where to
 * @bury: gives back what it held; false: not now, try again in a while.  Called
 *	without the GIL, one at a time in each grave.
 * @last: whose grave it is: comes after all others, frees the grave, and may
 *	wait, so the reaper does it if there is one
 */
struct dead {
	struct dead *next;
	struct grave *grave;
	bool (*bury)(struct dead *dead);
	bool last;
};

/**
 * struct grave - where the dead of one end go; under the reaper's lock
 * @due: what is to be buried, oldest first
 * @tail: where the next one is put
 * @later: what refused
 * @owner: whose grave this is, once that is dead
 * @near: burying here waits for no other process; for good
 * @burying: a thread is at it, without the lock
 * @listed: it has any of those
 * @left: how many but the owner have died and are not buried; atomic
 * @link: all that are listed
 */
struct grave {
	struct dead *due;
	struct dead **tail;
	struct dead *later;
	struct dead *owner;
	bool near;
	bool burying;
	bool listed;
	unsigned int left;
	TAILQ_ENTRY(grave) link;
};

void grave_init(struct grave *grave, bool near);
/* Nothing dies there any more; returns when nobody is at it. */
void grave_close(struct grave *grave);
/* How many wait there. */
unsigned int grave_left(const struct grave *grave);
/* Puts it into the queue.  Never waits. */
void reaper_push(struct dead *dead);
/*
 * Buries all that was in the queue for this grave, and for those that are near;
 * on return what was there before the call has been.  To be called without the
 * GIL.
 */
void reaper_drain(struct grave *own);
/* Whether reaper_drain() would find something to do or to wait for. */
bool reaper_is_busy(const struct grave *own);
/* Starts the reaper, if it can be had; with the GIL. */
void reaper_start(void);
bool reaper_is_running(void);
/* In a forked child: nothing is queued, and there is no reaper. */
void reaper_forget(void);

#endif /* TENSORARENA_REAPER_H */
