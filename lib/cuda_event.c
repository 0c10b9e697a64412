// SPDX-License-Identifier: MIT
/*
 * Events: how they are had, and how it is known that they have been reached.
 *
 * They have no timing and wait without spinning.  They belong to a context, so
 * the pool hands them out by context; it never holds more than were in use at
 * one time.
 */
#include <errno.h>
#include <stdlib.h>

#include "cuda.h"

static struct ta_cuda_event *pooled(struct ta_cuda *cuda,
				    const struct ta_cuda_scope *scope)
{
	struct ta_cuda_event *event;

	LIST_FOREACH(event, &cuda->pool, link) {
		if (event->ctx == scope->ctx && event->ctx_id == scope->id) {
			LIST_REMOVE(event, link);
			return event;
		}
	}
	return NULL;
}

/* Those of a context that had the same handle, before it was reset. */
static void forget_earlier(struct ta_cuda *cuda,
			   const struct ta_cuda_scope *scope)
{
	struct ta_cuda_event *event = LIST_FIRST(&cuda->pool);

	while (event) {
		if (event->ctx != scope->ctx || event->ctx_id == scope->id) {
			event = LIST_NEXT(event, link);
			continue;
		}
		ta_cuda_forget(cuda, event->ctx, event->ctx_id);
		event = LIST_FIRST(&cuda->pool);
	}
}

/* NULL: no memory. */
static struct ta_cuda_event *new_event(void *ctx, uint64_t ctx_id)
{
	struct ta_cuda_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->ctx = ctx;
	event->ctx_id = ctx_id;
	event->known = TA_CU_NOT_READY;
	return event;
}

void ta_cuda_mark_all(struct ta_cuda_marks *marks, void *ctx, uint64_t ctx_id)
{
	struct ta_cuda_event *event = ctx ? new_event(ctx, ctx_id) : NULL;

	if (event)
		LIST_INSERT_HEAD(&marks->events, event, link);
	else
		marks->lost = true;
}

bool ta_cuda_is_marked(const struct ta_cuda_marks *marks)
{
	return !LIST_EMPTY(&marks->events) || marks->lost;
}

int ta_cuda_get_event(struct ta_cuda *cuda, const struct ta_cuda_scope *scope,
		      struct ta_cuda_event **event)
{
	struct ta_cuda_event *e;
	int err;

	*event = pooled(cuda, scope);
	if (*event)
		return 0;
	forget_earlier(cuda, scope);
	e = new_event(scope->ctx, scope->id);
	if (!e)
		return -ENOMEM;
	err = ta_cuda_renew_event(cuda, e);
	if (err) {
		free(e);
		return ta_cuda_failed(cuda, "cuEventCreate", err);
	}
	cuda->stats.events++;
	*event = e;
	return 0;
}

int ta_cuda_renew_event(const struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	void *handle;
	int result;

	result = cuda->api.event_create(&handle,
					TA_CU_EVENT_BLOCKING_SYNC |
						TA_CU_EVENT_DISABLE_TIMING);
	if (!result)
		event->event = handle;
	return result;
}

void ta_cuda_forget(struct ta_cuda *cuda, void *ctx, uint64_t ctx_id)
{
	struct ta_cuda_event *event, *next;

	for (event = LIST_FIRST(&cuda->pool); event; event = next) {
		next = LIST_NEXT(event, link);
		if (event->ctx != ctx || event->ctx_id != ctx_id)
			continue;
		LIST_REMOVE(event, link);
		cuda->stats.events--;
		free(event);
	}
	ta_cuda_unpin_lost(cuda, ctx, ctx_id);
}

static void destroy(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	struct ta_cuda_scope scope;

	if (!event->event)
		return;
	/* Without its context it is gone already. */
	if (!ta_cuda_enter_again(&cuda->api, event->ctx, event->ctx_id,
				 &scope)) {
		/* Fails only when the device has, which has been told. */
		cuda->api.event_destroy(event->event);
		ta_cuda_leave(&cuda->api, &scope);
	}
	cuda->stats.events--;
	event->event = NULL;
}

void ta_cuda_drop_event(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	destroy(cuda, event);
	free(event);
}

void ta_cuda_widen_event(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	destroy(cuda, event);
	event->stream = 0;
	event->known = TA_CU_NOT_READY;
}

void ta_cuda_drop_events(struct ta_cuda *cuda, struct ta_cuda_events *events,
			 bool forked)
{
	struct ta_cuda_event *event;

	while ((event = LIST_FIRST(events))) {
		LIST_REMOVE(event, link);
		if (forked)
			free(event);
		else
			ta_cuda_drop_event(cuda, event);
	}
}

/* Back into the pool, or, when nothing is left of it, away. */
static void give_back(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	event->known = TA_CU_NOT_READY;
	event->told = TA_CU_SUCCESS;
	if (event->event)
		LIST_INSERT_HEAD(&cuda->pool, event, link);
	else
		free(event);
}

/*
 * Whether an answer about an event means that its context is gone.  One of ours
 * that CUDA does not know any more went with it: nobody else destroys it.
 */
static bool is_gone(int result)
{
	return ta_cuda_is_gone(result) || result == TA_CU_INVALID_HANDLE;
}

/* Whether it is the last word. */
static bool is_final(int result)
{
	return !result || ta_cuda_is_over(result) || is_gone(result);
}

void ta_cuda_look_end(const struct ta_cuda *cuda, struct ta_cuda_look *look)
{
	if (look->entered)
		ta_cuda_leave(&cuda->api, &look->scope);
	look->entered = false;
}

static int look_into(struct ta_cuda *cuda, struct ta_cuda_look *look,
		     const struct ta_cuda_event *event)
{
	if (look->entered && look->scope.ctx == event->ctx &&
	    look->scope.id == event->ctx_id)
		return TA_CU_SUCCESS;
	ta_cuda_look_end(cuda, look);
	if (ta_cuda_enter_again(&cuda->api, event->ctx, event->ctx_id,
				&look->scope))
		return look->scope.result;
	ta_cuda_relax(&cuda->api, &look->scope);
	look->entered = true;
	return TA_CU_SUCCESS;
}

/* Asks CUDA: its answer, and of which call. */
static int ask(struct ta_cuda *cuda, struct ta_cuda_look *look,
	       const struct ta_cuda_event *event, const char **call)
{
	int result;

	*call = "cuCtxPushCurrent";
	result = look_into(cuda, look, event);
	if (result)
		return result;
	*call = "cuEventQuery";
	return event->event ? cuda->api.event_query(event->event) :
			      TA_CU_NOT_READY;
}

/*
 * 0, TA_CU_NOT_READY, or why it never will be.  An answer that is none of these
 * says nothing of the stream: a call from a host function, a capture, no memory,
 * whatever else.  The copy may be running, so it is "not ready"; told once, not
 * at every look.
 */
static int query(struct ta_cuda *cuda, struct ta_cuda_look *look,
		 struct ta_cuda_event *event)
{
	const char *call = "cuEventSynchronize";
	int result = event->known;

	if (result == TA_CU_NOT_READY)
		result = ask(cuda, look, event, &call);
	if (!result || result == TA_CU_NOT_READY)
		return result;
	if (event->told != result)
		ta_cuda_failed(cuda, call, result);
	event->told = result;
	return is_final(result) ? result : TA_CU_NOT_READY;
}

bool ta_cuda_reached(struct ta_cuda *cuda, struct ta_cuda_look *look,
		     struct ta_cuda_marks *marks)
{
	struct ta_cuda_event *event, *next;
	int result;

	for (event = LIST_FIRST(&marks->events); event; event = next) {
		next = LIST_NEXT(event, link);
		result = query(cuda, look, event);
		if (result == TA_CU_NOT_READY)
			continue;
		LIST_REMOVE(event, link);
		if (result) {
			marks->failed = true;
			if (is_gone(result))
				ta_cuda_forget(cuda, event->ctx, event->ctx_id);
			ta_cuda_drop_event(cuda, event);
		} else {
			give_back(cuda, event);
		}
	}
	return !ta_cuda_is_marked(marks);
}

bool ta_cuda_reached_alone(struct ta_cuda *cuda, struct ta_cuda_marks *marks)
{
	struct ta_cuda_look look = { 0 };
	bool reached;

	reached = ta_cuda_reached(cuda, &look, marks);
	ta_cuda_look_end(cuda, &look);
	return reached;
}

/* As known as it can be made by waiting. */
static int wait_for(struct ta_cuda_api *api, const struct ta_cuda_event *event)
{
	struct ta_cuda_scope scope;
	int result = TA_CU_NOT_READY;

	if (ta_cuda_enter_again(api, event->ctx, event->ctx_id, &scope))
		return ta_cuda_is_over(scope.result) ? scope.result : result;
	ta_cuda_relax(api, &scope);
	if (event->event)
		result = api->event_sync(event->event);
	/* The event will not say.  What the context has finished it has, too. */
	if (!is_final(result))
		result = api->ctx_sync();
	ta_cuda_leave(api, &scope);
	return is_final(result) ? result : TA_CU_NOT_READY;
}

void ta_cuda_wait(const struct ta_cuda *cuda, struct ta_cuda_marks *marks)
{
	/* Binding has long been done; nothing in here changes it. */
	struct ta_cuda_api api = cuda->api;
	struct ta_cuda_event *event;

	LIST_FOREACH(event, &marks->events, link)
		event->known = wait_for(&api, event);
}
