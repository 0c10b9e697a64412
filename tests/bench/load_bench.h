/* SPDX-License-Identifier: MIT */
/*
 * Loading files against fio and read(): what the parts of the program share.
 */
#ifndef TESTS_BENCH_LOAD_BENCH_H
#define TESTS_BENCH_LOAD_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#define MIB ((size_t)1 << 20)

/* A tensor as large as a slot. */
#define TENSOR_BYTES (256 * MIB)
/* Safetensors files align tensors to 8 bytes, not to blocks. */
#define ODD_OFFSET 8

/**
 * struct bench - what is measured with
 * @path: the file
 * @fd: it, as anybody would open it
 * @nbytes: its size
 * @fio: how to call fio
 * @writer, @reader: an arena of one slot
 */
struct bench {
	const char *path;
	int fd;
	uint64_t nbytes;
	const char *fio;
	struct ta_writer *writer;
	struct ta_reader *reader;
};

/* One pass over the file. */
struct sample {
	double seconds;
	double cpu_seconds;
	uint64_t nbytes;
};

enum way {
	FIO_LARGE,
	FIO_SMALL,
	FIO_WIDE,
	LOAD_COLD,
	LOAD_COLD_ODD,
	READ_COLD,
	COLD_UNREGISTERED,
	COLD_NO_RING,
	COLD_NO_DIRECT,
	LOAD_CACHED,
	LOAD_CACHED_ODD,
	READ_CACHED,
	WAYS,
};

/* ---- load_bench.c ---- */

void make_arena(struct bench *b);

/* ---- load_ways.c ---- */

extern const char *const way_name[WAYS];

void must(bool ok, const char *what);
void measure(struct bench *b, enum way way, struct sample *sample);
/* One range, cold or cached: seconds. */
double time_load(struct bench *b, uint64_t offset, size_t nbytes, bool cold);
double time_read(struct bench *b, uint64_t offset, size_t nbytes, bool cold);

/* ---- load_sandbox.c ---- */

/*
 * Runs @fn in a child with an arena of its own that may not make a system call,
 * or not with this flag in its third argument.
 */
void in_sandbox(const struct bench *b, int call, uint32_t flag,
		void (*fn)(struct bench *b, struct sample *sample),
		struct sample *sample);

/* ---- load_fio.c ---- */

/* fio reads the file; its own figures. */
void run_fio(const struct bench *b, const char *how, struct sample *sample);
/* "fio-3.33" */
void fio_version(const struct bench *b, char *buf, size_t size);

/* ---- load_report.c ---- */

/* A size of the second table. */
struct size_row {
	size_t nbytes;
	double load_cold, read_cold, load_cached, read_cached; /* seconds */
};

/* The tables to stderr, all of it as JSON to @json. */
void report(struct bench *b, struct sample (*samples)[WAYS], uint32_t rounds,
	    const struct size_row *row, size_t nr, const char *json);

#endif /* TESTS_BENCH_LOAD_BENCH_H */
