// SPDX-License-Identifier: MIT
/*
 * tarena stat: what the kernel module says of its arenas in sysfs, one value a
 * file, as a table or as JSON.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "complain.h"
#include "number.h"
#include "tarena.h"

#define SYSFS_ROOT "/sys/class/tensorarena"
#define PREFIX "arena"
/* One page is the most that a sysfs attribute can say. */
#define VALUE_BYTES 4096

static const char usage[] =
	"usage: tarena stat [--json]\n"
	"\n"
	"Shows the arenas of the kernel module, from " SYSFS_ROOT " (or from\n"
	"where the environment variable TENSORARENA_SYSFS says).\n";

/* The columns of the table; the JSON has every attribute there is. */
static const struct {
	const char *attribute;
	const char *heading;
} columns[] = {
	{ "slots", "slots" },
	{ "slot_bytes", "slot bytes" },
	{ "free", "free" },
	{ "published", "published" },
	{ "readers", "readers" },
	{ "allocated_bytes", "allocated bytes" },
	{ "puts", "puts" },
	{ "put_bytes", "put bytes" },
	{ "released", "released" },
	{ "declined_no_slot", "no slot" },
	{ "declined_oversize", "oversize" },
	{ "declined_no_memory", "no memory" },
	{ "reclaimed_dead_readers", "dead readers" },
};

#define NR_COLUMNS (sizeof(columns) / sizeof(*columns))

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

/* "uevent" and "power" are the driver core's, links lead elsewhere. */
static int is_attribute(const struct dirent *entry)
{
	return entry->d_type == DT_REG && strcmp(entry->d_name, "uevent");
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
	if (!number_u64(text, 0, INT64_MAX, &number))
		return json_integer(number);
	return json_string(text);
}

/* An arena may go away at any moment: what cannot be read is left out. */
static json_t *read_arena(int root, const char *name)
{
	struct dirent **entry;
	json_t *arena;
	int dir, nr, i;

	dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return NULL;
	nr = scandirat(dir, ".", &entry, is_attribute, alphasort);
	if (nr < 0) {
		close(dir);
		return NULL;
	}
	arena = json_pack("{s:s}", "arena", name);
	for (i = 0; i < nr; i++) {
		json_t *value = read_attribute(dir, entry[i]->d_name);

		if (value)
			json_object_set_new(arena, entry[i]->d_name, value);
		free(entry[i]);
	}
	free(entry);
	close(dir);
	return arena;
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

static void format_cell(const json_t *arena, size_t column, char *buf,
			size_t size)
{
	const json_t *value = json_object_get(arena, columns[column].attribute);

	if (json_is_integer(value))
		snprintf(buf, size, "%lld",
			 (long long)json_integer_value(value));
	else
		snprintf(buf, size, "%s",
			 value ? json_string_value(value) : "-");
}

/* As wide as the widest cell under the heading. */
static int column_width(const json_t *arenas, size_t column)
{
	size_t width = strlen(columns[column].heading);
	char cell[64];
	size_t i;

	for (i = 0; i < json_array_size(arenas); i++) {
		format_cell(json_array_get(arenas, i), column, cell,
			    sizeof(cell));
		if (strlen(cell) > width)
			width = strlen(cell);
	}
	return width;
}

static void print_table(const json_t *arenas)
{
	int width[NR_COLUMNS];
	char cell[64];
	size_t i, c;

	if (!json_array_size(arenas)) {
		puts("The tensorarena module is loaded; there are no arenas.");
		return;
	}
	printf("%-10s", "arena");
	for (c = 0; c < NR_COLUMNS; c++) {
		width[c] = column_width(arenas, c);
		printf("  %*s", width[c], columns[c].heading);
	}
	putchar('\n');
	for (i = 0; i < json_array_size(arenas); i++) {
		const json_t *arena = json_array_get(arenas, i);

		printf("%-10s",
		       json_string_value(json_object_get(arena, "arena")));
		for (c = 0; c < NR_COLUMNS; c++) {
			format_cell(arena, c, cell, sizeof(cell));
			printf("  %*s", width[c], cell);
		}
		putchar('\n');
	}
}

static void print_json(json_t *arenas)
{
	json_t *object = json_pack("{s:O}", "arenas", arenas);

	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

static int show(bool json)
{
	const char *path = sysfs_root();
	json_t *arenas;
	int root;

	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 && errno == ENOENT) {
		complain("the tensorarena module is not loaded: there is no "
			 "%s",
			 path);
		return EXIT_FAILED;
	}
	arenas = root < 0 ? NULL : read_arenas(root);
	if (!arenas) {
		complain("cannot read %s: %s", path, strerror(errno));
		if (root >= 0)
			close(root);
		return EXIT_FAILED;
	}
	if (json)
		print_json(arenas);
	else
		print_table(arenas);
	json_decref(arenas);
	close(root);
	return EXIT_OK;
}

int stat_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind != argc) {
		complain("stat takes no arguments; see tarena stat --help");
		return EXIT_USAGE;
	}
	return show(json);
}
