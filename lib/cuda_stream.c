// SPDX-License-Identifier: MIT
/*
 * Work in streams.  Its end is marked, or waited for, or, when CUDA does neither,
 * the marks say that they do not know.
 */
#include <errno.h>

#include "cuda.h"

static int check_capture(struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	int status = 0;
	int err;

	err = cuda->api.is_capturing(work->stream, &status);
	/* The default stream while another is being captured. */
	if (err >= TA_CU_CAPTURE_FIRST && err <= TA_CU_CAPTURE_LAST)
		return -EINPROGRESS;
	work->err = err;
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

	LIST_FOREACH(event, &marks->events, link)
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
	if (!LIST_EMPTY(&marks->events))
		id = stream_id(cuda, work->stream);
	/* Without ids every call adds a mark; there should be no more. */
	if (!id)
		ta_cuda_reached_alone(cuda, marks);
	work->event = mark_of(marks, ctx, id);
	work->fresh = !work->event;
	if (!work->fresh)
		return 0;
	err = ta_cuda_get_event(cuda, &work->scope, &work->event);
	if (!err)
		work->event->stream = id;
	return err;
}

/* Enters a context, for which CUDA may have other answers than yes and no. */
static int enter(struct ta_cuda *cuda, void *ctx, struct ta_cuda_work *work)
{
	int err = ta_cuda_enter(&cuda->api, ctx, &work->scope);

	work->entered = !err;
	if (!err || err == -ENODEV)
		return err;
	work->err = work->scope.result;
	return ta_cuda_failed(cuda, "cuCtxPushCurrent", work->err);
}

static void leave(const struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	if (work->entered)
		ta_cuda_leave(&cuda->api, &work->scope);
	work->entered = false;
}

/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are the thread's context's. */
static bool is_default(const void *stream)
{
	return (uintptr_t)stream <= 2;
}

/*
 * Enters the context of a stream, which the thread's own may not be.  Mostly the
 * stream tells, and what the thread has need not be looked at.
 */
static int enter_stream(struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	void *ctx = NULL;
	int err;

	err = ta_cuda_bind(&cuda->api);
	if (err)
		return err;
	if (!is_default(work->stream) &&
	    cuda->api.stream_ctx(work->stream, &ctx) != TA_CU_SUCCESS)
		ctx = NULL;
	err = enter(cuda, ctx, work);
	if (ctx || is_default(work->stream))
		return err;
	if (err) {
		/* It may not have been the stream's. */
		work->scope.ctx = NULL;
		return err;
	}
	/* Perhaps it tells when asked from inside of some context. */
	if (cuda->api.stream_ctx(work->stream, &ctx) != TA_CU_SUCCESS ||
	    ctx == work->scope.ctx)
		return 0;
	leave(cuda, work);
	return enter(cuda, ctx, work);
}

/*
 * What the driver says of a stream that has been destroyed, if it does not crash
 * over it; the work it was sent does not notice.  The context is well: we are
 * inside of it.
 */
static bool is_stream_unknown(const struct ta_cuda_work *work, int result)
{
	return work->entered && (result == TA_CU_INVALID_HANDLE ||
				 result == TA_CU_INVALID_CONTEXT);
}

int ta_cuda_begin(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		  void *stream, struct ta_cuda_work *work)
{
	int err;

	*work = (struct ta_cuda_work){ .stream = stream };
	err = enter_stream(cuda, work);
	if (!err)
		err = check_capture(cuda, work);
	if (!err)
		err = get_event(cuda, marks, work);
	if (!err)
		return 0;
	if (err == -ENODEV || err == -EINPROGRESS ||
	    (ta_cuda_is_over(work->err) &&
	     !is_stream_unknown(work, work->err))) {
		leave(cuda, work);
		return err;
	}
	work->failed = err;
	return 0;
}

/*
 * Marks the end of what the stream has been sent.  An event of the pool may have
 * gone with its context, in whose place there is another now, after a
 * cudaDeviceReset().  Drivers that give contexts ids have shown that before; those
 * before 12 say so now, or crash.
 */
static int record(const struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	struct ta_cuda_event *event = work->event;
	int result;

	result = cuda->api.event_record(event->event, work->stream);
	if (!work->fresh ||
	    (result != TA_CU_INVALID_HANDLE && !ta_cuda_is_gone(result)))
		return result;
	work->stale = !ta_cuda_renew_event(cuda, event);
	if (!work->stale)
		return result;
	return cuda->api.event_record(event->event, work->stream);
}

/*
 * Work that nothing will tell of must not be left running: a copy that failed in
 * the middle, or one whose end could not be marked, be it the caller's own.
 */
static bool is_drained(const struct ta_cuda *cuda, struct ta_cuda_work *work)
{
	int result = work->err;

	if (!work->entered)
		return false;
	ta_cuda_relax(&cuda->api, &work->scope);
	if (!ta_cuda_is_over(result))
		result = cuda->api.stream_sync(work->stream);
	if (is_stream_unknown(work, result))
		result = cuda->api.ctx_sync();
	return !result || ta_cuda_is_over(result);
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
	if (work->failed) {
		work->lost = !is_drained(cuda, work);
		return;
	}
	work->copies = dst && src;
	work->copied = bytes;
	if (work->copies)
		work->err = copy(cuda, work, dst, src, bytes, direction);
	if (!work->err) {
		work->call = "cuEventRecord";
		work->err = record(cuda, work);
	}
	work->lost = work->err && !is_drained(cuda, work);
}

int ta_cuda_finish(struct ta_cuda *cuda, struct ta_cuda_marks *marks,
		   struct ta_cuda_work *work)
{
	int result = work->failed;

	if (work->failed) {
		if (work->lost)
			ta_cuda_mark_all(marks, work->scope.ctx,
					 work->scope.id);
		leave(cuda, work);
		return result;
	}
	if (work->err)
		result = ta_cuda_failed(cuda, work->call, work->err);
	if (work->copies && !work->err) {
		cuda->stats.copies++;
		cuda->stats.copied_bytes += work->copied;
	}
	if (work->stale)
		ta_cuda_forget(cuda, work->scope.ctx, work->scope.id);
	if (work->lost)
		ta_cuda_widen_event(cuda, work->event);
	if (work->fresh && (!work->err || work->lost))
		LIST_INSERT_HEAD(&marks->events, work->event, link);
	else if (work->fresh)
		ta_cuda_drop_event(cuda, work->event);
	leave(cuda, work);
	return result;
}
