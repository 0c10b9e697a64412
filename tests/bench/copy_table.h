/* SPDX-License-Identifier: MIT */
/* What copy_table.c measures and copy_report.c tells. */
#ifndef TA_BENCH_COPY_TABLE_H
#define TA_BENCH_COPY_TABLE_H

#include <stdio.h>

#include "lib/copy.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MAX_KINDS 64
#define MAX_ROUNDS 999

/**
 * struct kind - so many threads with this kernel
 * @threads: 0: as the library chooses, and with whatever kernel
 * @gbs: of each round, GB/s
 */
struct kind {
	uint32_t threads;
	const struct ta_copy_kernel *kernel;
	double min;
	double median;
	double max;
	double gbs[MAX_ROUNDS];
};

/**
 * struct bench - what is measured, and with what
 * @kind: in order of threads; the library's own choice is last
 * @span: bytes of @src and of @dst that are gone through
 * @at: where in both the next copy is
 * @row: bytes of a row, 0: the source is contiguous
 * @chunk: instead of the table's, 0: the table's
 * @huge: the slot is of 2 MiB pages
 */
struct bench {
	struct kind kind[MAX_KINDS];
	uint32_t kinds;
	uint32_t threads;
	uint32_t rounds;
	size_t smallest;
	size_t largest;
	size_t span;
	size_t at;
	size_t row;
	size_t chunk;
	bool huge;
	uint8_t *src;
	uint8_t *dst;
	struct ta_copier copier;
};

/* As a table for people on stdout, and as JSON. */
void report_begin(const struct bench *b, FILE *json);
/* What has been measured of one size. */
void report_size(const struct bench *b, size_t n, FILE *json);
void report_end(FILE *json);

#endif /* TA_BENCH_COPY_TABLE_H */
