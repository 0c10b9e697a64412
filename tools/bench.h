/* SPDX-License-Identifier: MIT */
/*
 * tarena bench: what tensorarena costs on this machine, against what else there
 * is: a bare copy, and a socket to each reader.  It consists of broadcasts.
 */
#ifndef TARENA_BENCH_H
#define TARENA_BENCH_H

#include "broadcast.h"

/* An arena and sockets, for one reader, for many, and for many with GPUs. */
#define BENCH_WAYS 6

/**
 * struct bench_options - what the user asked for
 * @nbytes: of the tensor
 * @readers: the most there are
 * @rounds: of each way, without the first
 * @engine: enum ta_engine_kind
 * @json: one object on stdout instead of text
 */
struct bench_options {
	uint64_t nbytes;
	uint32_t readers;
	uint32_t rounds;
	enum ta_engine_kind engine;
	bool json;
};

/**
 * struct bench_small - the operations, on a tensor whose bytes do not matter
 * @put_us, @view_us, @release_us: medians
 */
struct bench_small {
	double put_us;
	double view_us;
	double release_us;
};

/**
 * struct bench_way - one way to get the tensor to readers
 * @socket: not by an arena
 * @readers: how many
 * @gpu: and on to their GPUs
 * @figures: medians
 */
struct bench_way {
	bool socket;
	uint32_t readers;
	bool gpu;
	struct broadcast_figures figures;
};

/**
 * struct bench - what came of it
 * @options: what was asked for
 * @device: the engine is the device engine
 * @small: see there
 * @way: those that were measured
 * @ways: how many
 * @no_gpu: why there is none to send to; empty: there is
 */
struct bench {
	const struct bench_options *options;
	bool device;
	struct bench_small small;
	struct bench_way way[BENCH_WAYS];
	uint32_t ways;
	struct reason no_gpu;
};

int bench_main(int argc, char **argv);

/* All the measuring; in text, says as it goes what has come of it. */
int bench_run(struct bench *bench, int stop, struct reason *why);

/* ---- bench_report.c ---- */

void bench_say_small(const struct bench *bench, const struct broadcast *b);
/* The heading, and a line for each way. */
void bench_say_heading(const struct bench *bench);
void bench_say_way(const struct bench_way *way);
void bench_say_end(const struct bench *bench);
/* The same as one JSON object. */
int bench_json(const struct bench *bench, struct reason *why);

#endif /* TARENA_BENCH_H */
