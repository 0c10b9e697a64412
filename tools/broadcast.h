/* SPDX-License-Identifier: MIT */
/*
 * tarena broadcast: one file, one engine process, N worker processes.
 */
#ifndef TARENA_BROADCAST_H
#define TARENA_BROADCAST_H

#include <stdbool.h>
#include <stdint.h>

#include <tensorarena.h>

#include "broadcast_baseline.h"
#include "broadcast_crew.h"
#include "input.h"

/**
 * struct broadcast_options - what the user asked for
 * @path: the file
 * @readers: worker processes
 * @repeat: rounds
 * @slots: of the arena
 * @slot_bytes: the largest tensor they take, 0: the file's largest
 * @engine: enum ta_engine_kind
 * @gpu: workers send it to GPUs
 * @socket: without an arena: each worker receives it over a socket
 * @json: one object on stdout instead of text
 * @input: how to read the file
 */
struct broadcast_options {
	const char *path;
	uint32_t readers;
	uint32_t repeat;
	uint32_t slots;
	uint64_t slot_bytes;
	enum ta_engine_kind engine;
	bool gpu;
	bool socket;
	bool json;
	struct input_options input;
};

/**
 * struct broadcast_round - what one round took
 * @loaned: produced right in the slot, not copied there
 * @verified: workers that saw exactly the bytes
 * @declined: how often the arena said "no free slot" before this round's put
 * @produce_ms: decoding; not part of the other figures
 * @put_ms: from asking for a slot to having published it; over sockets: until
 *	all bytes are sent
 * @all_verified_ms: from the same moment to the last worker's answer
 * @slot_free_ms: with GPUs: from the end of the last copy to the slot being
 *	free, as the engine sees it
 * @bare: what the unavoidable work takes, sampled right after the round, so
 *	that both meet the same machine
 */
struct broadcast_round {
	bool loaned;
	uint32_t verified;
	uint32_t declined;
	double produce_ms;
	double put_ms;
	double all_verified_ms;
	double slot_free_ms;
	struct baseline bare;
};

/**
 * struct broadcast - a broadcast in progress, and then its result
 * @options: what was asked for
 * @in: the file
 * @writer: the arena; NULL: over sockets
 * @crew: the workers
 * @stop: see stop.h
 * @bytes: the tensor in private memory, nbytes long, for ta_put(); NULL until
 *	there is one
 * @scratch: as much memory, for the yardstick's copies
 * @digest: the writer's checksum of the tensor
 * @round: one a round
 * @rounds: rounds that are complete
 * @slot_memory: bytes the arena holds
 */
struct broadcast {
	const struct broadcast_options *options;
	struct input in;
	struct ta_writer *writer;
	struct crew crew;
	int stop;
	void *bytes;
	void *scratch;
	uint64_t digest;
	struct broadcast_round *round;
	uint32_t rounds;
	uint64_t slot_memory;
};

/* Of its name: 0 or -1. */
int broadcast_engine_of(const char *name, enum ta_engine_kind *engine);
/* The subcommand and its hidden other half; they return exit codes. */
int broadcast_main(int argc, char **argv);
int broadcast_worker_main(int argc, char **argv);

/*
 * With @options, @in and @stop set: memory for the results, the arena, the
 * workers.  On failure nothing is left.
 */
int broadcast_open(struct broadcast *b, struct reason *why);
/* All of that again; @at_once: workers are killed. */
void broadcast_close(struct broadcast *b, bool at_once);
/* Runs the next round. -1 with @why set: the broadcast is over. */
int broadcast_round_run(struct broadcast *b, struct reason *why);
/* Whether every worker saw the bytes in every round. */
bool broadcast_all_verified(const struct broadcast *b);

/*
 * Text: what is about to happen, one line a round, the conclusion; the first also
 * for files of many tensors.
 */
void report_engine(const struct broadcast *b);
void report_start(const struct broadcast *b);
void report_round(const struct broadcast *b, uint32_t i);
void report_end(const struct broadcast *b);
/* The same as one JSON object. */
int report_json(const struct broadcast *b, struct reason *why);

/**
 * struct broadcast_figures - what both reports say of all the rounds
 * @put_ms: median of the warm rounds, which are those after the first
 * @all_verified_ms: the same
 * @bare: the same
 * @bound_ms: a bare copy and a checksum pass of each reader
 * @over_bound: how far all_verified_ms is above that: 0.05 is 5%
 * @declined: in all
 * @verified: workers that saw exactly the bytes in every round
 * @h2d_gbps: with GPUs: the median of the workers' medians, 10^9 bytes a second
 * @pin_ms: the longest that any worker took to pin
 * @slot_free_ms: the median
 */
struct broadcast_figures {
	double put_ms;
	double all_verified_ms;
	struct baseline bare;
	double bound_ms;
	double over_bound;
	uint32_t declined;
	uint32_t verified;
	double h2d_gbps;
	double pin_ms;
	double slot_free_ms;
};

/* 10^9 bytes a second that a worker's copies reached, 0: none was verified. */
double broadcast_worker_gbps(const struct broadcast *b, const struct worker *w);
int broadcast_figures(const struct broadcast *b, struct broadcast_figures *f);

#endif /* TARENA_BROADCAST_H */
