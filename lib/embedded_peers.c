// SPDX-License-Identifier: MIT
/*
 * The server's connections: how they come, how they go, and what their poll
 * says.
 *
 * A connection that is not seated must not cost us anything for long, whoever
 * opens it: those by name have a time limit, and when there are too many the
 * oldest goes first, beginning with those of uids we would not seat anyway.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "embedded.h"

#define ATTACH_NS (TA_ATTACH_MS * 1000000ull)

int ta_peer_watch(struct ta_embedded *e, int fd, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * A forked child may hold the same open file, and epoll watches files, not
 * descriptors: closing ours would not end the events.
 */
static void unwatch_and_close(struct ta_embedded *e, int fd)
{
	if (fd < 0)
		return;
	epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

static bool unseated(const struct ta_peer *peer)
{
	return (peer->state == TA_PEER_WAITING && !peer->handed) ||
	       peer->state == TA_PEER_EVICTED ||
	       peer->state == TA_PEER_DETACHED;
}

/* How many connections are not seated, and which is to go first. */
static uint32_t count_unseated(const struct ta_embedded *e,
			       struct ta_peer **first)
{
	struct ta_peer *victim = NULL;
	uint32_t i, nr = 0;

	for (i = 0; i < TA_MAX_PEERS; i++) {
		struct ta_peer *peer = &e->peers[i];

		if (!unseated(peer))
			continue;
		nr++;
		if (!victim || peer->welcome < victim->welcome ||
		    (peer->welcome == victim->welcome &&
		     peer->since < victim->since))
			victim = peer;
	}
	*first = victim;
	return nr;
}

static void make_room(struct ta_embedded *e)
{
	struct ta_peer *victim;

	while (count_unseated(e, &victim) >= TA_MAX_UNSEATED)
		ta_peer_close(e, victim);
}

static struct ta_peer *find_unused(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < TA_MAX_PEERS; i++)
		if (e->peers[i].state == TA_PEER_UNUSED)
			return &e->peers[i];
	return NULL;
}

/* Whether the uid that connected, so far as that is known, may attach. */
static bool is_welcome(const struct ta_embedded *e, int sock)
{
	struct ucred creds;
	socklen_t size = sizeof(creds);

	if (e->any_uid)
		return true;
	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &creds, &size) &&
	       (!creds.uid || creds.uid == geteuid());
}

static void forget_handed(struct ta_embedded *e)
{
	pthread_mutex_lock(&e->lock);
	e->handed_alive--;
	pthread_mutex_unlock(&e->lock);
}

void ta_peer_add(struct ta_embedded *e, int sock, bool handed)
{
	struct ta_peer *peer;

	if (!handed)
		make_room(e);
	peer = find_unused(e);
	if (!peer || ta_peer_watch(e, sock, TA_EVENT_SOCKET(peer - e->peers))) {
		close(sock);
		if (handed)
			forget_handed(e);
		return;
	}
	peer->state = TA_PEER_WAITING;
	peer->sock = sock;
	peer->pidfd = -1;
	peer->level = -1;
	peer->raised = false;
	peer->handed = handed;
	peer->welcome = handed || is_welcome(e, sock);
	peer->stale = false;
	peer->wanted = false;
	peer->released = NULL;
	peer->pid = 0;
	peer->reader = 0;
	peer->since = ta_now_ns();
	peer->checked = 0;
	memset(peer->seen, 0, e->slots.nr * sizeof(peer->seen[0]));
}

/* Whether the writer took its seat away; under @lock. */
static bool evicted(const struct ta_embedded *e, const struct ta_peer *peer)
{
	return e->slots.reader[peer->seat] != peer->reader;
}

/* A reader that leaves without saying so has died. */
static void leave_seat(struct ta_embedded *e, const struct ta_peer *peer)
{
	pthread_mutex_lock(&e->lock);
	if (!evicted(e, peer)) {
		/* So that what it had released counts as released. */
		ta_released_reap(e, 1ull << peer->seat);
		ta_slots_leave(&e->slots, peer->seat, TA_LEAVE_DIED);
		ta_embedded_sync_free(e);
	}
	pthread_mutex_unlock(&e->lock);
}

/* Its seat may have another reader by now. */
static void drop_released(struct ta_embedded *e, struct ta_peer *peer)
{
	if (!peer->released)
		return;
	pthread_mutex_lock(&e->lock);
	if (e->released[peer->seat] == peer->released)
		e->released[peer->seat] = NULL;
	pthread_mutex_unlock(&e->lock);
	ta_released_unmap(peer->released);
	peer->released = NULL;
}

void ta_peer_close(struct ta_embedded *e, struct ta_peer *peer)
{
	if (peer->state == TA_PEER_SEATED)
		leave_seat(e, peer);
	drop_released(e, peer);
	if (peer->handed)
		forget_handed(e);
	peer->state = TA_PEER_CLOSED;
	peer->handed = false;
	/* A forked child of ours may hold a copy; the reader is not to wait. */
	shutdown(peer->sock, SHUT_RDWR);
	unwatch_and_close(e, peer->sock);
	unwatch_and_close(e, peer->pidfd);
	if (peer->level >= 0)
		close(peer->level);
}

uint64_t ta_peers_expire(struct ta_embedded *e, uint64_t now)
{
	uint64_t left = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < TA_MAX_PEERS; i++) {
		struct ta_peer *peer = &e->peers[i];

		if (peer->state != TA_PEER_WAITING || peer->handed)
			continue;
		if (now >= peer->since + ATTACH_NS)
			ta_peer_close(e, peer);
		else if (peer->since + ATTACH_NS - now < left)
			left = peer->since + ATTACH_NS - now;
	}
	ta_peers_reap(e);
	return left;
}

void ta_peers_reap(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < TA_MAX_PEERS; i++)
		if (e->peers[i].state == TA_PEER_CLOSED)
			e->peers[i].state = TA_PEER_UNUSED;
}

static void set_level(struct ta_peer *peer, bool raised)
{
	if (raised == peer->raised)
		return;
	if (raised)
		ta_event_raise(peer->level);
	else
		ta_event_lower(peer->level);
	peer->raised = raised;
}

/* Whether the reader maps memory that the slots have given up; under @lock. */
static bool has_stale(const struct ta_embedded *e, const struct ta_peer *peer)
{
	uint32_t i;

	for (i = 0; i < e->slots.nr; i++)
		if (peer->seen[i] && peer->seen[i] < e->memory[i].born)
			return true;
	return false;
}

/*
 * Notices what was done to a seated peer by the writer, and says what its level
 * is to be; under @lock.
 */
static bool look(const struct ta_embedded *e, struct ta_peer *peer, bool unseen)
{
	if (evicted(e, peer)) {
		peer->state = TA_PEER_EVICTED;
		return true;
	}
	if (peer->checked < e->last_drop) {
		peer->checked = e->last_drop;
		peer->stale = peer->stale || has_stale(e, peer);
		peer->wanted = peer->wanted || peer->stale;
	}
	return peer->stale || unseen || e->slots.writer_gone;
}

void ta_peer_look(struct ta_embedded *e, struct ta_peer *peer)
{
	if (peer->state == TA_PEER_SEATED)
		look(e, peer, false);
}

void ta_peer_tell(struct ta_embedded *e, struct ta_peer *peer)
{
	/* Once it is not seated any more, its poll never waits again. */
	bool raised = true;

	if (peer->level < 0)
		return;
	pthread_mutex_lock(&e->lock);
	if (peer->state == TA_PEER_SEATED)
		raised = look(e, peer,
			      ta_slots_has_unseen(&e->slots, peer->seat));
	pthread_mutex_unlock(&e->lock);
	set_level(peer, raised);
}

/*
 * One look for all, then the telling without the lock: who publishes or retracts
 * in between wakes us again, and all other changes are made by this thread.
 */
void ta_peers_tell(struct ta_embedded *e)
{
	struct ta_peer *peer[TA_MAX_PEERS];
	bool raised[TA_MAX_PEERS];
	uint64_t unseen = 0;
	uint32_t i, nr = 0;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->slots.nr; i++)
		unseen |= e->slots.slot[i].unseen;
	for (i = 0; i < TA_MAX_PEERS; i++) {
		if (e->peers[i].state != TA_PEER_SEATED)
			continue;
		peer[nr] = &e->peers[i];
		raised[nr] = look(e, peer[nr], unseen >> peer[nr]->seat & 1);
		nr++;
	}
	pthread_mutex_unlock(&e->lock);
	for (i = 0; i < nr; i++)
		set_level(peer[i], raised[i]);
}
