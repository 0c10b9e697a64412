/* SPDX-License-Identifier: MIT */
/*
 * The arenas of this machine as JSON: what stat, top and metrics show.
 *
 * An arena is an object with a member for each figure, by the names that
 * docs/ABI/testing/sysfs-class-tensorarena gives them, and
 *
 *	"arena": "arena7"	its name
 *	"engine": "device"	or "embedded"
 *
 * Figures are integers, those with one for each slot or seat arrays of them.
 * An arena of the embedded engine lacks what that has not.
 */
#ifndef TARENA_ARENAS_H
#define TARENA_ARENAS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <tensorarena.h>

#include "complain.h"

#define MAX_HANDLES 64

/**
 * struct arenas - where to look
 * @handle: handles of the arenas to show
 * @handles: how many; 0: all of the device engine
 */
struct arenas {
	char handle[MAX_HANDLES][TA_HANDLE_MAX];
	size_t handles;
};

/*
 * Adds a handle, or that in the first line of a file: "@PATH".  0, or -1 with
 * @why.
 */
int arenas_add(struct arenas *arenas, const char *handle, struct reason *why);

/*
 * {"arenas": [...], "module": {...}}, where "module" has the totals, and is
 * null when the module is not loaded.  NULL, with @why, when nothing can be
 * read.  With handles there is no "module", and one that no longer answers is an
 * arena with "error".
 */
json_t *arenas_read(const struct arenas *arenas, struct reason *why);

/*
 * The same for a command, which has nothing to say but this: -1 or NULL, with a
 * complaint.
 */
int arenas_option(struct arenas *arenas, const char *handle);
json_t *arenas_look(const struct arenas *arenas);

/* A figure, or 0 when the arena has none of that name. */
long long arenas_figure(const json_t *arena, const char *name);
/* The same in an array. */
long long arenas_figure_at(const json_t *arena, const char *name, size_t i);
/* "arena7" */
const char *arenas_name(const json_t *arena);

#endif /* TARENA_ARENAS_H */
