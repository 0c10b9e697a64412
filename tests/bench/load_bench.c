// SPDX-License-Identifier: MIT
/*
 * Loading files, side by side with fio's O_DIRECT reads and with read() into a
 * slot: load_bench FILE MIB ROUNDS JSON.
 *
 * FILE is made anew.  In every round each way reads all of it once, cold or
 * cached, in another order each time, so that what else the machine does meets
 * all of them alike.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "load_bench.h"

/* Samples of each size in the second table. */
#define SIZE_SAMPLES 15

static void make_file(struct bench *b)
{
	char *bytes = malloc(MIB);
	uint64_t at;

	must(bytes, "malloc");
	b->fd = open(b->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(b->fd >= 0, b->path);
	for (at = 0; at < b->nbytes; at += MIB) {
		must(getrandom(bytes, MIB, 0) > 0, "getrandom");
		must(pwrite(b->fd, bytes, MIB, (off_t)at) == (ssize_t)MIB,
		     b->path);
	}
	must(!fsync(b->fd), b->path);
	free(bytes);
}

void make_arena(struct bench *b)
{
	struct ta_options o;
	char why[256];

	ta_options_init(&o);
	o.slots = 1;
	o.slot_bytes = TENSOR_BYTES;
	if (ta_create(&o, &b->writer, why, sizeof(why)) ||
	    ta_attach(ta_handle(b->writer), &b->reader)) {
		fprintf(stderr, "load_bench: no arena: %s\n", why);
		exit(1);
	}
	/* Building the slot is not what this is about. */
	must(!ta_populate(b->writer, 1, TENSOR_BYTES), "ta_populate");
}

/* One round, in an order that depends on its number. */
static void run_round(struct bench *b, uint32_t round, struct sample *sample)
{
	uint64_t x = round;
	enum way order[WAYS], other;
	int i, k;

	for (i = 0; i < WAYS; i++)
		order[i] = (enum way)i;
	for (i = WAYS - 1; i > 0; i--) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		k = (int)((x >> 33) % (uint64_t)(i + 1));
		other = order[i];
		order[i] = order[k];
		order[k] = other;
	}
	for (i = 0; i < WAYS; i++)
		measure(b, order[i], &sample[order[i]]);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value)
{
	qsort(value, SIZE_SAMPLES, sizeof(*value), compare);
	return value[SIZE_SAMPLES / 2];
}

/* Somewhere new each time, aligned as tensors in files are. */
static void measure_size(struct bench *b, struct size_row *row)
{
	double lc[SIZE_SAMPLES], rc[SIZE_SAMPLES], lw[SIZE_SAMPLES],
		rw[SIZE_SAMPLES];
	uint64_t offset, step = (b->nbytes - row->nbytes) / SIZE_SAMPLES;
	int i;

	for (i = 0; i < SIZE_SAMPLES; i++) {
		offset = (uint64_t)i * step / 8 * 8;
		lc[i] = time_load(b, offset, row->nbytes, true);
		rc[i] = time_read(b, offset, row->nbytes, true);
		lw[i] = time_load(b, offset, row->nbytes, false);
		rw[i] = time_read(b, offset, row->nbytes, false);
	}
	row->load_cold = median(lc);
	row->read_cold = median(rc);
	row->load_cached = median(lw);
	row->read_cached = median(rw);
}

int main(int argc, char **argv)
{
	struct size_row row[] = {
		{ .nbytes = 4 << 10 },	 { .nbytes = 64 << 10 },
		{ .nbytes = 128 << 10 }, { .nbytes = 256 << 10 },
		{ .nbytes = 512 << 10 }, { .nbytes = 1 << 20 },
		{ .nbytes = 4 << 20 },	 { .nbytes = 16 << 20 },
		{ .nbytes = 64 << 20 },
	};
	struct sample(*samples)[WAYS];
	struct bench b = { 0 };
	uint32_t rounds, i;

	if (argc != 5) {
		fprintf(stderr, "usage: load_bench FILE MIB ROUNDS JSON\n");
		return 2;
	}
	b.path = argv[1];
	b.nbytes = strtoull(argv[2], NULL, 10) * MIB;
	rounds = (uint32_t)strtoul(argv[3], NULL, 10);
	b.fio = getenv("FIO") ? getenv("FIO") : "fio";
	must(b.nbytes >= 128 * MIB && rounds, "MIB of 128 or more, ROUNDS");
	samples = calloc(rounds, sizeof(*samples));
	must(samples, "calloc");

	make_file(&b);
	make_arena(&b);
	for (i = 0; i < rounds; i++) {
		run_round(&b, i, samples[i]);
		fprintf(stderr, "round %u of %u\n", i + 1, rounds);
	}
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		measure_size(&b, &row[i]);
	report(&b, samples, rounds, row, sizeof(row) / sizeof(row[0]), argv[4]);

	ta_reader_close(b.reader);
	ta_writer_close(b.writer);
	close(b.fd);
	unlink(b.path);
	free(samples);
	return 0;
}
