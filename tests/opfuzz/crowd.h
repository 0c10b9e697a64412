/* SPDX-License-Identifier: MIT */
/*
 * Random operations of many threads in several processes on one arena, some of
 * which are killed.  No model can say what each answer has to be; but it has to
 * be one of the documented ones, bytes have to be right, and in the end
 * everything has to be free.
 */
#ifndef TA_OPFUZZ_CROWD_H
#define TA_OPFUZZ_CROWD_H

#include <stdatomic.h>

#include "fuzz.h"

#define CROWD_SLOTS 6
#define CROWD_SLOT_BYTES ((size_t)4 << 20)
#define CROWD_WRITERS 3
#define CROWD_READERS 4
#define CROWD_TICKETS 32

/**
 * struct crowd - what all processes share
 * @ops: operations so far
 * @good: how many of them succeeded
 * @enough: nobody shall go on
 * @wrong: what nobody may see has been seen; @text says what
 * @ticket: the newest publications, not necessarily whole: a torn one is as
 *	good a guess as any
 */
struct crowd {
	atomic_ulong ops;
	atomic_ulong good;
	atomic_bool enough;
	atomic_int wrong;
	char text[160];
	struct ta_handle handle;
	bool device;
	atomic_uint last_ticket;
	struct tensorarena_ticket ticket[CROWD_TICKETS];
};

/* Counts an operation whose error must be 0 or one of @allowed, 0 at its end. */
void crowd_count(struct crowd *c, const char *what, int err,
		 const int *allowed);
void crowd_wrong(struct crowd *c, const char *text);

/* A writer's thread; @port is the arena's. */
void crowd_write(struct crowd *c, struct ta_port *port, uint64_t stride,
		 uint64_t random);
/* A reader's process. */
void crowd_read(struct crowd *c, uint64_t random);

/* Runs for @ops operations; NULL, or what went wrong. */
const char *crowd_run(uint64_t ops, uint64_t random, struct fuzz_tally *tally);

#endif /* TA_OPFUZZ_CROWD_H */
