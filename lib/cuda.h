/* SPDX-License-Identifier: MIT */
/*
 * What an end of an arena, reader or writer, does with CUDA: it pins slots, and
 * knows when what the GPU does with them is done.
 *
 * There may be no CUDA.  Then every function here does nothing, quickly.
 *
 * Locking: the caller's lock guards a struct ta_cuda, in every function but
 * those that say otherwise.
 */
#ifndef TA_CUDA_H
#define TA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

#include "cuda_api.h"

/**
 * struct ta_cuda_event - a CUDA event, pooled
 * @event: CUDA's handle.  NULL in a mark that stands for all that the context
 *	has been sent, because the end of some work could not be marked
 * @ctx, @ctx_id: the context it belongs to.  The driver may crash when an event
 *	is used whose context is gone, so the id is compared before
 * @stream: id of the stream it was last recorded in, 0: unknown
 * @known: what waiting has shown; TA_CU_NOT_READY: nothing, so CUDA is asked
 * @told: the last answer of CUDA's that was told as an error
 * @link: in a pool or in marks
 */
struct ta_cuda_event {
	void *event;
	void *ctx;
	uint64_t ctx_id;
	uint64_t stream;
	int known;
	int told;
	LIST_ENTRY(ta_cuda_event) link;
};

LIST_HEAD(ta_cuda_events, ta_cuda_event);

/**
 * struct ta_cuda_marks - points in streams that must have been reached before a
 *	slot may go
 * @events: where streams have ids at most one a stream, of which the last
 *	counts, and one more
 * @failed: one never will be, because the device failed or the context is gone:
 *	what copies there have done cannot be known
 * @lost: nor of some other work, which may be running, and of whose end nothing
 *	will tell
 */
struct ta_cuda_marks {
	struct ta_cuda_events events;
	bool failed;
	bool lost;
};

/**
 * struct ta_cuda_pin - a slot's registration
 * @state: enum ta_pin_state
 * @bytes: registered, or, when that failed, tried
 * @ns: how long it took
 * @ctx, @ctx_id: where it was made
 * @used: when it was last asked for, in tens of this end's views
 */
struct ta_cuda_pin {
	uint32_t state;
	uint64_t bytes;
	uint64_t ns;
	void *ctx;
	uint64_t ctx_id;
	uint64_t used;
};

/**
 * struct ta_cuda - an end's dealings with CUDA
 * @api: the functions
 * @base: where slot 0 is mapped
 * @stride: distance of slots
 * @slots: how many
 * @read_only: the mapping is
 * @clock: counts the requests for pins, to find the least recently used
 * @pool: events not in use
 * @pin: one a slot
 * @stats: kept up to date but for what is counted on asking
 */
struct ta_cuda {
	struct ta_cuda_api api;
	uint8_t *base;
	uint64_t stride;
	uint32_t slots;
	bool read_only;
	uint64_t clock;
	struct ta_cuda_events pool;
	struct ta_cuda_pin pin[TENSORARENA_MAX_SLOTS];
	struct ta_cuda_stats stats;
};

enum ta_cuda_direction {
	TA_CUDA_TO_DEVICE,
	TA_CUDA_TO_HOST,
};

/**
 * struct ta_cuda_work - what is being sent to a stream
 * @failed: what this could not begin for, 0: it could
 * @scope: the stream's context
 * @entered: it has been
 * @stream: CUDA's handle
 * @event: marks the end
 * @fresh: the event is not among the marks yet
 * @copied: bytes of the copy that was sent
 * @copies: whether there was one
 * @err: of the CUDA call that failed
 * @call: its name
 * @lost: and what had been sent before may still be running
 * @stale: the context has come into being anew since the event was made
 */
struct ta_cuda_work {
	int failed;
	struct ta_cuda_scope scope;
	bool entered;
	void *stream;
	struct ta_cuda_event *event;
	bool fresh;
	bool copies;
	size_t copied;
	int err;
	const char *call;
	bool lost;
	bool stale;
};

/**
 * struct ta_cuda_look - a look at marks
 * @scope: the context of the last one, if @entered
 *
 * Of many marks in one context a look enters it only once.  Begin with zeros; it
 * is one thread's, within one hold of the lock.
 */
struct ta_cuda_look {
	struct ta_cuda_scope scope;
	bool entered;
};

/* ---- cuda.c ---- */

void ta_cuda_init(struct ta_cuda *cuda, uint8_t *base, uint64_t stride,
		  uint32_t slots, bool read_only);
/* Unregisters everything.  @forked: touches nothing of CUDA. */
void ta_cuda_destroy(struct ta_cuda *cuda, bool forked);
/* Notes a CUDA error under the name of the call: -EREMOTEIO. */
int ta_cuda_failed(struct ta_cuda *cuda, const char *call, int err);
/* Fills in what an end tells of itself; up to @nr rows. */
void ta_cuda_report(const struct ta_cuda *cuda, struct ta_cuda_stats *stats,
		    struct ta_cuda_slot *rows, uint32_t nr);

/* ---- cuda_pin.c ---- */

/* Whether the caller can do without a slot's registration for now. */
typedef bool ta_cuda_idle(const void *owner, uint32_t slot);

/*
 * Registers a slot, if there is a context, so that at least its first @nbytes
 * are; makes room in the budget by unregistering idle slots.  What does not
 * work is counted and leaves the slot unpinned, where copies are slower.  The
 * slot's own registration must not be in use when it has to grow.
 */
void ta_cuda_pin(struct ta_cuda *cuda, uint32_t slot, uint64_t nbytes,
		 ta_cuda_idle *idle, const void *owner);
/* The same for a copy that is about to be sent. */
void ta_cuda_pin_for(struct ta_cuda *cuda, struct ta_cuda_work *work,
		     uint32_t slot, uint64_t nbytes, ta_cuda_idle *idle,
		     const void *owner);
/*
 * The same for every slot that has memory, as far as the budget goes; returns how
 * many are pinned.
 */
uint32_t ta_cuda_pin_all(struct ta_cuda *cuda, ta_cuda_idle *idle,
			 const void *owner);
void ta_cuda_unpin(struct ta_cuda *cuda, uint32_t slot);
/* Leaves a slot registered, its pages held, for as long as the context lasts. */
void ta_cuda_leave_pinned(struct ta_cuda *cuda, uint32_t slot);
/* Unregisters what was registered in a context that has gone since. */
void ta_cuda_unpin_lost(struct ta_cuda *cuda, const void *ctx, uint64_t ctx_id);
/* Unregisters idle slots until at most @keep bytes are registered. */
void ta_cuda_unpin_idle(struct ta_cuda *cuda, uint64_t keep, ta_cuda_idle *idle,
			const void *owner);

/* ---- cuda_stream.c ---- */

/*
 * Prepares to send work to a stream.  -EINPROGRESS: the stream is being captured
 * into a graph.  -ENODEV.  -EREMOTEIO: the context is over, and with it what was
 * sent there.  With any other failure the stream may be busy with work that
 * nothing marks: then this is 0, ta_cuda_send() waits for the stream instead, and
 * ta_cuda_finish() tells of the failure.
 */
int ta_cuda_begin(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		  void *stream, struct ta_cuda_work *work);
/*
 * Sends a copy, unless @dst or @src is NULL, and records the end of all that the
 * stream has been sent.  When that fails, or beginning has, waits for the stream.
 * Without the lock: all take their time, and so does a copy from a slot that is
 * not pinned.  How it went is for ta_cuda_finish().
 */
void ta_cuda_send(const struct ta_cuda *cuda, struct ta_cuda_work *work,
		  void *dst, const void *src, size_t bytes,
		  enum ta_cuda_direction direction);
/*
 * Adds the end to @marks, or, when the work failed, gives up.  Returns what the
 * caller should.
 */
int ta_cuda_finish(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		   struct ta_cuda_work *work);

/* ---- cuda_event.c ---- */

/*
 * Adds a mark for all that a context has been sent.  NULL: it is not known which
 * context.  Where there is no memory, the marks are lost.
 */
void ta_cuda_mark_all(struct ta_cuda_marks *marks, void *ctx, uint64_t ctx_id);
/* Whether there is anything to be reached. */
bool ta_cuda_is_marked(const struct ta_cuda_marks *marks);
/* An event of the context that is entered: -ENOMEM, -EREMOTEIO. */
int ta_cuda_get_event(struct ta_cuda *cuda, const struct ta_cuda_scope *scope,
		      struct ta_cuda_event **event);
/*
 * Replaces an event of the pool, which went with its context, by one of the
 * context that there is now: 0 or CUDA's result.  Without the lock.
 */
int ta_cuda_renew_event(const struct ta_cuda *cuda,
			struct ta_cuda_event *event);
/* Forgets what had been made in a context that has gone. */
void ta_cuda_forget(struct ta_cuda *cuda, void *ctx, uint64_t ctx_id);
/* Destroys an event that is in no list. */
void ta_cuda_drop_event(struct ta_cuda *cuda, struct ta_cuda_event *event);
/* Has an event stand for all that its context has been sent. */
void ta_cuda_widen_event(struct ta_cuda *cuda, struct ta_cuda_event *event);
/* Destroys all in a list.  @forked: touches nothing of CUDA. */
void ta_cuda_drop_events(struct ta_cuda *cuda, struct ta_cuda_events *events,
			 bool forked);

/*
 * Whether all marks have been reached; those that have are taken away.  Never
 * waits.  A mark that is known never to be reached, because the device failed or
 * the context is gone, counts: the copies have ended.  No other answer does.
 */
bool ta_cuda_reached(struct ta_cuda *cuda, struct ta_cuda_look *look,
		     struct ta_cuda_marks *marks);
void ta_cuda_look_end(const struct ta_cuda *cuda, struct ta_cuda_look *look);
/* The same for marks that are looked at alone. */
bool ta_cuda_reached_alone(struct ta_cuda *cuda, struct ta_cuda_marks *marks);
/*
 * Waits for all marks, as far as CUDA lets us: ta_cuda_reached() says whether it
 * has.  Without the lock, the marks being the caller's alone.
 */
void ta_cuda_wait(const struct ta_cuda *cuda, struct ta_cuda_marks *marks);

#endif /* TA_CUDA_H */
