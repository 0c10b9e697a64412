// SPDX-License-Identifier: MIT
/* tarena bench: the command line. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "number.h"
#include "stop.h"
#include "tarena.h"

#define BYTES_MAX (UINT64_C(1) << 40)
#define ROUNDS_MAX 1000

static const char usage[] =
	"usage: tarena bench [options]\n"
	"\n"
	"Measures, in a few seconds, what tensorarena costs on this machine: "
	"put, view\n"
	"and release, and a broadcast to one reader process and to several "
	"that verify\n"
	"every byte, against memcpy and against a socket to each reader; with "
	"GPUs also\n"
	"the copies on to them.\n"
	"\n"
	"  --bytes N        the tensor's (default 67108864)\n"
	"  --readers N      reader processes, 1 to 64 (default 4)\n"
	"  --repeat K       rounds of each, 1 to 1000 (default 5)\n"
	"  --engine ENGINE  auto, device (the kernel module) or embedded\n"
	"                   (default auto: device where there is one)\n"
	"  --json           print one JSON object\n"
	"  --help           print this\n";

static int parse_option(int c, const char *value, struct bench_options *o)
{
	switch (c) {
	case 'b':
		return number_u64(value, 1, BYTES_MAX, &o->nbytes);
	case 'r':
		return number_u32(value, 1, CREW_MAX, &o->readers);
	case 'k':
		return number_u32(value, 1, ROUNDS_MAX, &o->rounds);
	case 'e':
		return broadcast_engine_of(value, &o->engine);
	default:
		o->json = true;
		return 0;
	}
}

/* EXIT_GO_ON, or the code to exit with. */
static int parse(int argc, char **argv, struct bench_options *o)
{
	static const struct option options[] = {
		{ "bytes", required_argument, NULL, 'b' },
		{ "readers", required_argument, NULL, 'r' },
		{ "repeat", required_argument, NULL, 'k' },
		{ "engine", required_argument, NULL, 'e' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int which = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, &which)) != -1) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'h') {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (parse_option(c, optarg, o)) {
			complain("--%s cannot be '%s'; see tarena bench --help",
				 options[which].name, optarg);
			return EXIT_USAGE;
		}
	}
	if (complain_arguments(argc - optind, "bench"))
		return EXIT_USAGE;
	return EXIT_GO_ON;
}

int bench_main(int argc, char **argv)
{
	struct bench_options options = {
		.nbytes = 64 << 20,
		.readers = 4,
		.rounds = 5,
		.engine = TA_ENGINE_AUTO,
	};
	struct bench bench = { .options = &options };
	struct reason why;
	int err, stop;

	err = parse(argc, argv, &options);
	if (err != EXIT_GO_ON)
		return err;
	stop = stop_open();
	if (stop < 0) {
		complain("cannot watch for signals: %s", strerror(-stop));
		return EXIT_FAILED;
	}
	err = bench_run(&bench, stop, &why);
	if (!err && options.json)
		err = bench_json(&bench, &why);
	if (err && stop_requested(stop))
		stop_obey(stop);
	close(stop);
	if (!err)
		return EXIT_OK;
	complain("%s", why.text);
	return EXIT_FAILED;
}
