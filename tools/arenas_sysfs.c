// SPDX-License-Identifier: MIT
/*
 * What the kernel module says of its arenas in sysfs, one value a file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arenas_parts.h"
#include "number.h"

#define SYSFS_ROOT "/sys/class/tensorarena"
#define PREFIX "arena"
#define CONTROL "tensorarena"
/* One page is the most that a sysfs attribute can say. */
#define VALUE_BYTES 4096
/* How often to try for lists that belong together. */
#define TRIES 5

static const char *sysfs_root(void)
{
	const char *root = getenv("TENSORARENA_SYSFS");

	return root ? root : SYSFS_ROOT;
}

static bool arena_number(const char *name, uint64_t *number)
{
	return !strncmp(name, PREFIX, strlen(PREFIX)) &&
	       !number_u64(name + strlen(PREFIX), 0, UINT64_MAX, number);
}

static int is_arena(const struct dirent *entry)
{
	uint64_t number;

	return arena_number(entry->d_name, &number);
}

/* arena10 comes after arena9. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
	uint64_t x = 0, y = 0;

	arena_number((*a)->d_name, &x);
	arena_number((*b)->d_name, &y);
	return (x > y) - (x < y);
}

/* "uevent", "dev" and "power" are the driver core's, links lead elsewhere. */
static int is_attribute(const struct dirent *entry)
{
	return entry->d_type == DT_REG && strcmp(entry->d_name, "uevent") &&
	       strcmp(entry->d_name, "dev");
}

/* Whether there is one for each slot, or each seat. */
static bool is_list(const char *name)
{
	return !strcmp(name, "seats") || !strncmp(name, "seat_", 5) ||
	       (!strncmp(name, "slot_", 5) && strcmp(name, "slot_bytes"));
}

static json_t *parse_list(char *text)
{
	json_t *list = json_array();
	uint64_t number;
	char *word, *rest;

	for (word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		if (!number_u64(word, 0, INT64_MAX, &number))
			json_array_append_new(list, json_integer(number));
	return list;
}

/* A whole attribute without its newline, as JSON; NULL when unreadable. */
static json_t *read_attribute(int dir, const char *name)
{
	char text[VALUE_BYTES + 1];
	uint64_t number;
	ssize_t n;
	int fd;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	do
		n = read(fd, text, VALUE_BYTES);
	while (n < 0 && errno == EINTR);
	close(fd);
	if (n < 0)
		return NULL;
	if (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	if (is_list(name))
		return parse_list(text);
	if (!number_u64(text, 0, INT64_MAX, &number))
		return json_integer(number);
	return json_string(text);
}

static int read_attributes(int dir, json_t *object)
{
	struct dirent **entry;
	int nr, i;

	nr = scandirat(dir, ".", &entry, is_attribute, alphasort);
	if (nr < 0)
		return -1;
	for (i = 0; i < nr; i++) {
		json_t *value = read_attribute(dir, entry[i]->d_name);

		if (value)
			json_object_set_new(object, entry[i]->d_name, value);
		free(entry[i]);
	}
	free(entry);
	return 0;
}

/* Whether the lists of seats were read with the same seats open all along. */
static bool seats_agree(int dir, const json_t *object)
{
	const json_t *before = json_object_get(object, "seats");
	json_t *after = read_attribute(dir, "seats");
	/* An older module has no such file. */
	bool agree = !before || !after || json_equal(before, after);

	json_decref(after);
	return agree;
}

/* "seats" first: it is what the others are compared by. */
static int read_consistently(int dir, json_t *object)
{
	int tries = 0;

	do {
		json_t *seats = read_attribute(dir, "seats");

		if (read_attributes(dir, object)) {
			json_decref(seats);
			return -1;
		}
		if (seats)
			json_object_set_new(object, "seats", seats);
	} while (!seats_agree(dir, object) && ++tries < TRIES);
	return 0;
}

/* A directory may go away at any moment: what cannot be read is left out. */
static json_t *read_directory(int root, const char *name, json_t *object)
{
	int dir, err;

	dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		json_decref(object);
		return NULL;
	}
	err = read_consistently(dir, object);
	close(dir);
	if (err) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *read_arena(int root, const char *name)
{
	return read_directory(root, name,
			      json_pack("{s:s, s:s}", "arena", name, "engine",
					"device"));
}

static json_t *read_arenas(int root)
{
	json_t *arenas = json_array();
	struct dirent **entry;
	int nr, i;

	nr = scandirat(root, ".", &entry, is_arena, by_number);
	if (nr < 0) {
		json_decref(arenas);
		return NULL;
	}
	for (i = 0; i < nr; i++) {
		json_t *arena = read_arena(root, entry[i]->d_name);

		if (arena)
			json_array_append_new(arenas, arena);
		free(entry[i]);
	}
	free(entry);
	return arenas;
}

json_t *sysfs_read(struct reason *why)
{
	const char *path = sysfs_root();
	json_t *arenas, *module;
	int root;

	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 && errno == ENOENT)
		return json_pack("{s:[], s:n}", "arenas", "module");
	arenas = root < 0 ? NULL : read_arenas(root);
	if (!arenas) {
		reason_set(why, "cannot read %s: %s", path, strerror(errno));
		if (root >= 0)
			close(root);
		return NULL;
	}
	module = read_directory(root, CONTROL, json_object());
	close(root);
	return json_pack("{s:o, s:o}", "arenas", arenas, "module",
			 module ? module : json_object());
}

json_t *sysfs_arena(uint64_t id)
{
	char name[32];
	json_t *arena;
	int root;

	root = open(sysfs_root(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return NULL;
	snprintf(name, sizeof(name), PREFIX "%" PRIu64, id);
	arena = read_arena(root, name);
	close(root);
	return arena;
}
