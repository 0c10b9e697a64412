/* SPDX-License-Identifier: MIT */
/*
 * What reader.c and its CUDA half share.
 *
 * To the engine a reader holds a publication or does not; any number of views
 * may stand on one hold.  A view that has been released while a GPU still reads
 * it stands until that is done: it has departed, and only we know of it.
 */
#ifndef TA_READER_H
#define TA_READER_H

#include <pthread.h>
#include <sys/queue.h>

#include <tensorarena.h>

#include "alive.h"
#include "cuda.h"
#include "engine.h"

/* A view as we keep it; callers see the first member. */
struct view {
	struct ta_view pub;
	struct ta_reader *reader;
	struct ta_cuda_marks marks;
	LIST_ENTRY(view) link;
};

LIST_HEAD(views, view);

/* The views on one slot: all are of the same generation. */
struct hold {
	uint64_t generation;
	uint32_t views;
};

/**
 * struct ta_reader - a reader
 * @port: its end of the arena
 * @alive: whether this is the process that attached
 * @engine: which engine the arena has
 * @id: of this attachment
 * @seat: where it sits
 * @flags: TA_*, of the arena
 * @lock: guards what follows, and is held across NEXT, BORROW and RELEASE, so
 *	that the last release of a view cannot cross with the taking of another
 *	one.  A forked child never waits for it: the thread that held it may not
 *	exist there.
 * @views: all views not yet released
 * @departed: views released whose marks have not been reached
 * @hold: one a slot
 * @cuda: pins and events
 * @helper: thread that looks after @departed while nobody calls
 * @helping: it exists
 * @leaving: it is to end
 * @work: tells it that there is something to look after
 */
struct ta_reader {
	struct ta_port *port;
	struct ta_alive alive;
	enum ta_engine_kind engine;
	uint64_t id;
	uint32_t seat;
	uint32_t flags;
	pthread_mutex_t lock;
	struct views views;
	struct views departed;
	struct hold hold[TENSORARENA_MAX_SLOTS];
	struct ta_cuda cuda;
	pthread_t helper;
	bool helping;
	bool leaving;
	pthread_cond_t work;
};

/* ---- reader.c ---- */

/* Whether the writer is, as far as can be told without waiting for it. */
bool ta_reader_gone(struct ta_reader *reader);
/*
 * Takes a view off its slot, which is released with the last; under @lock.
 * @asked: somebody waits for the result.
 */
int ta_reader_drop(struct ta_reader *reader, struct view *view, bool asked);

/* ---- reader_cuda.c ---- */

/* Drops the departed views whose time has come; under @lock, never waits. */
void ta_reader_settle(struct ta_reader *reader);
/* Pins the slot of a view just taken; under @lock. */
void ta_reader_pin(struct ta_reader *reader, const struct view *view);
/* Unregisters what is idle, because the writer asks for it; under @lock. */
void ta_reader_unpin(struct ta_reader *reader);
/* Unregisters what is idle until the budget is kept; under @lock. */
void ta_reader_keep_budget(struct ta_reader *reader);
/* Whether a released view has to stay for a while, and will; under @lock. */
bool ta_reader_defer(struct ta_reader *reader, struct view *view);
/* Waits for all streams, drops what had departed.  False: some may go on. */
bool ta_reader_drain(struct ta_reader *reader);

/* ---- reader_helper.c ---- */

/* Sees to it that the helper is awake, if it can be had; under @lock. */
void ta_helper_wake(struct ta_reader *reader);
/* Ends the helper; without @lock. */
void ta_helper_stop(struct ta_reader *reader);

#endif /* TA_READER_H */
