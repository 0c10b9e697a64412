/* SPDX-License-Identifier: GPL-2.0-only */
/* The small text files of /proc and /sys, for tests. */
#ifndef SELFTEST_TEXT_H
#define SELFTEST_TEXT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "arena.h"

static inline void arena_dir(char *path, size_t size, uint64_t arena)
{
	snprintf(path, size, "/sys/class/tensorarena/arena%" PRIu64, arena);
}

/* Whether the arena exists, by its directory in sysfs. */
static inline bool arena_exists(uint64_t arena)
{
	char path[128];

	arena_dir(path, sizeof(path), arena);
	return !access(path, F_OK);
}

/* One of its figures; ~0 when there is no such file or no number in it. */
static inline uint64_t arena_figure(uint64_t arena, const char *name)
{
	uint64_t value = ~0ULL;
	char path[128];
	size_t used;
	FILE *f;

	arena_dir(path, sizeof(path), arena);
	used = strlen(path);
	snprintf(path + used, sizeof(path) - used, "/%s", name);
	f = fopen(path, "re");
	if (!f)
		return value;
	if (fscanf(f, "%" SCNu64, &value) != 1)
		value = ~0ULL;
	MUST(!fclose(f));
	return value;
}

/*
 * Copies the line of /proc/self/smaps that starts with @key for the mapping at
 * @address; false when there is no such mapping or line.
 */
static inline bool smaps_line(const void *address, const char *key, char *line,
			      size_t size)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool here = false, found = false;
	unsigned long start, end;

	MUST(f);
	while (!found && fgets(line, (int)size, f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (unsigned long)address;
		else
			found = here && !strncmp(line, key, strlen(key));
	}
	MUST(!fclose(f));
	return found;
}

/* A size in that line, in bytes; ~0 when there is none. */
static inline uint64_t smaps_bytes(const void *address, const char *key)
{
	uint64_t kib;
	char line[256];

	if (!smaps_line(address, key, line, sizeof(line)) ||
	    sscanf(line + strlen(key), ": %" SCNu64 " kB", &kib) != 1)
		return ~0ULL;
	return kib << 10;
}

static inline bool kernel_at_least(int major, int minor)
{
	struct utsname name;
	int have_major, have_minor;

	MUST(!uname(&name));
	MUST(sscanf(name.release, "%d.%d", &have_major, &have_minor) == 2);
	return have_major > major ||
	       (have_major == major && have_minor >= minor);
}

#endif /* SELFTEST_TEXT_H */
