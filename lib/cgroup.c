// SPDX-License-Identifier: MIT
/* Finds the process's cgroups; see cgroup.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup.h"

int ta_open_text(const char *root, const char *dir, const char *name,
		 FILE **file)
{
	char path[PATH_MAX];
	int n;

	*file = NULL;
	n = snprintf(path, sizeof(path), "%s%s/%s", root, dir, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	*file = fopen(path, "re");
	if (!*file && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
		return -errno;
	return 0;
}

/* Whether a comma-separated @list has @word. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *p;

	for (p = list; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
		if (strcspn(p, ",") == len && !memcmp(p, word, len))
			return true;
	return false;
}

/* The kernel writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' &&
		    text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
		    text[3] <= '7') {
			*to++ = (char)((text[1] - '0') * 64 +
				       (text[2] - '0') * 8 + text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

struct mount {
	char *root; /* the cgroup that is mounted */
	char *point; /* where */
	bool unified;
};

/* Takes a line of mountinfo apart in place; false when it is not for us. */
static bool parse_mount(char *line, const char *controller, struct mount *m)
{
	char *rest = strstr(line, " - ");
	char *save, *field, *type, *options;
	int i;

	if (!rest)
		return false;
	*rest = '\0';
	field = strtok_r(line, " ", &save);
	for (i = 0; field && i < 3; i++)
		field = strtok_r(NULL, " ", &save);
	m->root = field;
	m->point = field ? strtok_r(NULL, " ", &save) : NULL;
	if (!m->point)
		return false;

	type = strtok_r(rest + 3, " ", &save);
	if (!type || !strtok_r(NULL, " ", &save))
		return false;
	options = strtok_r(NULL, " \n", &save);
	m->unified = !strcmp(type, "cgroup2");
	if (!m->unified && (strcmp(type, "cgroup") || !options ||
			    !list_has(options, controller)))
		return false;
	unescape(m->root);
	unescape(m->point);
	return true;
}

/*
 * Where cgroup @path lies below the cgroup @top that is mounted, or NULL when
 * it does not (then the mount shows somebody else's cgroups).
 */
static const char *below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (strstr(path, "/.."))
		return NULL;
	if (!strcmp(top, "/"))
		return strcmp(path, "/") ? path : "";
	if (strncmp(path, top, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

typedef int (*visit_fn)(const struct ta_cgroup *cgroup, void *arg);

static int climb(const struct mount *m, const char *path, visit_fn visit,
		 void *arg)
{
	const char *rest = below(path, m->root);
	struct ta_cgroup cgroup = { .unified = m->unified, .leaf = true };
	char dir[PATH_MAX];
	size_t top = strlen(m->point);
	int n, ret;

	if (!rest)
		return 0;
	n = snprintf(dir, sizeof(dir), "%s%s", m->point, rest);
	if (n < 0 || (size_t)n >= sizeof(dir))
		return 0;
	cgroup.dir = dir;
	for (;;) {
		ret = visit(&cgroup, arg);
		if (ret)
			return ret < 0 ? ret : 0;
		if (strlen(dir) <= top)
			return 0;
		*strrchr(dir, '/') = '\0';
		cgroup.leaf = false;
	}
}

/* Climbs from cgroup @path in every mount of its hierarchy. */
static int climb_mounts(const char *root, const char *controller, bool unified,
			const char *path, visit_fn visit, void *arg)
{
	struct mount m;
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	int err;

	err = ta_open_text(root, "/proc/self", "mountinfo", &file);
	if (err || !file)
		return err;
	while (!err && getline(&line, &size, file) > 0) {
		if (parse_mount(line, controller, &m) && m.unified == unified)
			err = climb(&m, path, visit, arg);
	}
	free(line);
	fclose(file);
	return err;
}

int ta_cgroup_walk(const char *root, const char *controller, visit_fn visit,
		   void *arg)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	int err;

	err = ta_open_text(root, "/proc/self", "cgroup", &file);
	if (err || !file)
		return err;
	/* "<hierarchy>:<controllers>:<path>"; version 2 is "0::<path>". */
	while (!err && getline(&line, &size, file) > 0) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		bool unified;

		if (!path)
			continue;
		*controllers++ = '\0';
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		unified = !*controllers && !strcmp(line, "0");
		if (unified || list_has(controllers, controller))
			err = climb_mounts(root, controller, unified, path,
					   visit, arg);
	}
	free(line);
	fclose(file);
	return err;
}
