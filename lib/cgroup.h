/* SPDX-License-Identifier: MIT */
/* Finds the cgroups that bound what this process may use. */
#ifndef TA_CGROUP_H
#define TA_CGROUP_H

#include <stdbool.h>
#include <stdio.h>

/**
 * struct ta_cgroup - one cgroup
 * @dir: its directory, without the root given to ta_cgroup_walk()
 * @unified: version 2; version 1 otherwise
 * @leaf: the one the process is in, rather than an ancestor
 */
struct ta_cgroup {
	const char *dir;
	bool unified;
	bool leaf;
};

/* What a visitor may answer, besides -errno. */
enum ta_cgroup_visit {
	TA_CGROUP_UP = 0, /* go on with the parent */
	TA_CGROUP_STOP = 1, /* the ancestors do not matter */
};

/*
 * Visits the process's cgroup in every mounted hierarchy that can have the
 * @controller, such as "memory", then each of its ancestors that can be seen
 * from here.  0, or what the visitor or ta_open_text() failed with.
 */
int ta_cgroup_walk(const char *root, const char *controller,
		   int (*visit)(const struct ta_cgroup *cgroup, void *arg),
		   void *arg);

/*
 * Opens @root/@dir/@name for reading.  A file that is not there, or that we
 * may not read, is 0 and a NULL *@file; -errno only when we lack the means.
 */
int ta_open_text(const char *root, const char *dir, const char *name,
		 FILE **file);

#endif /* TA_CGROUP_H */
