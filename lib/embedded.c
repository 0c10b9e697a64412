// SPDX-License-Identifier: MIT
/* Making and ending an arena of the embedded engine. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "embedded.h"
#include "pidfd.h"

#define KNOWN_FLAGS                                                            \
	((uint32_t)(TENSORARENA_CREATE_WRITABLE_READERS |                      \
		    TENSORARENA_CREATE_CONTIGUOUS |                            \
		    TENSORARENA_CREATE_FALLBACK_SMALL |                        \
		    TENSORARENA_CREATE_NODE_STRICT))

static struct ta_embedded *to_embedded(struct ta_port *port)
{
	return (struct ta_embedded *)port;
}

int ta_random(void *buf, size_t size)
{
	uint8_t *at = buf;

	while (size) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int embedded_call(struct ta_port *port, unsigned int cmd, void *arg)
{
	return ta_embedded_command(to_embedded(port), cmd, arg);
}

static int embedded_poll_fd(struct ta_port *port, short *events)
{
	struct ta_embedded *e = to_embedded(port);

	pthread_mutex_lock(&e->lock);
	e->free_watched = true;
	ta_released_reap(e, UINT64_MAX);
	ta_embedded_sync_free(e);
	pthread_mutex_unlock(&e->lock);
	/* An eventfd, so "a slot is free" is something to read. */
	*events = POLLIN;
	return e->free_level;
}

static int embedded_connect(struct ta_port *port)
{
	return ta_server_connect(to_embedded(port));
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void free_arena(struct ta_embedded *e)
{
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->grow_lock);
	free(e->slots.slot);
	free(e->memory);
	free(e->peers);
	free(e->seen);
	free(e);
}

/* What there is without a thread and a socket, in any state of completion. */
static void close_arena(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < e->slots.nr; i++)
		close_fd(e->memory[i].fd);
	close_fd(e->listener);
	close_fd(e->epoll);
	close_fd(e->wake);
	close_fd(e->free_level);
	close_fd(e->self);
	close_fd(e->hole);
	free_arena(e);
}

/*
 * A child's copy: the thread is not in it, the mappings are not, and the other
 * ends belong to the parent.  What the server was changing at the moment of the
 * fork cannot be known, so a descriptor may be left open; none is closed twice.
 */
static void close_forked(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < TA_MAX_PEERS; i++) {
		const struct ta_peer *peer = &e->peers[i];

		if (peer->state == TA_PEER_UNUSED ||
		    peer->state == TA_PEER_CLOSED)
			continue;
		close_fd(peer->sock);
		close_fd(peer->pidfd);
		close_fd(peer->level);
	}
	for (i = 0; i < e->nr_handed; i++)
		close_fd(e->handed[i]);
	close_arena(e);
}

static void embedded_close(struct ta_port *port, bool forked)
{
	struct ta_embedded *e = to_embedded(port);

	if (forked) {
		close_forked(e);
		return;
	}
	ta_server_stop(e);
	ta_embedded_unlink(e);
	munmap(port->base, port->bytes);
	close_arena(e);
}

static const struct ta_port_ops embedded_ops = {
	.call = embedded_call,
	.poll_fd = embedded_poll_fd,
	.connect = embedded_connect,
	.close = embedded_close,
};

static int check_create(const struct tensorarena_create *args)
{
	const uint32_t either = TENSORARENA_CREATE_CONTIGUOUS |
				TENSORARENA_CREATE_FALLBACK_SMALL;
	uint64_t stride, bytes;

	if (args->reserved || args->flags & ~KNOWN_FLAGS ||
	    (args->flags & either) == either)
		return -EINVAL;
	if (!args->slots || args->slots > TENSORARENA_MAX_SLOTS ||
	    args->seats > TENSORARENA_MAX_READERS || !args->slot_bytes)
		return -EINVAL;
	if (__builtin_add_overflow(args->slot_bytes,
				   TENSORARENA_STRIDE_ALIGN - 1, &stride) ||
	    __builtin_mul_overflow(stride, (uint64_t)args->slots, &bytes) ||
	    bytes > INT64_MAX)
		return -EINVAL;
	if (args->node < TENSORARENA_NODE_LOCAL)
		return -EINVAL;
	if (args->flags & ~(uint32_t)TENSORARENA_CREATE_WRITABLE_READERS ||
	    args->node != TENSORARENA_NODE_LOCAL)
		return -EOPNOTSUPP;
	return 0;
}

static struct ta_embedded *alloc_arena(const struct tensorarena_create *args)
{
	struct ta_embedded *e = calloc(1, sizeof(*e));
	struct ta_slot *slot;
	uint32_t i;

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->grow_lock, NULL);
	e->hole = e->self = e->free_level = e->wake = e->epoll = -1;
	e->listener = -1;
	slot = calloc(args->slots, sizeof(*slot));
	e->memory = calloc(args->slots, sizeof(*e->memory));
	e->peers = calloc(TA_MAX_PEERS, sizeof(*e->peers));
	e->seen = calloc((size_t)TA_MAX_PEERS * args->slots, sizeof(*e->seen));
	ta_slots_init(&e->slots, slot, args->slots, args->slot_bytes,
		      args->seats);
	if (!slot || !e->memory || !e->peers || !e->seen) {
		free_arena(e);
		return NULL;
	}
	for (i = 0; i < args->slots; i++)
		e->memory[i].fd = -1;
	for (i = 0; i < TA_MAX_PEERS; i++)
		e->peers[i].seen = &e->seen[(size_t)i * args->slots];
	return e;
}

static int open_descriptors(struct ta_embedded *e)
{
	e->self = ta_pidfd_open(getpid());
	if (e->self < 0)
		return e->self;
	e->free_level = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e->free_level < 0 || e->wake < 0 || e->epoll < 0)
		return -errno;
	return 0;
}

static int make_identity(struct ta_embedded *e)
{
	int err;

	err = ta_random(e->cookie, sizeof(e->cookie));
	if (!err)
		err = ta_random(&e->arena, sizeof(e->arena));
	/* Positive also to languages without unsigned numbers, and never 0. */
	e->arena >>= 1;
	e->arena += !e->arena;
	return err;
}

static int embedded_create(const struct ta_options *options,
			   struct tensorarena_create *args,
			   struct ta_handle *handle, struct ta_port **port)
{
	struct ta_embedded *e;
	int err;

	err = check_create(args);
	if (err)
		return err;
	e = alloc_arena(args);
	if (!e)
		return -ENOMEM;
	e->port.ops = &embedded_ops;
	e->flags = args->flags;
	e->any_uid = options->flags & TA_ANY_UID;
	e->stride = (args->slot_bytes + TENSORARENA_STRIDE_ALIGN - 1) /
		    TENSORARENA_STRIDE_ALIGN * TENSORARENA_STRIDE_ALIGN;
	e->port.bytes = (size_t)(e->stride * args->slots);

	err = make_identity(e);
	if (!err)
		err = open_descriptors(e);
	if (err)
		goto close_arena;
	err = ta_range_reserve(e->port.bytes, PROT_READ | PROT_WRITE,
			       &e->port.base, &e->hole);
	if (err)
		goto close_arena;
	err = ta_embedded_listen(e, options->socket_path);
	if (err)
		goto unmap;
	err = ta_server_start(e);
	if (err)
		goto unlink_socket;

	args->stride = e->stride;
	args->arena = e->arena;
	memcpy(args->cookie, e->cookie, sizeof(args->cookie));
	*handle = (struct ta_handle){
		.engine = TA_ENGINE_EMBEDDED,
		.arena = e->arena,
	};
	memcpy(handle->cookie, e->cookie, sizeof(handle->cookie));
	memcpy(handle->socket, e->socket, sizeof(handle->socket));
	*port = &e->port;
	return 0;

unlink_socket:
	ta_embedded_unlink(e);
unmap:
	munmap(e->port.base, e->port.bytes);
close_arena:
	close_arena(e);
	return err;
}

const struct ta_engine ta_engine_embedded = {
	.name = "embedded",
	.kind = TA_ENGINE_EMBEDDED,
	.create = embedded_create,
	.attach = ta_embedded_attach,
};
