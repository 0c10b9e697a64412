/* SPDX-License-Identifier: MIT */
/*
 * Files of many tensors: each goes right out of the file into a slot, is sent,
 * and makes room for the next when the workers have released it.
 */
#ifndef TARENA_BROADCAST_STREAM_H
#define TARENA_BROADCAST_STREAM_H

#include <stdint.h>

#include "broadcast.h"

/**
 * struct stream_tensor - how one of the tensors fared
 * @from: what it is and where
 * @digest: the checksum of its bytes, which the engine process reads again for
 *	this, by other means
 * @sent: rounds in which it was sent
 * @verified: answers in all of them that saw exactly these bytes
 * @err: why it was declined, 0: it never was
 * @ms: what loading it took, each time
 */
struct stream_tensor {
	const struct safetensors_tensor *from;
	uint64_t digest;
	uint32_t sent;
	uint32_t verified;
	int err;
	double *ms;
};

/**
 * struct stream_round - what one round took
 * @tensors: how many were sent
 * @bytes: how large they are
 * @verified: those that every worker saw exactly
 * @declined: how often there was no free slot
 * @load_ms: loading them, without waiting for slots
 * @check_ms: reading the file for the checksums
 * @all_verified_ms: from the first load to the last answer, with all that
 */
struct stream_round {
	uint32_t tensors;
	uint64_t bytes;
	uint32_t verified;
	uint32_t declined;
	double load_ms;
	double check_ms;
	double all_verified_ms;
};

/**
 * struct stream - a file being streamed, and then the result
 * @b: the broadcast
 * @tensor: each of the file's
 * @nr: how many
 * @round: one a round
 * @rounds: rounds that are complete
 * @expects: of the tensors sent in this round, what workers ought to see
 * @seen: how many did
 * @which: which they are
 * @ms: all loading times, one row a tensor
 * @load: what the library says of the loads
 */
struct stream {
	struct broadcast *b;
	struct stream_tensor *tensor;
	uint32_t nr;
	struct stream_round *round;
	uint32_t rounds;
	struct crew_expects *expects;
	uint32_t *seen;
	uint32_t *which;
	double *ms;
	struct ta_load_stats load;
};

/* Runs all rounds and reports; -1 with @why set when anything is amiss. */
int stream_run(struct broadcast *b, struct reason *why);

/* ---- broadcast_stream_text.c, broadcast_stream_json.c ---- */

void stream_report_tensors(const struct stream *s);
void stream_report_round(const struct stream *s, uint32_t i);
void stream_report_end(const struct stream *s);
int stream_report_json(const struct stream *s, struct reason *why);
/* Median of the times that loading a tensor took; 0: it never was. */
double stream_load_ms(const struct stream_tensor *t);
/* 10^9 bytes a second. */
double stream_gbps(const struct stream_round *r);
/* Tensors that every worker saw exactly, in every round. */
uint32_t stream_verified(const struct stream *s);

#endif /* TARENA_BROADCAST_STREAM_H */
