// SPDX-License-Identifier: MIT
/* The reader's end: attaching, waiting for publications, and views. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "handle.h"
#include "reader.h"
#include "tensor.h"

static struct view *to_view(struct ta_view *view)
{
	return (struct view *)view;
}

static int call(struct ta_reader *reader, unsigned int cmd, void *arg)
{
	return reader->port->ops->call(reader->port, cmd, arg);
}

/* The engine is about to unmap what may be registered; under @lock. */
static void unmapping(void *above, uint32_t slot)
{
	struct ta_reader *reader = above;

	ta_cuda_unpin(&reader->cuda, slot);
}

static int attach(const char *text, int fd, struct ta_reader **reader)
{
	struct tensorarena_attach args = { 0 };
	const struct ta_engine *engine;
	struct ta_handle handle;
	struct ta_reader *r;
	int err;

	err = ta_handle_parse(text, &handle);
	if (err)
		return err;
	engine = handle.engine == TA_ENGINE_DEVICE ? &ta_engine_device :
						     &ta_engine_embedded;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	err = ta_alive_init(&r->alive);
	if (err)
		goto free_reader;
	err = engine->attach(&handle, fd, &args, &r->port);
	if (err)
		goto destroy_alive;
	r->engine = engine->kind;
	r->id = args.reader;
	r->seat = args.seat;
	r->flags = args.arena_flags;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	LIST_INIT(&r->views);
	LIST_INIT(&r->departed);
	ta_cuda_init(&r->cuda, r->port->base, args.stride, args.slots,
		     !(args.arena_flags & TENSORARENA_CREATE_WRITABLE_READERS));
	r->port->above = r;
	r->port->unmapping = unmapping;
	*reader = r;
	return 0;

destroy_alive:
	ta_alive_destroy(&r->alive);
free_reader:
	free(r);
	return err;
}

int ta_attach(const char *handle, struct ta_reader **reader)
{
	return attach(handle, -1, reader);
}

int ta_attach_fd(const char *handle, int fd, struct ta_reader **reader)
{
	int err;

	if (fd < 0)
		return -EBADF;
	err = attach(handle, fd, reader);
	if (err)
		close(fd);
	return err;
}

static void free_views(struct ta_reader *reader, struct views *views,
		       bool forked)
{
	struct view *view;

	while ((view = LIST_FIRST(views))) {
		LIST_REMOVE(view, link);
		ta_cuda_drop_events(&reader->cuda, &view->marks.events, forked);
		free(view);
	}
}

void ta_reader_close(struct ta_reader *reader)
{
	bool forked;

	if (!reader)
		return;
	forked = !ta_is_alive(&reader->alive);
	if (!forked) {
		ta_helper_stop(reader);
		/* Better a slot that is lost than one whose copy goes wrong. */
		if (!ta_reader_drain(reader))
			return;
	}
	/*
	 * In a child the lock may have been held at the fork by a thread that
	 * is not here.  Then the list may be half changed and is left alone.
	 */
	if (!pthread_mutex_trylock(&reader->lock)) {
		free_views(reader, &reader->views, forked);
		free_views(reader, &reader->departed, forked);
		ta_cuda_destroy(&reader->cuda, forked);
		pthread_mutex_unlock(&reader->lock);
	}
	reader->port->unmapping = NULL;
	reader->port->ops->close(reader->port, forked);
	ta_alive_destroy(&reader->alive);
	free(reader);
}

uint64_t ta_reader_id(const struct ta_reader *reader)
{
	return reader->id;
}

uint32_t ta_reader_seat(const struct ta_reader *reader)
{
	return reader->seat;
}

enum ta_engine_kind ta_reader_engine(const struct ta_reader *reader)
{
	return reader->engine;
}

uint32_t ta_reader_flags(const struct ta_reader *reader)
{
	return reader->flags;
}

int ta_reader_poll_fd(struct ta_reader *reader, short *events)
{
	if (!ta_is_alive(&reader->alive))
		return -EIO;
	return reader->port->ops->poll_fd(reader->port, events);
}

bool ta_reader_gone(struct ta_reader *reader)
{
	struct ta_port *port = reader->port;
	struct pollfd pfd = { 0 };

	if (port->ops->gone)
		return port->ops->gone(port);
	pfd.fd = port->ops->poll_fd(port, &pfd.events);
	/* Also when there is something that has not been seen. */
	pfd.events = POLLRDHUP;
	return poll(&pfd, 1, 0) > 0;
}

static int release_slot(struct ta_reader *reader, uint32_t slot,
			uint64_t generation)
{
	struct tensorarena_slot_ref ref = {
		.slot = slot,
		.generation = generation,
	};

	return call(reader, TENSORARENA_RELEASE, &ref);
}

/*
 * Makes @view of what NEXT or BORROW returned.  Whoever wrote the publication
 * need not have been this library, so all of it is checked.
 */
static int fill_view(struct ta_reader *reader,
		     const struct tensorarena_borrow *b, struct view *view)
{
	const struct tensorarena_ticket *t = &b->ticket;
	uint64_t bytes = reader->port->bytes;

	if (b->offset > bytes || t->nbytes > bytes - b->offset)
		return -EPROTO;
	view->reader = reader;
	view->pub.data = reader->port->base + b->offset;
	view->pub.nbytes = (size_t)t->nbytes;
	view->pub.ticket = (struct ta_ticket){
		.arena = t->arena,
		.generation = t->generation,
		.nbytes = t->nbytes,
		.slot = t->slot,
	};
	return ta_tensor_decode(b->meta, b->meta_bytes, t->nbytes,
				&view->pub.tensor);
}

/* Makes a view of what NEXT or BORROW gave; under @lock. */
static int open_view(struct ta_reader *reader,
		     const struct tensorarena_borrow *b, struct view *view)
{
	struct hold *hold;
	int err = -EPROTO;

	if (b->ticket.slot >= TENSORARENA_MAX_SLOTS)
		return err;
	hold = &reader->hold[b->ticket.slot];
	/* Other views keep the slot from being published again. */
	if (!hold->views || hold->generation == b->ticket.generation)
		err = fill_view(reader, b, view);
	if (!err) {
		hold->generation = b->ticket.generation;
		hold->views++;
		LIST_INSERT_HEAD(&reader->views, view, link);
		ta_reader_pin(reader, view);
	} else if (!hold->views) {
		release_slot(reader, b->ticket.slot, b->ticket.generation);
	}
	return err;
}

/* NEXT or BORROW, and a view on what it gave. */
static int take(struct ta_reader *reader, unsigned int cmd,
		struct tensorarena_borrow *b, struct view *view)
{
	int err;

	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	err = call(reader, cmd, b);
	if (!err)
		err = open_view(reader, b, view);
	/* Which is said to those, too, for whom there is nothing. */
	if (b->wanted)
		ta_reader_unpin(reader);
	pthread_mutex_unlock(&reader->lock);
	return err;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Waits for something to happen: 0, -EAGAIN when it is too late, or -errno. */
static int wait_until(struct ta_reader *reader, bool forever, int64_t deadline)
{
	struct pollfd pfd = { 0 };
	int64_t left;
	int ms = -1;
	int n;

	if (!forever) {
		left = deadline - now_ns();
		if (left <= 0)
			return -EAGAIN;
		ms = (int)((left + 999999) / 1000000);
	}
	pfd.fd = reader->port->ops->poll_fd(reader->port, &pfd.events);
	if (pfd.fd < 0)
		return pfd.fd;
	n = poll(&pfd, 1, ms);
	if (n < 0)
		return -errno;
	return pfd.revents & POLLNVAL ? -EBADF : 0;
}

int ta_next(struct ta_reader *reader, int timeout_ms, struct ta_view **view)
{
	struct tensorarena_borrow borrow;
	struct view *v;
	int64_t deadline;
	int err;

	if (!ta_is_alive(&reader->alive))
		return -EIO;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	deadline = timeout_ms > 0 ? now_ns() + timeout_ms * 1000000LL : 0;
	do {
		borrow = (struct tensorarena_borrow){ 0 };
		err = take(reader, TENSORARENA_NEXT, &borrow, v);
		if (err != -EAGAIN || !timeout_ms)
			break;
		err = wait_until(reader, timeout_ms < 0, deadline);
	} while (!err);
	if (err) {
		free(v);
		return err;
	}
	*view = &v->pub;
	return 0;
}

int ta_view(struct ta_reader *reader, const struct ta_ticket *ticket,
	    struct ta_view **view)
{
	struct tensorarena_borrow borrow = {
		.ticket = {
			.arena = ticket->arena,
			.generation = ticket->generation,
			.nbytes = ticket->nbytes,
			.slot = ticket->slot,
			.reserved = ticket->reserved,
		},
	};
	struct view *v;
	int err;

	if (!ta_is_alive(&reader->alive))
		return -EIO;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	err = take(reader, TENSORARENA_BORROW, &borrow, v);
	if (err) {
		free(v);
		return err;
	}
	*view = &v->pub;
	return 0;
}

int ta_reader_drop(struct ta_reader *reader, struct view *view, bool asked)
{
	struct ta_port *port = reader->port;
	const struct ta_ticket *ticket = &view->pub.ticket;
	struct hold *hold = &reader->hold[ticket->slot];
	int err = 0;

	LIST_REMOVE(view, link);
	if (!--hold->views) {
		if (!asked && port->ops->done)
			port->ops->done(port, ticket->slot, ticket->generation);
		else
			err = release_slot(reader, ticket->slot,
					   ticket->generation);
		ta_reader_keep_budget(reader);
	}
	free(view);
	return err;
}

int ta_release(struct ta_view *pub)
{
	struct view *view = to_view(pub);
	struct ta_reader *reader = view->reader;
	int err = 0;

	/* A child's copy of the view goes with its copy of the reader. */
	if (!ta_is_alive(&reader->alive))
		return -EIO;
	pthread_mutex_lock(&reader->lock);
	ta_reader_settle(reader);
	if (!ta_reader_defer(reader, view))
		err = ta_reader_drop(reader, view, true);
	pthread_mutex_unlock(&reader->lock);
	return err;
}
