// SPDX-License-Identifier: MIT
/*
 * tarena stat: the arenas of this machine, as a table or as JSON, once or again
 * and again.
 */
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "arenas.h"
#include "number.h"
#include "stop.h"
#include "tarena.h"

static const char usage[] =
	"usage: tarena stat [--json] [--watch[=SECONDS]] [--handle HANDLE]...\n"
	"\n"
	"Shows the arenas of the kernel module, from /sys/class/tensorarena "
	"(or\n"
	"from where the environment variable TENSORARENA_SYSFS says), or "
	"those\n"
	"whose handles are given, of either engine.\n"
	"\n"
	"  --json             every figure there is; with --watch one line "
	"each\n"
	"  --watch[=SECONDS]  again every second, or so many, until Ctrl-C\n"
	"  --handle HANDLE    this arena, without taking a seat in it\n"
	"\n"
	"HANDLE may be @FILE: the first line of that, of standard input for "
	"-.\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

/* The columns of the table; the JSON has every figure there is. */
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

static void format_cell(const json_t *arena, size_t column, char *buf,
			size_t size)
{
	const json_t *value = json_object_get(arena, columns[column].attribute);

	if (json_is_integer(value))
		snprintf(buf, size, "%lld",
			 (long long)json_integer_value(value));
	else
		snprintf(buf, size, "%s",
			 json_is_string(value) ? json_string_value(value) :
						 "-");
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
	return (int)width;
}

static int name_width(const json_t *arenas)
{
	size_t i, width = 10;

	for (i = 0; i < json_array_size(arenas); i++) {
		const char *name = arenas_name(json_array_get(arenas, i));

		if (strlen(name) > width)
			width = strlen(name);
	}
	return (int)width;
}

static void print_row(const json_t *arena, int name, const int *width)
{
	const json_t *error = json_object_get(arena, "error");
	char cell[64];
	size_t c;

	printf("%-*s", name, arenas_name(arena));
	if (error) {
		printf("  %s\n", json_string_value(error));
		return;
	}
	for (c = 0; c < NR_COLUMNS; c++) {
		format_cell(arena, c, cell, sizeof(cell));
		printf("  %*s", width[c], cell);
	}
	putchar('\n');
}

static void print_table(const json_t *arenas)
{
	int name = name_width(arenas);
	int width[NR_COLUMNS];
	size_t i, c;

	if (!json_array_size(arenas)) {
		puts("The tensorarena module is loaded; there are no arenas.");
		return;
	}
	printf("%-*s", name, "arena");
	for (c = 0; c < NR_COLUMNS; c++) {
		width[c] = column_width(arenas, c);
		printf("  %*s", width[c], columns[c].heading);
	}
	putchar('\n');
	for (i = 0; i < json_array_size(arenas); i++)
		print_row(json_array_get(arenas, i), name, width);
}

/**
 * struct request - what the command line asks for
 * @arenas: which
 * @json: as JSON
 * @seconds: how often; 0: once
 */
struct request {
	struct arenas arenas;
	bool json;
	uint32_t seconds;
};

static int show(const struct request *request)
{
	json_t *seen = arenas_look(&request->arenas);

	if (!seen)
		return EXIT_FAILED;
	if (!request->arenas.handles &&
	    json_is_null(json_object_get(seen, "module"))) {
		complain("the tensorarena module is not loaded; tarena doctor "
			 "says what to do about it");
		json_decref(seen);
		return EXIT_FAILED;
	}
	if (request->json) {
		json_dumpf(seen, stdout,
			   request->seconds ? JSON_COMPACT : JSON_INDENT(2));
		putchar('\n');
	} else {
		print_table(json_object_get(seen, "arenas"));
	}
	json_decref(seen);
	return EXIT_OK;
}

static void print_time(void)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[64];

	strftime(text, sizeof(text), "%F %T", localtime_r(&now, &tm));
	printf("\n%s\n", text);
}

static int watch(const struct request *request)
{
	struct pollfd stop = { .fd = stop_open(), .events = POLLIN };
	int code;

	if (stop.fd < 0) {
		complain("cannot wait for signals: %s", strerror(-stop.fd));
		return EXIT_FAILED;
	}
	do {
		if (!request->json)
			print_time();
		code = show(request);
		/* Whoever is at the other end of a pipe may have had enough. */
		if (code != EXIT_OK || fflush(stdout))
			return EXIT_FAILED;
	} while (poll(&stop, 1, (int)request->seconds * 1000) == 0);
	stop_obey(stop.fd);
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "handle", required_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			request->json = true;
			break;
		case 'w':
			request->seconds = 1;
			if (!optarg ||
			    !number_u32(optarg, 1, 86400, &request->seconds))
				break;
			complain("--watch takes 1 to 86400 seconds, not '%s'",
				 optarg);
			return EXIT_USAGE;
		case 'H':
			if (arenas_option(&request->arenas, optarg))
				return EXIT_USAGE;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (complain_arguments(argc - optind, "stat"))
		return EXIT_USAGE;
	return EXIT_GO_ON;
}

int stat_main(int argc, char **argv)
{
	struct request request = { .json = false };
	int code;

	code = parse(argc, argv, &request);
	if (code != EXIT_GO_ON)
		return code;
	return request.seconds ? watch(&request) : show(&request);
}
