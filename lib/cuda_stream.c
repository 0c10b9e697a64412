// SPDX-License-Identifier: MIT
/*
 * Work in streams, and the events that tell of its end.
 *
 * Events have no timing and wait without spinning.  They belong to a context,
 * so the pool hands them out by context; it never holds more than were in use
 * at one time.
 */
#include <errno.h>
#include <stdlib.h>

#include "cuda.h"

static struct ta_cuda_event *pooled(struct ta_cuda *cuda, void *ctx)
{
	struct ta_cuda_event *event;

	LIST_FOREACH(event, &cuda->pool, link)
	{
		if (event->ctx == ctx) {
			LIST_REMOVE(event, link);
			return event;
		}
	}
	return NULL;
}

static int new_event(struct ta_cuda *cuda, void *ctx,
		     struct ta_cuda_event **event)
{
	struct ta_cuda_event *e;
	int err;

	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	err = cuda->api.event_create(&e->event,
				     TA_CU_EVENT_BLOCKING_SYNC |
					     TA_CU_EVENT_DISABLE_TIMING);
	if (err) {
		free(e);
		return ta_cuda_failed(cuda, "cuEventCreate", err);
	}
	e->ctx = ctx;
	cuda->stats.events++;
	*event = e;
	return 0;
}

static void destroy_event(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	struct ta_cuda_scope scope;

	/* Without its context it is gone already. */
	if (!ta_cuda_enter(&cuda->api, event->ctx, &scope)) {
		/* Fails only when the device has, which has been told. */
		cuda->api.event_destroy(event->event);
		ta_cuda_leave(&cuda->api, &scope);
	}
	cuda->stats.events--;
	free(event);
}

void ta_cuda_drop_events(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
			 bool forked)
{
	struct ta_cuda_event *event;

	while ((event = LIST_FIRST(marks))) {
		LIST_REMOVE(event, link);
		if (forked)
			free(event);
		else
			destroy_event(cuda, event);
	}
}

static int check_capture(struct ta_cuda *cuda, void *stream)
{
	int status = 0;
	int err;

	err = cuda->api.is_capturing(stream, &status);
	/* The default stream while another is being captured. */
	if (err >= TA_CU_CAPTURE_FIRST && err <= TA_CU_CAPTURE_LAST)
		return -EINPROGRESS;
	if (err)
		return ta_cuda_failed(cuda, "cuStreamIsCapturing", err);
	return status ? -EINPROGRESS : 0;
}

/*
 * The mark of the same stream, to be recorded anew.  An id is never used again,
 * which cannot be said of a handle.
 */
static struct ta_cuda_event *mark_of(const struct ta_cuda_marks *marks,
				     void *ctx, uint64_t stream)
{
	struct ta_cuda_event *event;

	LIST_FOREACH(event, marks, link)
	if (stream && event->stream == stream && event->ctx == ctx)
		return event;
	return NULL;
}

static uint64_t stream_id(const struct ta_cuda *cuda, void *stream)
{
	unsigned long long id;

	if (!cuda->api.stream_id || cuda->api.stream_id(stream, &id))
		return 0;
	return id;
}

static int get_event(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		     struct ta_cuda_work *work)
{
	uint64_t id = 0;
	void *ctx = work->scope.ctx;
	int err;

	/* Most have one mark only, which nothing has to be told from. */
	if (!LIST_EMPTY(marks))
		id = stream_id(cuda, work->stream);
	/* Without ids every call adds a mark; there should be no more. */
	if (!id)
		ta_cuda_reached(cuda, marks, NULL);
	work->event = mark_of(marks, ctx, id);
	work->fresh = !work->event;
	if (!work->fresh)
		return 0;
	work->event = pooled(cuda, ctx);
	err = work->event ? 0 : new_event(cuda, ctx, &work->event);
	if (!err)
		work->event->stream = id;
	return err;
}

/* Enters the context of a stream that the thread's own may not be. */
static int enter_stream(struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	struct ta_cuda_scope outer;
	void *ctx = NULL;
	int err;

	err = ta_cuda_enter(&cuda->api, NULL, &outer);
	if (err)
		return err;
	err = check_capture(cuda, work->stream);
	if (!err && cuda->api.stream_ctx(work->stream, &ctx) != TA_CU_SUCCESS)
		ctx = outer.ctx;
	if (!err && ctx == outer.ctx) {
		work->scope = outer;
		return 0;
	}
	ta_cuda_leave(&cuda->api, &outer);
	return err ? err : ta_cuda_enter(&cuda->api, ctx, &work->scope);
}

int ta_cuda_begin(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		  void *stream, struct ta_cuda_work *work)
{
	int err;

	work->stream = stream;
	err = enter_stream(cuda, work);
	if (err)
		return err;
	err = get_event(cuda, marks, work);
	if (err)
		ta_cuda_leave(&cuda->api, &work->scope);
	return err;
}

static int record(const struct ta_cuda *cuda, const struct ta_cuda_work *work)
{
	int err;

	err = cuda->api.event_record(work->event->event, work->stream);
	/*
	 * Work that nothing will tell of must not be left running.  After a
	 * device error there is none.
	 */
	if (err)
		cuda->api.stream_sync(work->stream);
	return err;
}

static int copy(const struct ta_cuda *cuda, struct ta_cuda_work *work,
		void *dst, const void *src, size_t bytes,
		enum ta_cuda_direction direction)
{
	if (direction == TA_CUDA_TO_DEVICE) {
		work->call = "cuMemcpyHtoDAsync";
		return cuda->api.to_device((ta_cu_device_ptr)dst, src, bytes,
					   work->stream);
	}
	work->call = "cuMemcpyDtoHAsync";
	return cuda->api.to_host(dst, (ta_cu_device_ptr)src, bytes,
				 work->stream);
}

void ta_cuda_send(const struct ta_cuda *cuda, struct ta_cuda_work *work,
		  void *dst, const void *src, size_t bytes,
		  enum ta_cuda_direction direction)
{
	work->copies = dst && src;
	work->copied = bytes;
	work->err = 0;
	if (work->copies)
		work->err = copy(cuda, work, dst, src, bytes, direction);
	if (!work->err) {
		work->call = "cuEventRecord";
		work->err = record(cuda, work);
	}
}

int ta_cuda_finish(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		   struct ta_cuda_work *work)
{
	int result = 0;

	if (work->err)
		result = ta_cuda_failed(cuda, work->call, work->err);
	if (work->copies && !work->err) {
		cuda->stats.copies++;
		cuda->stats.copied_bytes += work->copied;
	}
	if (work->fresh && !work->err)
		LIST_INSERT_HEAD(marks, work->event, link);
	else if (work->fresh)
		destroy_event(cuda, work->event);
	ta_cuda_leave(&cuda->api, &work->scope);
	return result;
}

/*
 * What a query says that is neither yes nor "not yet".  A capture elsewhere, a
 * driver on its way out, or a call from a host function, where CUDA permits
 * none, says nothing of the stream.
 */
static bool says_nothing(int err)
{
	return err == TA_CU_DEINITIALIZED || err == TA_CU_NOT_PERMITTED ||
	       (err >= TA_CU_CAPTURE_FIRST && err <= TA_CU_CAPTURE_LAST);
}

/* 0, TA_CU_NOT_READY, or why it never will be. */
static int query(struct ta_cuda *cuda, struct ta_cuda_event *event)
{
	struct ta_cuda_scope scope;
	int err;

	/* A context that cannot be entered any more runs nothing. */
	if (ta_cuda_enter(&cuda->api, event->ctx, &scope))
		return TA_CU_DEINITIALIZED;
	err = cuda->api.event_query(event->event);
	if (says_nothing(err))
		err = TA_CU_NOT_READY;
	else if (err && err != TA_CU_NOT_READY)
		ta_cuda_failed(cuda, "cuEventQuery", err);
	ta_cuda_leave(&cuda->api, &scope);
	return err;
}

bool ta_cuda_reached(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		     bool *failed)
{
	struct ta_cuda_event *event, *next;
	int err;

	for (event = LIST_FIRST(marks); event; event = next) {
		next = LIST_NEXT(event, link);
		err = query(cuda, event);
		if (err == TA_CU_NOT_READY)
			continue;
		LIST_REMOVE(event, link);
		if (err)
			destroy_event(cuda, event);
		else
			LIST_INSERT_HEAD(&cuda->pool, event, link);
		if (err && failed)
			*failed = true;
	}
	return LIST_EMPTY(marks);
}

void ta_cuda_wait(const struct ta_cuda *cuda, const struct ta_cuda_marks *marks)
{
	/* Binding has long been done; nothing in here changes it. */
	struct ta_cuda_api api = cuda->api;
	struct ta_cuda_event *event;
	struct ta_cuda_scope scope;

	LIST_FOREACH(event, marks, link)
	{
		if (ta_cuda_enter(&api, event->ctx, &scope))
			continue;
		/* Errors are found again by the query that follows. */
		api.event_sync(event->event);
		ta_cuda_leave(&api, &scope);
	}
}
