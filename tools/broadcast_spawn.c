// SPDX-License-Identifier: MIT
/*
 * Starting a worker process.
 *
 * posix_spawn() rather than fork(): the parent has threads and gigabytes
 * mapped, neither of which a child has any use for.
 */
#include <errno.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broadcast_spawn.h"
#include "broadcast_wire.h"

static int spawn_with(pid_t *pid, int theirs)
{
	char *const argv[] = { "tarena", "worker", NULL };
	posix_spawn_file_actions_t actions;
	int err;

	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&actions, theirs, WIRE_FD);
	if (!err)
		err = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv,
				  environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int spawn_worker(pid_t *pid, int *socket)
{
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = spawn_with(pid, pair[1]);
	close(pair[1]);
	if (err)
		close(pair[0]);
	else
		*socket = pair[0];
	return err;
}
