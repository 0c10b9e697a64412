// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool complain(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	return false;
}

static bool write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	bool ok;

	if (!file)
		return complain(path);
	ok = fputs(text, file) >= 0;
	if (fclose(file) != 0 || !ok)
		return complain(path);
	return true;
}

/*
 * SLUB counts every object of a per-cpu slab as allocated; shrinking a cache
 * flushes those.  Caches that were merged are linked by several names.
 */
static bool shrink_caches(void)
{
	static const char dir_path[] = "/sys/kernel/slab";
	DIR *dir = opendir(dir_path);
	struct dirent *entry;
	bool ok = true;

	if (!dir)
		return complain(dir_path);
	while (ok && (entry = readdir(dir))) {
		char path[sizeof(dir_path) + sizeof(entry->d_name) + 16];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/shrink", dir_path,
			 entry->d_name);
		ok = write_file(path, "1");
	}
	closedir(dir);
	return ok;
}

static bool count_free_pages(struct memory *memory)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	char line[256];
	long value;

	if (!file)
		return complain("/proc/zoneinfo");
	memory->free_pages = 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, " pages free %ld", &value) == 1 ||
		    sscanf(line, " count: %ld", &value) == 1)
			memory->free_pages += value;
	}
	fclose(file);
	if (!memory->free_pages) {
		errno = ENODATA;
		return complain("/proc/zoneinfo");
	}
	return true;
}

static bool count_objects(struct memory *memory)
{
	FILE *file = fopen("/proc/slabinfo", "r");
	char line[512];
	size_t nr = 0;

	if (!file)
		return complain("/proc/slabinfo");
	while (nr < MAX_CACHES && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %ld", memory->name[nr],
			   &memory->objects[nr]) == 2)
			nr++;
	}
	fclose(file);
	memory->nr_caches = nr;
	if (!nr || nr == MAX_CACHES) {
		errno = nr ? ENOBUFS : ENODATA;
		return complain("/proc/slabinfo");
	}
	return true;
}

bool memory_measure(struct memory *memory)
{
	/*
	 * What delayed work still holds is freed in half a second.  Shrinking
	 * opens some hundred files, whose remains wait for RCU in batches;
	 * dropping caches sends those off.
	 */
	sync();
	usleep(500 * 1000);
	if (!write_file("/proc/sys/vm/drop_caches", "3") || !shrink_caches() ||
	    !write_file("/proc/sys/vm/drop_caches", "3"))
		return false;
	usleep(500 * 1000);
	return count_free_pages(memory) && count_objects(memory);
}

long memory_objects(const struct memory *memory, const char *cache)
{
	for (size_t i = 0; i < memory->nr_caches; i++) {
		if (!strcmp(memory->name[i], cache))
			return memory->objects[i];
	}
	return 0;
}
