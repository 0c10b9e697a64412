// SPDX-License-Identifier: MIT
/*
 * The reader's port: commands are round trips to the server in the writer's
 * process.  Once that is gone, what the reader holds stays mapped and can be
 * released; there is nothing else to have.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "embedded.h"
#include "embedded_link.h"
#include "embedded_mapping.h"
#include "pidfd.h"

/**
 * struct embedded_reader - a reader's port
 * @lock: one command at a time; also guards the rest
 * @link: connection to the server
 * @poll: see TA_WIRE_FD_POLL; also watches the connection and the writer
 * @ended: 0, or what every command answers: -EOWNERDEAD, -ESHUTDOWN
 * @arena: id
 * @slot_bytes: largest publication
 * @map: the mapping
 * @released: what has been released without a message
 */
struct embedded_reader {
	struct ta_port port;
	pthread_mutex_t lock;
	struct ta_link link;
	int poll;
	int ended;
	uint64_t arena;
	uint64_t slot_bytes;
	struct ta_mapping map;
	struct ta_wire_released *released;
};

static struct embedded_reader *to_reader(struct ta_port *port)
{
	return (struct embedded_reader *)port;
}

/* ---- commands ---- */

/* What is malformed is so whatever the state of things. */
static int check_args(unsigned int cmd, const void *arg)
{
	const struct tensorarena_borrow *borrow = arg;
	const struct tensorarena_slot_ref *ref = arg;
	const struct tensorarena_detach *detach = arg;
	bool good;

	switch (cmd) {
	case TENSORARENA_NEXT:
		good = !borrow->flags && !borrow->reserved;
		break;
	case TENSORARENA_BORROW:
		good = !borrow->flags && !borrow->reserved &&
		       !borrow->ticket.reserved;
		break;
	case TENSORARENA_RELEASE:
		good = !ref->flags;
		break;
	case TENSORARENA_DETACH:
		good = !detach->flags;
		break;
	default:
		return -ENOTTY;
	}
	return good ? 0 : -EINVAL;
}

static int ask(struct embedded_reader *r, unsigned int cmd, const void *arg,
	       struct ta_wire_message *msg, struct ta_wire_parcel *parcel)
{
	msg->header.command = cmd;
	memcpy(msg->bytes, arg, ta_wire_payload(cmd));
	return ta_link_ask(&r->link, msg, parcel, -1, false, 0);
}

/* The same where nothing but the fact matters. */
static void tell(struct embedded_reader *r, unsigned int cmd, const void *arg)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;

	if (!ask(r, cmd, arg, &msg, &parcel))
		ta_wire_discard(&parcel);
}

/* Unmaps memory that the writer has given up. */
static void drop_stale(struct embedded_reader *r)
{
	struct ta_wire_stale stale = { .mask = { 0 } };
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	uint32_t i;

	if (ask(r, TA_WIRE_STALE, &stale, &msg, &parcel))
		return;
	ta_wire_discard(&parcel);
	if (msg.header.result)
		return;
	memcpy(&stale, msg.bytes, sizeof(stale));
	for (i = 0; i < r->map.slots; i++)
		if (stale.mask[i / 64] >> i % 64 & 1)
			ta_mapping_drop(&r->map, i);
}

static bool same_ticket(const struct tensorarena_ticket *a,
			const struct tensorarena_ticket *b)
{
	return a->arena == b->arena && a->generation == b->generation &&
	       a->nbytes == b->nbytes && a->slot == b->slot;
}

static bool plausible(const struct embedded_reader *r,
		      const struct tensorarena_borrow *b)
{
	return b->ticket.arena == r->arena && b->ticket.slot < r->map.slots &&
	       b->ticket.nbytes <= r->slot_bytes &&
	       b->meta_bytes <= TENSORARENA_META_BYTES;
}

/*
 * Maps a publication that NEXT or BORROW returned.  One that cannot be mapped
 * now is given back to come again; no release, for it has not been read.
 */
static int hold(struct embedded_reader *r, const struct tensorarena_borrow *b,
		struct ta_wire_parcel *parcel)
{
	const struct tensorarena_slot_ref ref = {
		.generation = b->ticket.generation,
		.slot = b->ticket.slot,
	};
	int fd = parcel->nr_fds ? parcel->fds[0] : -1;
	int err;

	if (!plausible(r, b))
		err = -EPROTO;
	else if (parcel->lost_fds)
		err = -EMFILE;
	else
		err = ta_mapping_hold(&r->map, b->ticket.slot,
				      b->ticket.generation, b->ticket.nbytes,
				      fd);
	ta_wire_discard(parcel);
	if (err == -EPROTO)
		ta_link_hang_up(&r->link);
	else if (err)
		tell(r, TA_WIRE_UNSEE, &ref);
	return err;
}

static int next_or_borrow(struct embedded_reader *r, unsigned int cmd,
			  struct tensorarena_borrow *b)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	bool stale;
	int err;

	if (r->link.gone)
		return -EPIPE;
	err = ask(r, cmd, b, &msg, &parcel);
	if (err)
		return err == -EPROTO ? err : -EPIPE;
	stale = msg.header.flags & TA_WIRE_HAS_STALE;
	err = msg.header.result;
	if (err) {
		ta_wire_discard(&parcel);
	} else if (cmd == TENSORARENA_BORROW &&
		   !same_ticket(&b->ticket, &msg.borrow.ticket)) {
		ta_wire_discard(&parcel);
		ta_link_hang_up(&r->link);
		err = -EPROTO;
	} else {
		err = hold(r, &msg.borrow, &parcel);
	}
	/* After taking hold: what is held is not stale. */
	if (stale && !r->link.gone)
		drop_stale(r);
	if (err)
		return err;
	*b = msg.borrow;
	b->offset = b->ticket.slot * r->map.stride;
	return 0;
}

static int release(struct embedded_reader *r,
		   const struct tensorarena_slot_ref *ref)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;

	if (ref->slot >= r->map.slots)
		return -EINVAL;
	/* Whatever the answer: if it is an error, it was not held any more. */
	ta_mapping_release(&r->map, ref->slot, ref->generation);
	if (r->link.gone || ask(r, TENSORARENA_RELEASE, ref, &msg, &parcel))
		return 0;
	ta_wire_discard(&parcel);
	return msg.header.result;
}

/*
 * The release counts at once.  That the server hears of it is for others' sake;
 * if the message is lost, it has some of ours to read yet, and looks then.
 */
static void reader_done(struct ta_port *port, uint32_t slot,
			uint64_t generation)
{
	struct embedded_reader *r = to_reader(port);

	pthread_mutex_lock(&r->lock);
	if (!r->ended) {
		ta_mapping_release(&r->map, slot, generation);
		ta_released_write(r->released, slot, generation);
		if (!r->link.gone)
			ta_link_post(&r->link, TA_WIRE_RELEASED);
	}
	pthread_mutex_unlock(&r->lock);
}

static int detach(struct embedded_reader *r, struct tensorarena_detach *args)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;

	args->freed = 0;
	if (!r->link.gone && !ask(r, TENSORARENA_DETACH, args, &msg, &parcel)) {
		ta_wire_discard(&parcel);
		if (msg.header.result)
			return msg.header.result;
		args->freed = msg.detach.freed;
	}
	r->ended = -ESHUTDOWN;
	ta_mapping_revoke(&r->map);
	return 0;
}

static int run(struct embedded_reader *r, unsigned int cmd, void *arg)
{
	switch (cmd) {
	case TENSORARENA_RELEASE:
		return release(r, arg);
	case TENSORARENA_DETACH:
		return detach(r, arg);
	default:
		return next_or_borrow(r, cmd, arg);
	}
}

static int reader_call(struct ta_port *port, unsigned int cmd, void *arg)
{
	struct embedded_reader *r = to_reader(port);
	int err;

	err = check_args(cmd, arg);
	if (err)
		return err;
	pthread_mutex_lock(&r->lock);
	err = r->ended;
	if (!err) {
		err = run(r, cmd, arg);
		if (err == -EOWNERDEAD)
			r->ended = err;
	}
	pthread_mutex_unlock(&r->lock);
	return err;
}

/* Takes the memory of a slot ahead of any publication there. */
static int take_memory(struct embedded_reader *r, uint32_t slot)
{
	const struct tensorarena_slot_ref ref = { .slot = slot };
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	int err;

	if (r->link.gone || ask(r, TA_WIRE_MEMORY, &ref, &msg, &parcel))
		return -EPIPE;
	err = msg.header.result;
	if (!err && parcel.lost_fds)
		err = -EMFILE;
	if (!err && parcel.nr_fds)
		err = ta_mapping_prepare(&r->map, slot, parcel.fds[0]);
	ta_wire_discard(&parcel);
	/* The server thinks that we have it. */
	if (err && !msg.header.result)
		tell(r, TA_WIRE_UNSEE, &ref);
	return err;
}

static int reader_map(struct ta_port *port, uint32_t slot)
{
	struct embedded_reader *r = to_reader(port);
	int err;

	pthread_mutex_lock(&r->lock);
	err = r->ended;
	if (!err && slot >= r->map.slots)
		err = -EINVAL;
	if (!err)
		err = take_memory(r, slot);
	pthread_mutex_unlock(&r->lock);
	return err;
}

static int reader_poll_fd(struct ta_port *port, short *events)
{
	*events = POLLIN;
	return to_reader(port)->poll;
}

/* Without the lock, which a command has for as long as the writer is stopped. */
static bool reader_gone(struct ta_port *port)
{
	struct ta_link *link = &to_reader(port)->link;
	struct pollfd fds[2] = {
		{ .fd = link->sock, .events = POLLRDHUP },
		{ .fd = link->writer, .events = POLLIN },
	};

	return poll(fds, 2, 0) > 0;
}

static int reader_connect(struct ta_port *port)
{
	(void)port;
	return -EOPNOTSUPP;
}

static void free_reader(struct embedded_reader *r)
{
	ta_link_close(&r->link, false);
	close(r->poll);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void reader_close(struct ta_port *port, bool forked)
{
	struct embedded_reader *r = to_reader(port);
	const struct tensorarena_detach args = { 0 };

	if (forked) {
		close(r->map.hole);
		free_reader(r);
		return;
	}
	/* A round trip, so that what was held is free when this returns. */
	if (!r->ended && !r->link.gone)
		tell(r, TENSORARENA_DETACH, &args);
	ta_link_hang_up(&r->link);
	ta_mapping_destroy(&r->map);
	ta_released_unmap(r->released);
	free_reader(r);
}

static const struct ta_port_ops reader_ops = {
	.call = reader_call,
	.done = reader_done,
	.map = reader_map,
	.poll_fd = reader_poll_fd,
	.gone = reader_gone,
	.connect = reader_connect,
	.close = reader_close,
};

/* ---- attaching ---- */

static bool plausible_arena(const struct tensorarena_attach *args)
{
	return args->slots && args->slots <= TENSORARENA_MAX_SLOTS &&
	       args->slot_bytes && args->slot_bytes <= args->stride &&
	       !(args->stride % TENSORARENA_STRIDE_ALIGN) &&
	       args->stride <= INT64_MAX / args->slots;
}

/* Takes what came with the answer; the rest of @r depends on it. */
static int take_descriptors(struct embedded_reader *r,
			    struct ta_wire_parcel *parcel)
{
	struct epoll_event hang_up = { .events = EPOLLRDHUP };
	struct epoll_event death = { .events = EPOLLIN };
	int poll, writer, err;

	if (parcel->lost_fds)
		return -EMFILE;
	if (parcel->nr_fds != TA_WIRE_ATTACH_FDS)
		return -EPROTO;
	poll = parcel->fds[TA_WIRE_FD_POLL];
	writer = parcel->fds[TA_WIRE_FD_WRITER];
	if (!ta_pidfd_is(writer))
		return -EPROTO;
	if (epoll_ctl(poll, EPOLL_CTL_ADD, r->link.sock, &hang_up) ||
	    epoll_ctl(poll, EPOLL_CTL_ADD, writer, &death))
		return errno == EINVAL ? -EPROTO : -errno;
	err = ta_released_map(parcel->fds[TA_WIRE_FD_RELEASED], &r->released);
	if (err)
		return err;

	r->poll = poll;
	if (r->link.writer >= 0)
		close(r->link.writer);
	r->link.writer = writer;
	parcel->fds[TA_WIRE_FD_POLL] = -1;
	parcel->fds[TA_WIRE_FD_WRITER] = -1;
	return 0;
}

static int take_arena(struct embedded_reader *r,
		      const struct tensorarena_attach *args)
{
	int prot = PROT_READ;
	int err;

	if (!plausible_arena(args))
		return -EPROTO;
	if (args->arena_flags & TENSORARENA_CREATE_WRITABLE_READERS)
		prot |= PROT_WRITE;
	err = ta_mapping_init(&r->map, &r->port, args->slots, args->stride,
			      prot);
	if (err)
		return err;
	r->port.base = r->map.base;
	r->port.bytes = (size_t)(args->slots * args->stride);
	r->arena = args->arena;
	r->slot_bytes = args->slot_bytes;
	return 0;
}

/* Asks for a seat; the pidfd is for a server that cannot see this process. */
static int ask_seat(struct ta_link *link, struct ta_wire_message *msg,
		    struct ta_wire_parcel *parcel, uint64_t deadline)
{
	int self = ta_pidfd_open(getpid());
	int err;

	if (self < 0)
		return self;
	msg->header.command = TENSORARENA_ATTACH;
	err = ta_link_ask(link, msg, parcel, self, true, deadline);
	close(self);
	if (err)
		return err;
	err = msg->header.result;
	if (err)
		ta_wire_discard(parcel);
	return err;
}

/* In good order, but not at any price: this server has answered badly. */
static void give_seat_back(struct ta_link *link, uint64_t deadline)
{
	struct ta_wire_message msg = {
		.header.command = TENSORARENA_DETACH,
		.detach = { 0 },
	};
	struct ta_wire_parcel parcel;

	if (!ta_link_ask(link, &msg, &parcel, -1, false, deadline))
		ta_wire_discard(&parcel);
}

static int join(struct embedded_reader *r, struct tensorarena_attach *args,
		uint64_t deadline)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	int err;

	msg.attach = *args;
	err = ask_seat(&r->link, &msg, &parcel, deadline);
	if (err)
		return err;
	*args = msg.attach;
	err = take_descriptors(r, &parcel);
	ta_wire_discard(&parcel);
	if (!err)
		err = take_arena(r, args);
	/* There is a seat now. */
	if (err)
		give_seat_back(&r->link, deadline);
	return err;
}

int ta_embedded_attach(const struct ta_handle *handle, int fd,
		       struct tensorarena_attach *args, struct ta_port **port)
{
	uint64_t deadline = ta_attach_deadline();
	struct embedded_reader *r;
	int err;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->port.ops = &reader_ops;
	r->poll = -1;
	pthread_mutex_init(&r->lock, NULL);
	err = fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : 0;
	if (!err)
		err = ta_link_open(&r->link, handle->socket, fd, deadline);
	if (err)
		goto free_reader;

	args->arena = handle->arena;
	memcpy(args->cookie, handle->cookie, sizeof(args->cookie));
	err = join(r, args, deadline);
	if (!err) {
		*port = &r->port;
		return 0;
	}
	ta_link_close(&r->link, fd >= 0);
	ta_released_unmap(r->released);
	if (r->poll >= 0)
		close(r->poll);

free_reader:
	pthread_mutex_destroy(&r->lock);
	free(r);
	return err;
}
