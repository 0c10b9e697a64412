// SPDX-License-Identifier: MIT
/* A memory cgroup that is too small, of either version. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kill.h"

#define LIMIT "50331648" /* bytes; half of it would be too little to exec */

/* Tells victims, which are images of their own, where it is. */
#define WHERE "TENSORARENA_KILL_CGROUP"

static const struct version {
	const char *root;
	const char *limit;
} versions[] = {
	{ "/sys/fs/cgroup", "memory.max" },
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
};

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

const char *oom_cgroup_make(void)
{
	char dir[64];
	size_t i;

	/* Where version 2 has the memory controller to give. */
	write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	for (i = 0; i < COUNT(versions); i++) {
		const struct version *v = &versions[i];

		/* Nobody else's, who may run the same program. */
		snprintf(dir, sizeof(dir), "%s/tensorarena-kill-%d", v->root,
			 getpid());
		if (mkdir(dir, 0755) && errno != EEXIST)
			continue;
		if (!write_text(dir, v->limit, LIMIT)) {
			/* Absent where there is no swap. */
			write_text(dir, "memory.swap.max", "0");
			MUST(!setenv(WHERE, dir, 1));
			return NULL;
		}
		rmdir(dir);
	}
	return "no memory cgroup may be made here";
}

void oom_cgroup_remove(void)
{
	const char *dir = getenv(WHERE);

	if (dir)
		MUST(!rmdir(dir));
}

void oom_cgroup_enter(void)
{
	const char *dir = getenv(WHERE);

	MUST(dir);
	MUST(!write_text(dir, "cgroup.procs", "0"));
}
