/* SPDX-License-Identifier: MIT */
/*
 * Random operations on an arena, each answer compared with a model's.
 *
 * A sequence is a list of numbers, each of which chooses one of the operations
 * that there are at that point: those of the slot state machine, which the
 * model of tests/unit knows, and others whose answer does not depend on it.
 * Where the kernel traces what the module executes (KCOV), sequences that
 * reach something new are kept and varied.
 */
#ifndef TA_OPFUZZ_H
#define TA_OPFUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine.h"
#include "tests/campaign/campaign.h"
#include "tests/unit/slots_model.h"

#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "# %s:%d: %s: %m\n", __FILE__,         \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
	} while (0)

#define SEQUENCE_OPS 1200

struct sequence {
	uint32_t nr;
	uint32_t choice[SEQUENCE_OPS];
};

/* What was done, over all sequences. */
struct fuzz_tally {
	uint64_t ops;
	uint64_t succeeded; /* of them */
	uint64_t sequences;
	uint64_t kind[64];
};

/**
 * struct seat - a seat of the arena under test, as this process sees it
 * @port: the reader's end, if it is here
 * @child: the process that has it instead, or 0
 * @attached: what ATTACH said
 */
struct seat {
	struct ta_port *port;
	pid_t child;
	int child_sock;
	struct tensorarena_attach attached;
};

/**
 * struct stage - an arena on the engine under test, next to the model of one
 * @w: the model
 * @device: whether it is the module
 * @writer: the writer's end, NULL once it has gone
 */
struct stage {
	struct world w;
	const struct ta_engine *engine;
	bool device;
	struct ta_port *writer;
	struct tensorarena_create made;
	struct ta_handle handle;
	struct seat seat[MODEL_SEATS];
	char why[200];
};

void stage_open(struct stage *s, uint32_t seats);
/* NULL, or what was left. */
const char *stage_close(struct stage *s);

/* One operation of the model; NULL, or what disagrees.  @good: it succeeded. */
const char *modelled_op(struct stage *s, const struct op *op, bool *good);
/* Whether the uAPI has words for it. */
bool can_express(const struct stage *s, const struct op *op);
/* POPULATE and TRIM, which the model does step by step. */
const char *populate_op(struct stage *s, uint32_t choice, bool *good);
const char *trim_op(struct stage *s, uint32_t choice, bool *good);
/* Compares what can be observed: STATS, poll. */
const char *observe(struct stage *s, bool *good);

/* Operations that change nothing, whose answer is known. */
const char *malformed_op(struct stage *s, uint32_t choice);
const char *mapping_op(struct stage *s, uint32_t choice, bool *good);
const char *foreign_op(struct stage *s, uint32_t choice);

/* Formats into s->why. */
const char *disagree(struct stage *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- coverage ---- */

/* False where there is none. */
bool kcov_open(void);
void kcov_start(void);
/* Ends it; how many places were reached for the first time. */
uint32_t kcov_stop(void);
uint32_t kcov_total(void);

#endif /* TA_OPFUZZ_H */
