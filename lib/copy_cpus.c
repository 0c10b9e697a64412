// SPDX-License-Identifier: MIT
/* Processors to copy with; see copy_cpus.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cgroup.h"
#include "copy_cpus.h"

/* Whether the calling thread's processors are known. */
static bool own_cpus(struct ta_cpus *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	return !sched_getaffinity(0, sizeof(cpus->set), cpus->set);
}

static uint32_t count(const struct ta_cpus *cpus)
{
	return (uint32_t)CPU_COUNT_S(sizeof(cpus->set), cpus->set);
}

uint32_t ta_cpus_allowed(void)
{
	struct ta_cpus cpus;

	return own_cpus(&cpus) ? count(&cpus) : 1;
}

/* Reads a list such as "0-3,8,10-11"; what cannot be read adds nothing. */
static void parse_list(FILE *file, struct ta_cpus *cpus)
{
	unsigned int first, last;
	int separator;

	while (fscanf(file, "%u", &first) == 1) {
		last = first;
		separator = getc(file);
		if (separator == '-') {
			if (fscanf(file, "%u", &last) != 1)
				return;
			separator = getc(file);
		}
		for (; first <= last && first < TA_MAX_CPUS; first++)
			CPU_SET_S(first, sizeof(cpus->set), cpus->set);
		if (separator != ',')
			return;
	}
}

/* Leaves of @cpus those on the node, if there are any. */
static bool keep_node(const char *root, int node, struct ta_cpus *cpus)
{
	struct ta_cpus on_node = { 0 };
	char dir[64];
	FILE *file;

	snprintf(dir, sizeof(dir), "/sys/devices/system/node/node%d", node);
	if (ta_open_text(root, dir, "cpulist", &file) || !file)
		return false;
	parse_list(file, &on_node);
	fclose(file);
	CPU_AND_S(sizeof(on_node.set), on_node.set, on_node.set, cpus->set);
	if (!count(&on_node) ||
	    CPU_EQUAL_S(sizeof(on_node.set), on_node.set, cpus->set))
		return false;
	*cpus = on_node;
	return true;
}

struct quota {
	const char *root;
	uint32_t threads;
};

/* "max" or -1 is no number here, and no limit. */
static bool read_number(const char *root, const char *dir, const char *name,
			uint64_t *value)
{
	FILE *file;
	bool ok;

	if (ta_open_text(root, dir, name, &file) || !file)
		return false;
	ok = fscanf(file, "%" SCNu64, value) == 1 && *value <= INT64_MAX;
	fclose(file);
	return ok;
}

static bool read_max(const char *root, const char *dir, uint64_t *quota,
		     uint64_t *period)
{
	FILE *file;
	bool ok;

	if (ta_open_text(root, dir, "cpu.max", &file) || !file)
		return false;
	ok = fscanf(file, "%" SCNu64 " %" SCNu64, quota, period) == 2;
	fclose(file);
	return ok;
}

static int visit(const struct ta_cgroup *cgroup, void *arg)
{
	uint64_t quota, period;
	struct quota *q = arg;
	bool limited;

	if (cgroup->unified)
		limited = read_max(q->root, cgroup->dir, &quota, &period);
	else
		limited = read_number(q->root, cgroup->dir, "cpu.cfs_quota_us",
				      &quota) &&
			  read_number(q->root, cgroup->dir, "cpu.cfs_period_us",
				      &period);
	if (limited && period && quota / period < q->threads)
		q->threads = (uint32_t)(quota / period);
	return TA_CGROUP_UP;
}

void ta_cpus_find_at(const char *root, int node, struct ta_cpus_found *found)
{
	struct quota quota = { .root = root };

	found->on_node = false;
	found->threads = 1;
	if (!own_cpus(&found->cpus))
		return;
	if (node >= 0)
		found->on_node = keep_node(root, node, &found->cpus);
	quota.threads = count(&found->cpus);
	/* What cannot be read does not limit. */
	ta_cgroup_walk(root, "cpu", visit, &quota);
	if (quota.threads > 1)
		found->threads = quota.threads;
}

void ta_cpus_find(int node, struct ta_cpus_found *found)
{
	ta_cpus_find_at("", node, found);
}

void ta_cpus_move_to(const struct ta_cpus *cpus)
{
	sched_setaffinity(0, sizeof(cpus->set), cpus->set);
}
