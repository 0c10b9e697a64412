// SPDX-License-Identifier: MIT
/*
 * The tarena command: finds the subcommand and makes sure that what it
 * printed has arrived.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "broadcast.h"
#include "tarena.h"

static const char usage[] =
	"usage: tarena COMMAND [options]\n"
	"\n"
	"  bench            measure what tensorarena costs on this machine\n"
	"  broadcast FILE   send a file as a tensor to worker processes that "
	"verify it\n"
	"  doctor           say what works on this machine, and what does "
	"not\n"
	"  metrics          the figures for monitoring (OpenMetrics), also "
	"served\n"
	"  stat             show the arenas of this machine\n"
	"  top              show them on a live screen\n"
	"\n"
	"  --help           print this; tarena COMMAND --help says more\n"
	"  --version        print the version\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

/* "worker" is how broadcast starts its workers; it is not for people. */
static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "bench", bench_main },
	{ "broadcast", broadcast_main },
	{ "doctor", doctor_main },
	{ "metrics", metrics_main },
	{ "stat", stat_main },
	{ "top", top_main },
	{ "worker", broadcast_worker_main },
};

static int run(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("tarena " TARENA_VERSION);
		return EXIT_OK;
	}
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		/* getopt's own complaints start with this name. */
		argv[1] = "tarena";
		return commands[i].main(argc - 1, argv + 1);
	}
	complain("there is no command '%s'; see tarena --help", argv[1]);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		complain("cannot write to standard output: %s",
			 strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
