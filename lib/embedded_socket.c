// SPDX-License-Identifier: MIT
/* The name under which readers find the server. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "embedded.h"

#define BACKLOG 128

static int make_socket(int flags)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	return sock < 0 ? -errno : sock;
}

/* "@name" is abstract: its address starts with a NUL and ends with the name. */
static socklen_t make_address(const char *socket, struct sockaddr_un *addr)
{
	bool abstract = socket[0] == '@';
	size_t length = strlen(socket);

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(addr->sun_path, socket, length);
	if (abstract)
		addr->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length +
			   (abstract ? 0 : 1));
}

static int connect_to(int sock, const char *socket)
{
	struct sockaddr_un addr;
	socklen_t length = make_address(socket, &addr);

	return connect(sock, (struct sockaddr *)&addr, length) ? -errno : 0;
}

/* How long connecting may wait from now on: 0, or -ETIMEDOUT: no more. */
static int limit_wait(int sock, uint64_t deadline)
{
	uint64_t now = ta_now_ns();
	struct timeval left;
	uint64_t us;

	if (now >= deadline)
		return -ETIMEDOUT;
	/* Never 0, which would be for ever. */
	us = (deadline - now) / 1000 + 1;
	left.tv_sec = (time_t)(us / 1000000);
	left.tv_usec = (suseconds_t)(us % 1000000);
	return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) ?
		       -errno :
		       0;
}

/*
 * Connecting waits while others, who may have given up long ago, are queued
 * before a server that is stopped.  The limit stays, and matters no more: what
 * is sent and received later does not block.
 */
static int dial(int sock, const char *socket, uint64_t deadline)
{
	int err;

	do {
		err = limit_wait(sock, deadline);
		if (!err)
			err = connect_to(sock, socket);
	} while (err == -EINTR || err == -EAGAIN);
	return err;
}

int ta_embedded_dial(const char *socket, uint64_t deadline)
{
	int sock, err;

	if (!ta_socket_valid(socket))
		return -EINVAL;
	sock = make_socket(0);
	if (sock < 0)
		return sock;
	err = dial(sock, socket, deadline);
	if (err) {
		close(sock);
		return err;
	}
	return sock;
}

static int bind_to(int sock, const char *socket)
{
	struct sockaddr_un addr;
	socklen_t length = make_address(socket, &addr);

	return bind(sock, (struct sockaddr *)&addr, length) ? -errno : 0;
}

static int random_name(char *name, size_t size)
{
	uint64_t random[2];
	int err;

	err = ta_random(random, sizeof(random));
	if (err)
		return err;
	snprintf(name, size, "@tensorarena-%016llx%016llx",
		 (unsigned long long)random[0], (unsigned long long)random[1]);
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether connections to this socket are refused: 1, 0 or -errno. */
static int refuses(const char *path)
{
	int sock, err;

	sock = make_socket(SOCK_NONBLOCK);
	if (sock < 0)
		return sock;
	err = connect_to(sock, path);
	close(sock);
	return err == -ECONNREFUSED;
}

/*
 * Removes a socket that a dead process left behind: 0, or -EADDRINUSE when it
 * is none of that.  A connection tells: nobody listens on a stale one.  But
 * nobody listens yet on one that was made this instant either, so it is asked
 * twice.
 */
static int remove_stale(const char *path)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	struct stat before, after;
	int refused;

	if (lstat(path, &before))
		return errno == ENOENT ? 0 : -errno;
	/* Connecting to any other file is refused as well. */
	if (!S_ISSOCK(before.st_mode))
		return -EADDRINUSE;
	refused = refuses(path);
	if (refused > 0) {
		nanosleep(&pause, NULL);
		refused = refuses(path);
	}
	if (refused <= 0)
		return refused < 0 ? refused : -EADDRINUSE;
	/* Another process may have replaced it just now. */
	if (lstat(path, &after))
		return errno == ENOENT ? 0 : -errno;
	if (!same_file(&before, &after))
		return -EADDRINUSE;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/*
 * Binds to a path that, until the permissions are right and somebody listens,
 * refuses connections.
 */
static int bind_path(struct ta_embedded *e, int sock, const char *path)
{
	struct stat st;
	int err;

	err = bind_to(sock, path);
	if (err == -EADDRINUSE) {
		err = remove_stale(path);
		if (!err)
			err = bind_to(sock, path);
	}
	if (err)
		return err;
	if (!lstat(path, &st) && !chmod(path, e->any_uid ? 0666 : 0600)) {
		e->socket_ino = st.st_ino;
		return 0;
	}
	err = -errno;
	unlink(path);
	return err;
}

int ta_embedded_listen(struct ta_embedded *e, const char *path)
{
	char name[sizeof(e->socket)] = "";
	int sock, err, one = 1;

	err = 0;
	if (!path)
		err = random_name(name, sizeof(name));
	else if (path[0] != '/' || !ta_socket_valid(path))
		err = -EINVAL;
	else
		snprintf(name, sizeof(name), "%s", path);
	if (err)
		return err;

	sock = make_socket(SOCK_NONBLOCK);
	if (sock < 0)
		return sock;
	err = path ? bind_path(e, sock, name) : bind_to(sock, name);
	if (err)
		goto close_socket;
	memcpy(e->socket, name, sizeof(name));
	/* Connections inherit it, so that no first message comes without. */
	if (!setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) &&
	    !listen(sock, BACKLOG)) {
		e->listener = sock;
		return 0;
	}
	err = -errno;
	ta_embedded_unlink(e);

close_socket:
	close(sock);
	return err;
}

void ta_embedded_unlink(struct ta_embedded *e)
{
	struct stat st;

	if (e->socket[0] == '/' && !lstat(e->socket, &st) &&
	    S_ISSOCK(st.st_mode) && st.st_ino == e->socket_ino)
		unlink(e->socket);
}
