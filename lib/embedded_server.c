// SPDX-License-Identifier: MIT
/*
 * The server: the thread that answers readers and notices their death.
 *
 * It waits in epoll on the listening socket, the peers' sockets and pidfds and
 * its own eventfd.  Everything is level-triggered, and each event is worth one
 * message or a few connections, so that no peer can keep it from the others.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "embedded.h"
#include "thread.h"

#define EVENTS 64
#define ACCEPTS 16
/* How long to leave waiting connections alone when descriptors ran out. */
#define ACCEPT_PAUSE_NS (100 * 1000 * 1000ull)

static void listen_for(struct ta_embedded *e, uint32_t events)
{
	struct epoll_event ev = {
		.events = events,
		.data.u64 = TA_EVENT_LISTENER,
	};

	/* Fails only for descriptors that are not registered. */
	epoll_ctl(e->epoll, EPOLL_CTL_MOD, e->listener, &ev);
}

static void accept_peers(struct ta_embedded *e)
{
	int sock, i;

	for (i = 0; i < ACCEPTS; i++) {
		sock = accept4(e->listener, NULL, NULL,
			       SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0)
			ta_peer_add(e, sock, false);
		else if (errno != EINTR && errno != ECONNABORTED)
			break;
	}
	if (i == ACCEPTS || errno == EAGAIN)
		return;
	/*
	 * Out of descriptors or memory.  The connection stays in the queue and
	 * would have us spin; somebody may close something meanwhile.
	 */
	listen_for(e, 0);
	e->listen_again = ta_now_ns() + ACCEPT_PAUSE_NS;
}

static void adopt_handed(struct ta_embedded *e)
{
	int socks[TA_MAX_HANDED];
	uint32_t nr, i;

	pthread_mutex_lock(&e->lock);
	nr = e->nr_handed;
	memcpy(socks, e->handed, nr * sizeof(socks[0]));
	e->nr_handed = 0;
	pthread_mutex_unlock(&e->lock);
	for (i = 0; i < nr; i++)
		ta_peer_add(e, socks[i], true);
}

static void handle_wake(struct ta_embedded *e)
{
	ta_event_lower(e->wake);
	/*
	 * Before looking: what comes after this wakes us again.  Pairs with
	 * the atomic_exchange() in ta_embedded_wake().
	 */
	atomic_store(&e->waking, false);
	adopt_handed(e);
	ta_peers_tell(e);
}

static void handle_socket(struct ta_embedded *e, struct ta_peer *peer,
			  uint32_t events)
{
	/* What was said before hanging up still counts. */
	if (events & EPOLLIN)
		ta_peer_serve(e, peer);
	else
		ta_peer_close(e, peer);
}

static void handle_event(struct ta_embedded *e, const struct epoll_event *ev)
{
	struct ta_peer *peer;

	if (ev->data.u64 == TA_EVENT_LISTENER) {
		accept_peers(e);
		return;
	}
	if (ev->data.u64 == TA_EVENT_WAKE) {
		handle_wake(e);
		return;
	}
	peer = &e->peers[ev->data.u64 >> 1];
	/* Closed by an earlier event of the same batch. */
	if (peer->state == TA_PEER_CLOSED)
		return;
	if (ev->data.u64 & 1)
		ta_peer_close(e, peer);
	else
		handle_socket(e, peer, ev->events);
}

/* Milliseconds until time itself is an event; -1: never. */
static int time_left(struct ta_embedded *e)
{
	uint64_t now = ta_now_ns();
	uint64_t left = ta_peers_expire(e, now);

	if (e->listen_again && now >= e->listen_again) {
		e->listen_again = 0;
		listen_for(e, EPOLLIN);
	}
	if (e->listen_again && e->listen_again - now < left)
		left = e->listen_again - now;
	if (left == UINT64_MAX)
		return -1;
	/* Rounded up, lest we come too early and spin. */
	left = left / 1000000 + 1;
	return left < INT_MAX ? (int)left : INT_MAX;
}

static void close_peers(struct ta_embedded *e)
{
	uint32_t i;

	adopt_handed(e);
	for (i = 0; i < TA_MAX_PEERS; i++)
		if (e->peers[i].state != TA_PEER_UNUSED)
			ta_peer_close(e, &e->peers[i]);
	ta_peers_reap(e);
}

static void *serve(void *arg)
{
	struct ta_embedded *e = arg;
	struct epoll_event events[EVENTS];
	int i, nr;

	while (!atomic_load(&e->stop)) {
		nr = epoll_wait(e->epoll, events, EVENTS, time_left(e));
		/* Somebody closed what is not theirs.  Better no server... */
		if (nr < 0 && errno != EINTR)
			break;
		for (i = 0; i < nr; i++)
			handle_event(e, &events[i]);
		ta_peers_reap(e);
	}
	/* ...and readers that know it. */
	shutdown(e->listener, SHUT_RDWR);
	close_peers(e);
	return NULL;
}

static int start_thread(struct ta_embedded *e)
{
	int err;

	err = ta_thread_start(&e->server, serve, e);
	if (err)
		return err;
	/* For people who look at the process; nothing depends on it. */
	pthread_setname_np(e->server, "tensorarena");
	return 0;
}

int ta_server_start(struct ta_embedded *e)
{
	int err;

	err = ta_peer_watch(e, e->listener, TA_EVENT_LISTENER);
	if (!err)
		err = ta_peer_watch(e, e->wake, TA_EVENT_WAKE);
	if (!err)
		err = start_thread(e);
	return err;
}

void ta_server_stop(struct ta_embedded *e)
{
	/* Pairs with the atomic_load() in serve(), which the event wakes. */
	atomic_store(&e->stop, true);
	ta_event_raise(e->wake);
	pthread_join(e->server, NULL);
}

int ta_server_connect(struct ta_embedded *e)
{
	int pair[2], one = 1, err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* Before anybody can write to the other end. */
	if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)))
		err = -errno;
	if (!err) {
		pthread_mutex_lock(&e->lock);
		if (e->handed_alive == TA_MAX_HANDED) {
			err = -EUSERS;
		} else {
			e->handed_alive++;
			e->handed[e->nr_handed++] = pair[0];
		}
		pthread_mutex_unlock(&e->lock);
	}
	if (err) {
		close(pair[0]);
		close(pair[1]);
		return err;
	}
	ta_embedded_wake(e);
	return pair[1];
}
