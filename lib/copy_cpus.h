/* SPDX-License-Identifier: MIT */
/* Which processors working threads may run on, and how many of them pay. */
#ifndef TA_COPY_CPUS_H
#define TA_COPY_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* More than any kernel has; a cpu_set_t alone is too small for some. */
#define TA_MAX_CPUS 8192

/**
 * struct ta_cpus - a set of processors
 * @set: bits, for the CPU_*_S() macros
 */
struct ta_cpus {
	cpu_set_t set[TA_MAX_CPUS / CPU_SETSIZE];
};

/**
 * struct ta_cpus_found - what the calling thread has
 * @cpus: the processors it may run on, on the node only if it may there
 * @on_node: whether @cpus are those of the node, fewer than it has in all
 * @threads: how many threads can make progress at one time, at least 1: as many
 *	as there are processors, or fewer when a cgroup's quota gives less time
 */
struct ta_cpus_found {
	struct ta_cpus cpus;
	bool on_node;
	uint32_t threads;
};

/* How many processors the calling thread may run on; 1 when that is unknown. */
uint32_t ta_cpus_allowed(void);

/* @node: NUMA node that holds the memory, or negative for any. */
void ta_cpus_find(int node, struct ta_cpus_found *found);

/* The same with @root before the paths in /sys and /proc: for tests. */
void ta_cpus_find_at(const char *root, int node, struct ta_cpus_found *found);

/* Moves the calling thread; it stays where it is when it may not. */
void ta_cpus_move_to(const struct ta_cpus *cpus);

#endif /* TA_COPY_CPUS_H */
