// SPDX-License-Identifier: MIT
/*
 * Starting a worker process.
 *
 * posix_spawn() rather than fork(): the parent has threads and gigabytes
 * mapped, neither of which a child has any use for.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broadcast_spawn.h"
#include "broadcast_wire.h"

static int spawn_with(pid_t *pid, int theirs, int bytes)
{
	char *const argv[] = { "tarena", "worker", NULL };
	posix_spawn_file_actions_t actions;
	int err;

	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, theirs, WIRE_FD);
	if (!err && bytes >= 0)
		err = posix_spawn_file_actions_adddup2(&actions, bytes,
						       WIRE_BYTES_FD);
	if (!err)
		err = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv,
				  environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* Theirs, @pair[1], lies where neither descriptor of theirs is to be. */
static int make_pair(int type, int pair[2])
{
	int theirs;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair))
		return -errno;
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, WIRE_BYTES_FD + 1);
	if (theirs < 0) {
		theirs = -errno;
		close(pair[0]);
		close(pair[1]);
		return theirs;
	}
	close(pair[1]);
	pair[1] = theirs;
	return 0;
}

int spawn_worker(pid_t *pid, int *socket, int *bytes)
{
	int pair[2], stream[2] = { -1, -1 };
	int err;

	err = make_pair(SOCK_SEQPACKET, pair);
	if (err)
		return err;
	if (bytes)
		err = make_pair(SOCK_STREAM, stream);
	if (!err)
		err = spawn_with(pid, pair[1], stream[1]);
	close(pair[1]);
	if (stream[1] >= 0)
		close(stream[1]);
	if (err) {
		close(pair[0]);
		if (stream[0] >= 0)
			close(stream[0]);
		return err;
	}
	*socket = pair[0];
	if (bytes)
		*bytes = stream[0];
	return 0;
}
