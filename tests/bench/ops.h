/* SPDX-License-Identifier: MIT */
/* What the parts of the program ops share. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

/* So small that the bytes do not matter. */
#define OP_BYTES 4096

enum op {
	OP_ACQUIRE, /* ta_loan() */
	OP_PUBLISH, /* ta_commit() */
	OP_BORROW, /* ta_view() */
	OP_NEXT, /* ta_next() */
	OP_RELEASE, /* ta_release() */
	OPS
};

extern const char *const op_names[OPS];

struct op_samples {
	uint32_t *ns;
	uint32_t nr;
};

/**
 * struct op_run - one number of readers
 * @rounds: publications
 * @device: which engine it was
 * @samples: of each operation
 */
struct op_run {
	uint32_t readers;
	uint32_t rounds;
	bool device;
	struct op_samples *samples;
};

/**
 * struct op_idle - what an arena costs that never carries anything
 * @writer_threads, @reader_threads: more than before
 * @writer_kib, @reader_kib: memory more than before, page tables included
 * @writer_fds, @reader_fds: descriptors more than before
 */
struct op_idle {
	int writer_threads;
	int reader_threads;
	int writer_kib;
	int reader_kib;
	int writer_fds;
	int reader_fds;
};

/* Tensors whose first use is measured, and the most times. */
#define OP_FIRST_BYTES ((size_t)200 << 20)
#define OP_FIRST_MOST 9

/**
 * struct op_cost - what something took
 * @cpu_ms: CPU time of all threads of the process
 */
struct op_cost {
	double ms;
	double cpu_ms;
};

/**
 * struct op_first - the first tensor in a slot, and the second
 * @put: ta_put()
 * @view: ta_view() by a reader
 */
struct op_first {
	struct op_cost put[2];
	struct op_cost view[2];
};

/**
 * struct op_result - all of it
 */
struct op_result {
	struct op_run *run;
	size_t runs;
	struct op_idle idle;
	struct op_first first[OP_FIRST_MOST];
	uint32_t firsts;
};

struct op_request {
	const char *path;
	uint32_t rounds;
	uint32_t first;
	enum ta_engine_kind engine;
};

/* Ends the program when @err is not 0. */
void ops_must(const char *what, int err);

/* ---- ops_idle.c ---- */

void ops_idle(enum ta_engine_kind engine, struct op_idle *idle);

/* ---- ops_first.c ---- */

void ops_first(enum ta_engine_kind engine, struct op_first *first, size_t nr);

/* ---- ops_report.c ---- */

/* Text; sorts the samples. */
void ops_print(struct op_result *result);
/* JSON; an exit code. */
int ops_write(const char *path, const struct op_result *result);

#endif /* BENCH_OPS_H */
