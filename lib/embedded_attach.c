// SPDX-License-Identifier: MIT
/* Seating a reader: whether it may, and how its death will be seen. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "embedded.h"
#include "pidfd.h"

/* Takes as long wherever they differ. */
static bool same_secret(const struct ta_embedded *e, uint64_t arena,
			const uint8_t *cookie)
{
	uint64_t wrong = e->arena ^ arena;
	size_t i;

	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		wrong |= e->cookie[i] ^ cookie[i];
	return !wrong;
}

static bool accepted_uid(const struct ta_embedded *e, uid_t uid)
{
	return e->any_uid || !uid || uid == geteuid();
}

bool ta_peer_may(const struct ta_embedded *e, uint64_t arena,
		 const uint8_t *cookie, const struct ta_wire_parcel *parcel)
{
	return accepted_uid(e, parcel->creds.uid) &&
	       same_secret(e, arena, cookie);
}

/*
 * A pidfd of the process that sent @parcel.  Ours if we can see the process;
 * else the one it sent, which can at worst hide its own death.
 */
static int find_process(struct ta_wire_parcel *parcel)
{
	int fd;

	if (parcel->creds.pid)
		return ta_pidfd_open(parcel->creds.pid);
	if (!parcel->nr_fds)
		return parcel->lost_fds ? -EMFILE : -ESRCH;
	fd = parcel->fds[0];
	if (!ta_pidfd_is(fd))
		return -EINVAL;
	parcel->fds[0] = -1;
	return fd;
}

/*
 * What the reader polls: an epoll descriptor over an eventfd that it does not
 * get.  Who shares an eventfd can make its other users block in read(2) and
 * write(2), whatever flags they have set.
 */
static int make_poll(int *level)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int poll, err;

	*level = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*level < 0)
		return -errno;
	poll = epoll_create1(EPOLL_CLOEXEC);
	if (poll >= 0 && !epoll_ctl(poll, EPOLL_CTL_ADD, *level, &ev))
		return poll;
	err = -errno;
	if (poll >= 0)
		close(poll);
	close(*level);
	return err;
}

static int take_seat(struct ta_embedded *e, struct ta_peer *peer)
{
	__u64 reader;
	__u32 seat;
	int err;

	pthread_mutex_lock(&e->lock);
	err = ta_slots_attach(&e->slots, &seat, &reader);
	if (!err) {
		e->seat_pid[seat] = peer->pid;
		e->released[seat] = peer->released;
		peer->seat = seat;
		peer->reader = reader;
		peer->state = TA_PEER_SEATED;
		if (peer->handed)
			e->handed_alive--;
		peer->handed = false;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* Gets everything that may fail before there is a seat to give back. */
static int seat(struct ta_embedded *e, struct ta_peer *peer,
		struct ta_wire_parcel *parcel, int *poll, int *released)
{
	int pidfd, level, err;

	pidfd = find_process(parcel);
	if (pidfd < 0)
		return pidfd;
	*released = ta_released_make(&peer->released);
	if (*released < 0) {
		err = *released;
		goto close_pidfd;
	}
	*poll = make_poll(&level);
	if (*poll < 0) {
		err = *poll;
		goto close_released;
	}
	err = ta_peer_watch(e, pidfd, TA_EVENT_PIDFD(peer - e->peers));
	if (err)
		goto close_poll;
	peer->pid = parcel->creds.pid;
	err = take_seat(e, peer);
	if (err)
		goto unwatch;
	peer->pidfd = pidfd;
	peer->level = level;
	return 0;

unwatch:
	epoll_ctl(e->epoll, EPOLL_CTL_DEL, pidfd, NULL);
close_poll:
	close(*poll);
	close(level);
close_released:
	close(*released);
	ta_released_unmap(peer->released);
	peer->released = NULL;
close_pidfd:
	close(pidfd);
	return err;
}

int ta_peer_attach(struct ta_embedded *e, struct ta_peer *peer,
		   struct tensorarena_attach *args,
		   struct ta_wire_parcel *parcel, int *fds)
{
	int err;

	if (args->flags || args->reserved)
		return -EINVAL;
	if (!ta_peer_may(e, args->arena, args->cookie, parcel))
		return -EACCES;
	err = seat(e, peer, parcel, &fds[TA_WIRE_FD_POLL],
		   &fds[TA_WIRE_FD_RELEASED]);
	if (err)
		return err;
	fds[TA_WIRE_FD_WRITER] = e->self;

	memset(args->cookie, 0, sizeof(args->cookie));
	args->arena_flags = e->flags;
	args->slot_bytes = e->slots.slot_bytes;
	args->stride = e->stride;
	args->reader = peer->reader;
	args->slots = e->slots.nr;
	args->seat = peer->seat;
	args->fd = -1;
	return 0;
}
