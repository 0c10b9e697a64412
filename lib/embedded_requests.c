// SPDX-License-Identifier: MIT
/*
 * Readers' requests, answered by the server.  A peer that sends anything but
 * well-formed requests, or does not read its answers, is closed; one that asks
 * for what it may not have gets the error that the module would give.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "embedded.h"

/**
 * struct request - one request on its way to its answer
 * @msg: the request, and in place the answer
 * @parcel: what came along
 * @fds: descriptors for the answer
 * @nr_fds: how many
 * @ours: the first of @fds that is not to be closed
 * @slot: whose memory is in @fds
 * @silent: there is to be no answer
 */
struct request {
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	int fds[TA_WIRE_MAX_FDS];
	uint32_t nr_fds;
	uint32_t ours;
	uint32_t slot;
	bool silent;
};

/* Commands are the same when all but their size is. */
static bool same_command(uint32_t a, uint32_t b)
{
	return !((a ^ b) & ~((uint32_t)_IOC_SIZEMASK << _IOC_SIZESHIFT));
}

/*
 * As the module does: shorter than a structure's first version is malformed,
 * fields that are not there are zero, and what is not known has to be.
 */
static int check_size(struct ta_wire_message *msg, size_t first, size_t known)
{
	size_t size = ta_wire_payload(msg->header.command);
	size_t i;

	if (size < first)
		return -EINVAL;
	for (i = known; i < size; i++)
		if (msg->bytes[i])
			return -E2BIG;
	for (i = size; i < known; i++)
		msg->bytes[i] = 0;
	return 0;
}

/*
 * Why a peer that attached may not act any more: 0 when it may, and then all it
 * has released before has been; under @lock.
 */
static int enter(struct ta_embedded *e, struct ta_peer *peer)
{
	ta_peer_look(e, peer);
	if (peer->state == TA_PEER_EVICTED)
		return -EOWNERDEAD;
	if (peer->state == TA_PEER_DETACHED)
		return -ESHUTDOWN;
	ta_released_reap(e, 1ull << peer->seat);
	return 0;
}

/* Adds the slot's memory to the answer if the reader does not have it yet. */
static int give_memory(struct ta_embedded *e, struct ta_peer *peer,
		       uint32_t slot, struct request *req)
{
	const struct ta_memory *memory = &e->memory[slot];
	int fd;

	if (memory->fd < 0 || peer->seen[slot] == memory->epoch)
		return 0;
	fd = ta_memory_for_reader(e, slot);
	if (fd < 0)
		return -ENOMEM;
	peer->seen[slot] = memory->epoch;
	req->fds[req->nr_fds++] = fd;
	req->ours = req->nr_fds;
	req->slot = slot;
	return 0;
}

/*
 * Tells the reader about a publication it now holds, or, when it cannot be
 * given its memory, lets it come again; under @lock.
 */
static int describe(struct ta_embedded *e, struct ta_peer *peer, uint32_t nr,
		    struct request *req)
{
	const struct ta_slot *slot = &e->slots.slot[nr];
	struct tensorarena_borrow *args = &req->msg.borrow;
	int err;

	err = give_memory(e, peer, nr, req);
	if (err) {
		ta_slots_unsee(&e->slots, peer->seat, nr, slot->generation);
		return err;
	}
	memset(args, 0, sizeof(*args));
	args->ticket.arena = e->arena;
	args->ticket.generation = slot->generation;
	args->ticket.nbytes = slot->nbytes;
	args->ticket.slot = nr;
	args->offset = nr * e->stride;
	args->meta_bytes = slot->meta_bytes;
	args->wanted = peer->wanted;
	memcpy(args->meta, slot->meta, sizeof(args->meta));
	peer->wanted = false;
	return 0;
}

static int next(struct ta_embedded *e, struct ta_peer *peer,
		struct request *req)
{
	const struct tensorarena_borrow *args = &req->msg.borrow;
	int err, nr;

	if (args->flags || args->reserved)
		return -EINVAL;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err) {
		nr = ta_slots_next(&e->slots, peer->seat);
		err = nr < 0 ? nr : describe(e, peer, (uint32_t)nr, req);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

static int borrow(struct ta_embedded *e, struct ta_peer *peer,
		  struct request *req)
{
	const struct tensorarena_borrow *args = &req->msg.borrow;
	int err;

	if (args->flags || args->reserved || args->ticket.reserved)
		return -EINVAL;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err && args->ticket.arena != e->arena)
		err = -ESTALE;
	if (!err)
		err = ta_slots_borrow(&e->slots, peer->seat, &args->ticket);
	if (!err)
		err = describe(e, peer, args->ticket.slot, req);
	pthread_mutex_unlock(&e->lock);
	return err;
}

static int release(struct ta_embedded *e, struct ta_peer *peer,
		   struct request *req)
{
	const struct tensorarena_slot_ref *args = &req->msg.ref;
	int err;

	if (args->flags)
		return -EINVAL;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err)
		err = ta_slots_release(&e->slots, peer->seat, args->slot,
				       args->generation);
	ta_embedded_sync_free(e);
	pthread_mutex_unlock(&e->lock);
	return err < 0 ? err : 0;
}

static int detach(struct ta_embedded *e, struct ta_peer *peer,
		  struct request *req)
{
	struct tensorarena_detach *args = &req->msg.detach;
	int err;

	if (args->flags)
		return -EINVAL;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err) {
		args->freed = (uint32_t)ta_slots_leave(&e->slots, peer->seat,
						       TA_LEAVE_DETACHED);
		peer->state = TA_PEER_DETACHED;
		ta_embedded_sync_free(e);
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* The reader could not map what it was given: as if it had not been. */
static int unsee(struct ta_embedded *e, struct ta_peer *peer,
		 struct request *req)
{
	const struct tensorarena_slot_ref *args = &req->msg.ref;
	int err;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err && args->slot < e->slots.nr) {
		ta_slots_unsee(&e->slots, peer->seat, args->slot,
			       args->generation);
		peer->seen[args->slot] = 0;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

static int tell_stale(struct ta_embedded *e, struct ta_peer *peer,
		      struct request *req)
{
	struct ta_wire_stale *args = (struct ta_wire_stale *)req->msg.bytes;
	uint32_t i;

	memset(args, 0, sizeof(*args));
	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->slots.nr; i++) {
		if (!peer->seen[i] || peer->seen[i] >= e->memory[i].born)
			continue;
		peer->seen[i] = 0;
		args->mask[i / 64] |= 1ull << i % 64;
	}
	peer->stale = false;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* For a reader that wants to pin before there is anything to read. */
static int give(struct ta_embedded *e, struct ta_peer *peer,
		struct request *req)
{
	const struct tensorarena_slot_ref *args = &req->msg.ref;
	int err;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	if (!err && args->slot >= e->slots.nr)
		err = -EINVAL;
	if (!err)
		err = give_memory(e, peer, args->slot, req);
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* It has written something; enter() looks at that. */
static int released(struct ta_embedded *e, struct ta_peer *peer,
		    struct request *req)
{
	int err;

	pthread_mutex_lock(&e->lock);
	err = enter(e, peer);
	pthread_mutex_unlock(&e->lock);
	req->silent = true;
	return err;
}

/* Commands with the size of their structure's first version. */
static const struct command {
	uint32_t command;
	size_t first;
	int (*run)(struct ta_embedded *e, struct ta_peer *peer,
		   struct request *req);
} commands[] = {
	{ TENSORARENA_NEXT, 312, next },
	{ TENSORARENA_BORROW, 312, borrow },
	{ TENSORARENA_RELEASE, 16, release },
	{ TENSORARENA_DETACH, 8, detach },
	{ TA_WIRE_UNSEE, 16, unsee },
	{ TA_WIRE_STALE, 32, tell_stale },
	{ TA_WIRE_MEMORY, 16, give },
	{ TA_WIRE_RELEASED, 0, released },
};

#define ATTACH_FIRST 72

static int attach(struct ta_embedded *e, struct ta_peer *peer,
		  struct request *req)
{
	int err;

	err = check_size(&req->msg, ATTACH_FIRST, sizeof(req->msg.attach));
	if (!err)
		err = ta_peer_attach(e, peer, &req->msg.attach, &req->parcel,
				     req->fds);
	if (!err) {
		req->nr_fds = TA_WIRE_ATTACH_FDS;
		req->ours = TA_WIRE_FD_WRITER;
	}
	return err;
}

#define OBSERVE_FIRST 2264

static int observe(struct ta_embedded *e, struct request *req)
{
	int err;

	err = check_size(&req->msg, OBSERVE_FIRST, sizeof(req->msg.observe));
	return err ? err : ta_peer_observe(e, &req->msg.observe, &req->parcel);
}

/* What a connection may ask for that has no seat yet. */
static int run_unseated(struct ta_embedded *e, struct ta_peer *peer,
			struct request *req)
{
	uint32_t command = req->msg.header.command;

	if (same_command(command, TENSORARENA_ATTACH))
		return attach(e, peer, req);
	if (same_command(command, TA_WIRE_OBSERVE))
		return observe(e, req);
	return -ENOTTY;
}

static int run(struct ta_embedded *e, struct ta_peer *peer, struct request *req)
{
	uint32_t command = req->msg.header.command;
	size_t i;
	int err;

	if (peer->state == TA_PEER_WAITING)
		return run_unseated(e, peer, req);
	/* The socket is inherited by forked children, the seat is not. */
	if (req->parcel.creds.pid != peer->pid)
		return -EIO;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!same_command(command, commands[i].command))
			continue;
		err = check_size(&req->msg, commands[i].first,
				 ta_wire_payload(commands[i].command));
		return err ? err : commands[i].run(e, peer, req);
	}
	return -ENOTTY;
}

/*
 * Whether what came along has a place.  A pidfd that we had no room for is
 * dealt with where it is needed.
 */
static bool acceptable(const struct ta_peer *peer, const struct request *req)
{
	bool any = req->parcel.nr_fds || req->parcel.lost_fds;

	return !any ||
	       (peer->state == TA_PEER_WAITING && req->parcel.nr_fds <= 1 &&
		same_command(req->msg.header.command, TENSORARENA_ATTACH));
}

static bool gives_memory(const struct request *req)
{
	return req->nr_fds && req->msg.header.command != TENSORARENA_ATTACH;
}

/*
 * The answer with its descriptors cannot be sent, because too many of ours are
 * under way already: answer without them, as if there were no memory.
 */
static int answer_without(struct ta_embedded *e, struct ta_peer *peer,
			  struct request *req)
{
	const struct tensorarena_ticket *ticket = &req->msg.borrow.ticket;

	pthread_mutex_lock(&e->lock);
	if (!same_command(req->msg.header.command, TA_WIRE_MEMORY))
		ta_slots_unsee(&e->slots, peer->seat, ticket->slot,
			       ticket->generation);
	peer->seen[req->slot] = 0;
	pthread_mutex_unlock(&e->lock);
	req->msg.header.result = -ENOMEM;
	ta_peer_tell(e, peer);
	return ta_wire_send(peer->sock, &req->msg, NULL, 0, false);
}

/* 0, or an error that ends the connection. */
static int answer(struct ta_embedded *e, struct ta_peer *peer,
		  struct request *req)
{
	struct ta_wire_message *msg = &req->msg;
	uint32_t i;
	int err;

	msg->header.result = run(e, peer, req);
	if (req->silent)
		return 0;
	msg->header.flags = peer->stale ? TA_WIRE_HAS_STALE : 0;
	/* Before the answer, so that the reader's poll is right when it has it. */
	ta_peer_tell(e, peer);
	err = ta_wire_send(peer->sock, msg, req->fds, req->nr_fds, false);
	for (i = 0; i < req->ours; i++)
		close(req->fds[i]);
	if (err && err != -EAGAIN && err != -EPIPE && gives_memory(req))
		err = answer_without(e, peer, req);
	return err;
}

void ta_peer_serve(struct ta_embedded *e, struct ta_peer *peer)
{
	struct request req = { .nr_fds = 0 };
	int err;

	err = ta_wire_recv(peer->sock, &req.msg, &req.parcel);
	if (err == -EAGAIN)
		return;
	if (!err) {
		err = acceptable(peer, &req) ? answer(e, peer, &req) : -EPROTO;
		ta_wire_discard(&req.parcel);
	}
	if (err)
		ta_peer_close(e, peer);
}
