/* SPDX-License-Identifier: MIT */
/*
 * The worker processes as their parent sees them.
 */
#ifndef TARENA_BROADCAST_CREW_H
#define TARENA_BROADCAST_CREW_H

#include <poll.h>
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
 * @bytes: our end of the stream that tensors go over, -1: there is none
 * @left: bytes of the tensor at hand that have not gone there
 * @owes: answers that are due
 * @answered: those it has given since crew_restart()
 * @seat: its seat in the arena
 * @verified: tensors of which it saw exactly the bytes
 * @ms: what it said each took; only the verified ones
 * @device: its GPU, -1: none
 * @h2d_ms: what it said each copy there took; only the verified ones
 * @pin_ms: what it said pinning took
 * @view_ms, @release_ms: what it said ta_view() and ta_release() took; likewise
 */
struct worker {
	pid_t pid;
	int socket;
	int bytes;
	uint64_t left;
	uint32_t owes;
	uint32_t answered;
	uint32_t seat;
	uint32_t verified;
	double *ms;
	int device;
	double *h2d_ms;
	double pin_ms;
	double *view_ms;
	double *release_ms;
};

/**
 * struct crew - all of them
 * @worker: each
 * @nr: how many
 * @gpu: they send tensors to GPUs; set before crew_start()
 * @over_socket: they get tensors over sockets, not by an arena; set likewise
 * @most_bytes: the largest tensor they will be sent; set likewise
 * @end_ms: when the last copy of the round collected last ended
 */
struct crew {
	struct worker *worker;
	uint32_t nr;
	bool gpu;
	bool over_socket;
	uint64_t most_bytes;
	double end_ms;
};

/**
 * struct crew_expects - what every worker ought to see
 * @tensor: type, shape and name
 * @nbytes: size
 * @digest: checksum
 */
struct crew_expects {
	const struct ta_tensor *tensor;
	uint64_t nbytes;
	uint64_t digest;
};

/*
 * Starts @nr workers and waits until all have attached.  On failure none is
 * left.  @tensors: the most that each will be sent.
 */
int crew_start(struct crew *crew, uint32_t nr, uint32_t tensors,
	       const char *handle, int stop, struct reason *why);
/* Sends every living worker a ticket. */
void crew_send(struct crew *crew, const struct ta_ticket *ticket);
/*
 * Sends every living worker the tensor itself, to each as fast as it takes it.
 * -1 with @why set when stopped.
 */
int crew_send_bytes(struct crew *crew, const struct ta_tensor *tensor,
		    const void *bytes, uint64_t nbytes, int stop,
		    struct reason *why);
/*
 * Waits until every living worker has answered; says on stderr what each did
 * not see, and which have died.  Returns how many saw what they ought to, or
 * -1 with @why set when stopped or when no worker is left.
 */
int crew_collect(struct crew *crew, const struct crew_expects *expects,
		 int stop, struct reason *why);

/*
 * Several tensors at a time: after crew_restart(), the answers to the i-th ticket
 * sent are held against @expects[i], and counted in @verified[i] if they are
 * right.
 */
void crew_restart(struct crew *crew);
/* Waits until no answer is due any more. */
int crew_collect_all(struct crew *crew, const struct crew_expects *expects,
		     uint32_t *verified, int stop, struct reason *why);
/*
 * Takes in the answers that are there, having waited, for @timeout_ms at most,
 * for the first, or for @also.
 */
int crew_take_in(struct crew *crew, const struct crew_expects *expects,
		 uint32_t *verified, const struct pollfd *also, int timeout_ms,
		 int stop, struct reason *why);
/* Lets the workers leave; kills those that do not, or all at once. */
void crew_end(struct crew *crew, bool at_once);

#endif /* TARENA_BROADCAST_CREW_H */
