// SPDX-License-Identifier: MIT
/* A reader and its GPU: pins, copies, and releases that wait for streams. */
#include <errno.h>

#include "reader.h"

static struct view *to_view(struct ta_view *view)
{
	return (struct view *)view;
}

static bool is_idle(const void *owner, uint32_t slot)
{
	const struct ta_reader *reader = owner;

	return !reader->hold[slot].views;
}

void ta_reader_settle(struct ta_reader *reader)
{
	struct ta_cuda_look look = { 0 };
	struct view *view, *next;

	for (view = LIST_FIRST(&reader->departed); view; view = next) {
		next = LIST_NEXT(view, link);
		if (!ta_cuda_reached(&reader->cuda, &look, &view->marks))
			continue;
		reader->cuda.stats.pending--;
		/* Who released it has been told that it is; evicted, it is. */
		ta_reader_drop(reader, view, false);
	}
	ta_cuda_look_end(&reader->cuda, &look);
}

void ta_reader_pin(struct ta_reader *reader, const struct view *view)
{
	ta_cuda_pin(&reader->cuda, view->pub.ticket.slot, view->pub.nbytes,
		    is_idle, reader);
}

void ta_reader_unpin(struct ta_reader *reader)
{
	ta_cuda_unpin_idle(&reader->cuda, 0, is_idle, reader);
}

void ta_reader_keep_budget(struct ta_reader *reader)
{
	ta_cuda_unpin_idle(&reader->cuda, reader->cuda.stats.pin_budget,
			   is_idle, reader);
}

bool ta_reader_defer(struct ta_reader *reader, struct view *view)
{
	if (!ta_cuda_is_marked(&view->marks) ||
	    ta_cuda_reached_alone(&reader->cuda, &view->marks))
		return false;
	LIST_REMOVE(view, link);
	LIST_INSERT_HEAD(&reader->departed, view, link);
	reader->cuda.stats.deferred++;
	reader->cuda.stats.pending++;
	ta_helper_wake(reader);
	return true;
}

bool ta_reader_drain(struct ta_reader *reader)
{
	struct view *view;
	bool over;

	/* No other thread may be in a call on a reader that is closed. */
	LIST_FOREACH(view, &reader->views, link)
		ta_cuda_wait(&reader->cuda, &view->marks);
	LIST_FOREACH(view, &reader->departed, link)
		ta_cuda_wait(&reader->cuda, &view->marks);
	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	over = LIST_EMPTY(&reader->departed);
	LIST_FOREACH(view, &reader->views, link)
		over &= ta_cuda_reached_alone(&reader->cuda, &view->marks);
	pthread_mutex_unlock(&reader->lock);
	return over;
}

int ta_cuda_prepare(struct ta_reader *reader, uint32_t *pinned)
{
	struct ta_cuda *cuda = &reader->cuda;
	const struct ta_port_ops *ops = reader->port->ops;
	struct ta_cuda_scope scope;
	uint32_t i, n = 0;
	int err;

	if (!ta_is_alive(&reader->alive))
		return -EIO;
	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	err = ta_cuda_enter(&cuda->api, NULL, &scope);
	if (err)
		goto unlock;
	for (i = 0; i < cuda->slots && !err && ops->map; i++)
		err = ops->map(reader->port, i);
	if (!err)
		n = ta_cuda_pin_all(cuda, is_idle, reader);
	ta_cuda_leave(&cuda->api, &scope);
unlock:
	pthread_mutex_unlock(&reader->lock);
	if (pinned)
		*pinned = n;
	return err;
}

int ta_cuda_pin_budget(struct ta_reader *reader, uint64_t bytes)
{
	if (!ta_is_alive(&reader->alive))
		return -EIO;
	pthread_mutex_lock(&reader->lock);
	reader->cuda.stats.pin_budget = bytes;
	ta_reader_keep_budget(reader);
	pthread_mutex_unlock(&reader->lock);
	return 0;
}

/* Sends a copy, if @dst, and marks the view with where the stream is then. */
static int send(struct view *view, void *dst, size_t offset, size_t bytes,
		void *stream)
{
	struct ta_reader *reader = view->reader;
	struct ta_cuda *cuda = &reader->cuda;
	struct ta_cuda_work work;
	int err;

	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	err = ta_cuda_begin(cuda, &view->marks, stream, &work);
	/* A context may have come into being since the view was taken. */
	if (!err)
		ta_cuda_pin_for(cuda, &work, view->pub.ticket.slot,
				view->pub.nbytes, is_idle, reader);
	pthread_mutex_unlock(&reader->lock);
	if (err)
		return err;

	ta_cuda_send(cuda, &work, dst, (const char *)view->pub.data + offset,
		     bytes, TA_CUDA_TO_DEVICE);

	pthread_mutex_lock(&reader->lock);
	err = ta_cuda_finish(cuda, &view->marks, &work);
	pthread_mutex_unlock(&reader->lock);
	return err;
}

int ta_copy_to_device(struct ta_view *view, void *dst, size_t offset,
		      size_t bytes, void *stream)
{
	if (!ta_is_alive(&to_view(view)->reader->alive))
		return -EIO;
	if (offset > view->nbytes || bytes > view->nbytes - offset || !dst)
		return -EINVAL;
	return send(to_view(view), dst, offset, bytes, stream);
}

int ta_release_after(struct ta_view *view, void *stream)
{
	if (!ta_is_alive(&to_view(view)->reader->alive))
		return -EIO;
	return send(to_view(view), NULL, 0, 0, stream);
}

int ta_cuda_stats(struct ta_reader *reader, struct ta_cuda_stats *stats,
		  struct ta_cuda_slot *rows, uint32_t nr)
{
	if (!ta_is_alive(&reader->alive))
		return -EIO;
	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	ta_cuda_report(&reader->cuda, stats, rows, nr);
	pthread_mutex_unlock(&reader->lock);
	return 0;
}
