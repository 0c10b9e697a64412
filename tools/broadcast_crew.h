/* SPDX-License-Identifier: MIT */
/*
 * The worker processes as their parent sees them.
 */
#ifndef TARENA_BROADCAST_CREW_H
#define TARENA_BROADCAST_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tensorarena.h>

#include "complain.h"

/* As many as an arena has seats. */
#define CREW_MAX 64

/**
 * struct worker - one worker process
 * @pid: its id
 * @socket: our end of the pair; -1 when it has died
 * @owes: an answer is due
 * @seat: its seat in the arena
 * @verified: rounds in which it saw exactly the bytes
 * @ms: what it said each round took; only the verified ones
 * @device: its GPU, -1: none
 * @h2d_ms: what it said each copy there took; only the verified ones
 * @pin_ms: what it said pinning took
 */
struct worker {
	pid_t pid;
	int socket;
	bool owes;
	uint32_t seat;
	uint32_t verified;
	double *ms;
	int device;
	double *h2d_ms;
	double pin_ms;
};

/**
 * struct crew - all of them
 * @worker: each
 * @nr: how many
 * @gpu: they send tensors to GPUs; set before crew_start()
 * @end_ms: when the last copy of the round collected last ended
 */
struct crew {
	struct worker *worker;
	uint32_t nr;
	bool gpu;
	double end_ms;
};

/* What every worker ought to see. */
struct crew_expects {
	const struct ta_tensor *tensor;
	uint64_t nbytes;
	uint64_t digest;
};

/*
 * Starts @nr workers and waits until all have attached.  On failure none is
 * left.  @rounds: the most that will be run.
 */
int crew_start(struct crew *crew, uint32_t nr, uint32_t rounds,
	       const char *handle, int stop, struct reason *why);
/* Sends every living worker a ticket. */
void crew_send(struct crew *crew, const struct ta_ticket *ticket);
/*
 * Waits until every living worker has answered; says on stderr what each did
 * not see, and which have died.  Returns how many saw what they ought to, or
 * -1 with @why set when stopped or when no worker is left.
 */
int crew_collect(struct crew *crew, const struct crew_expects *expects,
		 int stop, struct reason *why);
/* Lets the workers leave; kills those that do not, or all at once. */
void crew_end(struct crew *crew, bool at_once);

#endif /* TARENA_BROADCAST_CREW_H */
