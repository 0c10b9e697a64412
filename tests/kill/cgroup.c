// SPDX-License-Identifier: MIT
/* A memory cgroup that is too small, of either version. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kill.h"

#define LIMIT "50331648" /* bytes; half of it would be too little to exec */

static const struct version {
	const char *dir;
	const char *limit;
} versions[] = {
	{ "/sys/fs/cgroup/tensorarena-kill", "memory.max" },
	{ "/sys/fs/cgroup/memory/tensorarena-kill", "memory.limit_in_bytes" },
};

/* The one in use, once there is one; victims look for it again. */
static const struct version *find(void)
{
	size_t i;

	for (i = 0; i < COUNT(versions); i++)
		if (!access(versions[i].dir, W_OK))
			return &versions[i];
	return NULL;
}

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
	size_t i;

	oom_cgroup_remove();
	/* Where version 2 has the memory controller to give. */
	write_text("/sys/fs/cgroup", "cgroup.subtree_control", "+memory");
	for (i = 0; i < COUNT(versions); i++) {
		const struct version *v = &versions[i];

		if (mkdir(v->dir, 0755) && errno != EEXIST)
			continue;
		if (!write_text(v->dir, v->limit, LIMIT)) {
			/* Absent where there is no swap. */
			write_text(v->dir, "memory.swap.max", "0");
			return NULL;
		}
		rmdir(v->dir);
	}
	return "no memory cgroup may be made here";
}

void oom_cgroup_remove(void)
{
	size_t i;

	for (i = 0; i < COUNT(versions); i++)
		rmdir(versions[i].dir);
}

void oom_cgroup_enter(void)
{
	const struct version *v = find();

	MUST(v);
	MUST(!write_text(v->dir, "cgroup.procs", "0"));
}
