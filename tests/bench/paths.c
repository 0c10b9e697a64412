// SPDX-License-Identifier: MIT
/* See paths.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contender.h"
#include "paths.h"

void path_beside(const char *name, char path[PATH_BYTES])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_BYTES - 1);
	char *slash;

	if (n < 0)
		die("/proc/self/exe", errno);
	path[n] = '\0';
	slash = strrchr(path, '/') + 1;
	snprintf(slash, PATH_BYTES - (size_t)(slash - path), "%s", name);
}
