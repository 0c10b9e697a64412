// SPDX-License-Identifier: MIT
/*
 * tarena broadcast: from the command line to the exit code.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broadcast.h"
#include "broadcast_stream.h"
#include "number.h"
#include "stop.h"
#include "tarena.h"

#define REPEAT_MAX 1000000
#define SLOTS_MAX 256

static const char usage[] =
	"usage: tarena broadcast FILE [options]\n"
	"\n"
	"Starts an engine process and worker processes, sends FILE through an "
	"arena as a\n"
	"tensor, and lets every worker verify the bytes it sees.\n"
	"\n"
	"FILE is an NPY array (dtype and shape are kept), a JPEG (decoded to "
	"the\n"
	"pixel_values of a Qwen2-VL model), a safetensors file (all its "
	"tensors, one\n"
	"after the other, right from the disk), or any other file (bytes).\n"
	"\n"
	"  --readers N       worker processes, 1 to 64 (default 4)\n"
	"  --repeat K        rounds (default 3)\n"
	"  --engine ENGINE   auto, device (the kernel module) or embedded\n"
	"                    (default auto: device where there is one)\n"
	"  --slots N         slots of the arena, 1 to 256 (default 2)\n"
	"  --slot-bytes N    the largest tensor they take (default: the "
	"file's largest)\n"
	"  --dtype TYPE      JPEG: bf16 or f32 (default bf16)\n"
	"  --max-pixels N    JPEG: scale down to at most N pixels (default: "
	"native size)\n"
	"  --gpu             every worker sends the tensor to a GPU and checks "
	"what\n"
	"                    arrived there; workers are spread over all GPUs\n"
	"  --json            print one JSON object\n"
	"  --help            print this\n";

int broadcast_engine_of(const char *name, enum ta_engine_kind *engine)
{
	if (!strcmp(name, "auto"))
		*engine = TA_ENGINE_AUTO;
	else if (!strcmp(name, "device"))
		*engine = TA_ENGINE_DEVICE;
	else if (!strcmp(name, "embedded"))
		*engine = TA_ENGINE_EMBEDDED;
	else
		return -1;
	return 0;
}

static int dtype_of(const char *name, bool *f32)
{
	*f32 = !strcmp(name, "f32");
	return *f32 || !strcmp(name, "bf16") ? 0 : -1;
}

static int parse_option(int c, const char *value, struct broadcast_options *o)
{
	switch (c) {
	case 'r':
		return number_u32(value, 1, CREW_MAX, &o->readers);
	case 'k':
		return number_u32(value, 1, REPEAT_MAX, &o->repeat);
	case 's':
		return number_u32(value, 1, SLOTS_MAX, &o->slots);
	case 'b':
		return number_u64(value, 1, INT64_MAX, &o->slot_bytes);
	case 'e':
		return broadcast_engine_of(value, &o->engine);
	case 'd':
		return dtype_of(value, &o->input.f32);
	case 'm':
		return number_u64(value, 1, UINT64_MAX, &o->input.max_pixels);
	case 'g':
		o->gpu = true;
		return 0;
	default:
		o->json = true;
		return 0;
	}
}

/* EXIT_GO_ON, or the code to exit with. */
static int parse(int argc, char **argv, struct broadcast_options *o)
{
	static const struct option options[] = {
		{ "readers", required_argument, NULL, 'r' },
		{ "repeat", required_argument, NULL, 'k' },
		{ "engine", required_argument, NULL, 'e' },
		{ "slots", required_argument, NULL, 's' },
		{ "slot-bytes", required_argument, NULL, 'b' },
		{ "dtype", required_argument, NULL, 'd' },
		{ "max-pixels", required_argument, NULL, 'm' },
		{ "gpu", no_argument, NULL, 'g' },
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
			complain("--%s cannot be '%s'; see tarena broadcast "
				 "--help",
				 options[which].name, optarg);
			return EXIT_USAGE;
		}
	}
	if (optind != argc - 1) {
		complain("broadcast takes one file; see tarena broadcast "
			 "--help");
		return EXIT_USAGE;
	}
	o->path = argv[optind];
	return EXIT_GO_ON;
}

static int run_rounds(struct broadcast *b, struct reason *why)
{
	struct ta_stats stats;
	uint32_t i;
	int err;

	if (!b->options->json)
		report_start(b);
	for (i = 0; i < b->options->repeat; i++) {
		if (broadcast_round_run(b, why))
			return -1;
		if (!b->options->json)
			report_round(b, i);
	}

	err = ta_stats(b->writer, &stats, NULL, 0);
	if (err)
		return reason_set(why, "the arena gives no statistics: %s",
				  ta_strerror(err));
	b->slot_memory = stats.allocated_bytes;
	if (b->options->json)
		return report_json(b, why);
	report_end(b);
	return 0;
}

static int run_all(struct broadcast *b, struct reason *why)
{
	if (b->in.list.nr)
		return stream_run(b, why);
	if (run_rounds(b, why))
		return -1;
	if (!broadcast_all_verified(b))
		return reason_set(why, "not every worker saw its bytes in "
				       "every round");
	return 0;
}

/* With the file open. */
static int run(struct broadcast *b, struct reason *why)
{
	int err;

	if (broadcast_open(b, why))
		return -1;
	err = run_all(b, why);
	broadcast_close(b, err);
	return err;
}

int broadcast_main(int argc, char **argv)
{
	struct broadcast_options options = {
		.readers = 4,
		.repeat = 3,
		.slots = 2,
		.engine = TA_ENGINE_AUTO,
	};
	struct broadcast b = { .options = &options };
	struct reason why;
	int err;

	err = parse(argc, argv, &options);
	if (err != EXIT_GO_ON)
		return err;
	b.stop = stop_open();
	if (b.stop < 0) {
		complain("cannot watch for signals: %s", strerror(-b.stop));
		return EXIT_FAILED;
	}

	err = input_open(&b.in, options.path, &options.input, &why);
	if (!err) {
		err = run(&b, &why);
		input_close(&b.in);
	}
	if (err && stop_requested(b.stop))
		stop_obey(b.stop);
	close(b.stop);
	if (!err)
		return EXIT_OK;
	complain("%s: %s", options.path, why.text);
	return EXIT_FAILED;
}
