// SPDX-License-Identifier: MIT
/*
 * Keeps another process's arena from vanishing with it, so that its last
 * counters can be read: duplicates a file of the arena from that process and
 * stays until it is told to end.
 *
 *	hold PID	prints a line once it holds the file
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first descriptor of the process that is a file of an arena, or -1. */
static int find_arena_file(const char *pid)
{
	char path[64];
	char target[256];
	struct dirent *entry;
	int found = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (found < 0 && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target,
					 sizeof(target) - 1);

		if (len < 0)
			continue;
		target[len] = '\0';
		if (strstr(target, "tensorarena") &&
		    strcmp(target, "/dev/tensorarena"))
			found = atoi(entry->d_name);
	}
	closedir(dir);
	return found;
}

int main(int argc, char **argv)
{
	int pidfd;
	int fd;

	if (argc != 2) {
		fputs("usage: hold PID\n", stderr);
		return EXIT_FAILURE;
	}
	fd = find_arena_file(argv[1]);
	if (fd < 0) {
		fprintf(stderr, "hold: process %s has no arena\n", argv[1]);
		return EXIT_FAILURE;
	}
	pidfd = syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	if (pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, fd, 0) < 0) {
		perror("hold");
		return EXIT_FAILURE;
	}
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}
