// SPDX-License-Identifier: MIT
/* Memory headroom; see memory_check.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup.h"
#include "memory_check.h"
#include "why.h"

struct headroom {
	const char *root;
	uint64_t bytes;
	char *why;
	size_t why_size;
};

/* Reads a file of one number; "max", absent or unreadable is unlimited. */
static int read_number(const struct headroom *h, const char *dir,
		       const char *name, uint64_t *value)
{
	FILE *file;
	int err;

	*value = TA_MEMORY_UNLIMITED;
	err = ta_open_text(h->root, dir, name, &file);
	if (err || !file)
		return err;
	if (fscanf(file, "%" SCNu64, value) != 1)
		*value = TA_MEMORY_UNLIMITED;
	fclose(file);
	return 0;
}

/* One "key value" line of a table such as memory.stat or meminfo. */
struct row {
	const char *key;
	uint64_t value;
};

/* Fills in the rows that the table has and leaves the others. */
static int read_table(const struct headroom *h, const char *dir,
		      const char *name, struct row *rows, size_t nr)
{
	char key[64];
	uint64_t value;
	FILE *file;
	size_t i;
	int err;

	err = ta_open_text(h->root, dir, name, &file);
	if (err || !file)
		return err;
	while (fscanf(file, "%63s %" SCNu64 "%*[^\n]", key, &value) == 2) {
		for (i = 0; i < nr; i++)
			if (!strcmp(key, rows[i].key))
				rows[i].value = value;
	}
	fclose(file);
	return 0;
}

static int check_machine(struct headroom *h)
{
	struct row available = { "MemAvailable:", TA_MEMORY_UNLIMITED };
	char text[TA_SIZE_TEXT];
	int err;

	err = read_table(h, "/proc", "meminfo", &available, 1);
	if (err || available.value == TA_MEMORY_UNLIMITED)
		return err;
	h->bytes = available.value * 1024;
	ta_why(h->why, h->why_size, "this machine has %s of available memory",
	       ta_size(h->bytes, text));
	return 0;
}

/* Page cache of files can go at any time; shared memory is not among it. */
static void note_cgroup(struct headroom *h, const char *dir, uint64_t limit,
			uint64_t used, uint64_t cache)
{
	char left_text[TA_SIZE_TEXT], limit_text[TA_SIZE_TEXT];
	char used_text[TA_SIZE_TEXT], cache_text[TA_SIZE_TEXT];
	uint64_t kept = used > cache ? used - cache : 0;
	uint64_t left = limit > kept ? limit - kept : 0;

	if (left >= h->bytes)
		return;
	h->bytes = left;
	ta_why(h->why, h->why_size,
	       "memory cgroup %s has %s left (limit %s, in use %s, of that %s "
	       "reclaimable)",
	       dir, ta_size(left, left_text), ta_size(limit, limit_text),
	       ta_size(used, used_text), ta_size(cache, cache_text));
}

static int visit_unified(struct headroom *h, const char *dir)
{
	struct row file[] = { { "inactive_file", 0 }, { "active_file", 0 } };
	uint64_t limit, used;
	int err;

	err = read_number(h, dir, "memory.max", &limit);
	if (err || limit == TA_MEMORY_UNLIMITED)
		return err;
	err = read_number(h, dir, "memory.current", &used);
	if (err || used == TA_MEMORY_UNLIMITED)
		return err;
	err = read_table(h, dir, "memory.stat", file, 2);
	if (err)
		return err;
	note_cgroup(h, dir, limit, used, file[0].value + file[1].value);
	return TA_CGROUP_UP;
}

static int visit_v1(struct headroom *h, const char *dir, bool leaf)
{
	struct row stat[] = {
		{ "total_inactive_file", 0 },
		{ "total_active_file", 0 },
		/* Speaks for ancestors that a container cannot see. */
		{ "hierarchical_memory_limit", TA_MEMORY_UNLIMITED },
	};
	uint64_t limit, used, hierarchical;
	int err;

	if (!leaf) {
		/* 0: what the children use is not charged here nor above. */
		err = read_number(h, dir, "memory.use_hierarchy",
				  &hierarchical);
		if (err)
			return err;
		if (!hierarchical)
			return TA_CGROUP_STOP;
	}
	err = read_number(h, dir, "memory.limit_in_bytes", &limit);
	if (err)
		return err;
	err = read_table(h, dir, "memory.stat", stat, 3);
	if (err)
		return err;
	if (stat[2].value < limit)
		limit = stat[2].value;
	if (limit == TA_MEMORY_UNLIMITED)
		return TA_CGROUP_UP;
	err = read_number(h, dir, "memory.usage_in_bytes", &used);
	if (err || used == TA_MEMORY_UNLIMITED)
		return err;
	note_cgroup(h, dir, limit, used, stat[0].value + stat[1].value);
	return TA_CGROUP_UP;
}

static int visit(const struct ta_cgroup *cgroup, void *arg)
{
	struct headroom *h = arg;

	return cgroup->unified ? visit_unified(h, cgroup->dir) :
				 visit_v1(h, cgroup->dir, cgroup->leaf);
}

int ta_memory_headroom_at(const char *root, uint64_t *bytes, char *why,
			  size_t why_size)
{
	struct headroom h = {
		.root = root,
		.bytes = TA_MEMORY_UNLIMITED,
		.why = why,
		.why_size = why_size,
	};
	int err;

	ta_why(why, why_size, "no limit could be read");
	err = check_machine(&h);
	if (!err)
		err = ta_cgroup_walk(root, "memory", visit, &h);
	if (!err)
		*bytes = h.bytes;
	return err;
}

int ta_memory_headroom(uint64_t *bytes, char *why, size_t why_size)
{
	return ta_memory_headroom_at("", bytes, why, why_size);
}
