// SPDX-License-Identifier: MIT
/*
 * tarena metrics: the figures of arenas for monitoring, printed or served.
 */
#include <getopt.h>
#include <stdio.h>

#include "arenas.h"
#include "metrics_format.h"
#include "metrics_serve.h"
#include "tarena.h"

static const char usage[] =
	"usage: tarena metrics [--listen [ADDRESS:]PORT] [--handle HANDLE]...\n"
	"\n"
	"Prints the figures of this machine's arenas in the OpenMetrics text\n"
	"format, which Prometheus reads.\n"
	"\n"
	"  --listen [ADDRESS:]PORT  serve them instead, at /metrics, until\n"
	"                           Ctrl-C; without ADDRESS to this machine\n"
	"                           only.  An IPv6 address stands in brackets\n"
	"  --handle HANDLE          this arena, of either engine, instead of "
	"all\n"
	"                           of the kernel module\n"
	"\n"
	"HANDLE may be @FILE: the first line of that, of standard input for "
	"-.\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

static int print(const struct arenas *arenas)
{
	json_t *seen = arenas_look(arenas);

	if (!seen)
		return EXIT_FAILED;
	metrics_format(stdout, seen);
	json_decref(seen);
	return EXIT_OK;
}

int metrics_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "handle", required_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct arenas arenas = { .handles = 0 };
	const char *where = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			where = optarg;
			break;
		case 'H':
			if (arenas_option(&arenas, optarg))
				return EXIT_USAGE;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (complain_arguments(argc - optind, "metrics"))
		return EXIT_USAGE;
	return where ? metrics_serve(&arenas, where) : print(&arenas);
}
