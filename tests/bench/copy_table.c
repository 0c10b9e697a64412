// SPDX-License-Identifier: MIT
/*
 * How fast copies into a slot are: by size, by how many threads take part and
 * by kernel, and what the library's own table makes of it.
 *
 *	copy_table [--pages 4k|2m] [--threads N] [--min MIB] [--max MIB]
 *		   [--rounds N] [--span MIB] [--row BYTES] [--chunk KIB]
 *		   [--json FILE]
 *
 * --pages	of the slot: 4k as in the embedded engine, 2m (the default) as
 *		in the module's
 * --threads	most threads; else as many as the library would have
 * --min	smallest size; else 64 KiB
 * --max	largest size, 256
 * --rounds	copies of each kind and size, 9; small ones are repeated more
 * --span	1024: source and destination move on with each copy, each
 *		through so much memory; at least the largest size.  As a rule
 *		caches do not hold what is put.
 * --row	the source is rows of so many bytes, half a row apart
 * --chunk	instead of the table's chunks
 *
 * Everything of one size is measured in turns, so that a busy moment of the
 * machine touches all alike.  Figures are medians, 1 GB/s = 10^9 bytes copied a
 * second.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "copy_table.h"
#include "lib/copy_gather.h"

#define SMALLEST (64 * KIB)
#define MOST_MIB 8192
#define SETTLED (64 * MIB)

/* The kernel of the kind that leaves everything to the library. */
static const struct ta_copy_kernel as_the_library = { .name = "ta_copy" };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *map(size_t bytes, int flags, int fd)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

/* Resident and aligned as a slot is. */
static uint8_t *make_slot(size_t span, bool huge)
{
	uint8_t *p;
	int fd;

	if (huge) {
		p = map(span + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		p += -(uintptr_t)p % (2 * MIB);
		if (madvise(p, span, MADV_HUGEPAGE))
			warn("no 2 MiB pages");
	} else {
		fd = memfd_create("copy_table", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)span))
			err(1, "memfd");
		p = map(span, MAP_SHARED, fd);
	}
	memset(p, 1, span);
	return p;
}

static void copy_once(struct bench *b, const struct kind *kind, size_t n)
{
	struct ta_copy_plan plan = *ta_copy_plan_for(n);
	struct ta_cursor cursor;
	struct ta_part part;
	uint8_t *dst;

	if (b->at + n > b->span)
		b->at = 0;
	dst = b->dst + b->at;
	part = (struct ta_part){ b->src + b->at, 1, n, 0 };
	if (b->row)
		part = (struct ta_part){ b->src + b->at / 2 * 3, n / b->row + 1,
					 b->row, b->row / 2 * 3 };
	b->at += n;
	if (kind->threads == 1) {
		cursor = (struct ta_cursor){ .part = &part };
		ta_gather(&cursor, dst, 0, n, kind->kernel);
		kind->kernel->fence();
		return;
	}
	b->copier.forced = NULL;
	if (kind->kernel != &as_the_library) {
		plan.threads = kind->threads;
		plan.stream = true;
		if (b->chunk)
			plan.chunk = b->chunk;
		else if (!plan.chunk)
			plan.chunk = 256 * KIB;
		b->copier.forced = &plan;
		b->copier.kernel = kind->kernel;
	}
	ta_copy_parts(&b->copier, dst, &part, n);
	b->copier.kernel = ta_copy_best();
}

/*
 * Where caches hold all there is, what the kind before has left in them would
 * count: ordinary stores leave lines there, others throw them out.  It takes
 * caches several rounds to forget.
 */
static void settle(struct bench *b, const struct kind *kind, size_t n)
{
	size_t done;

	if (b->span > SETTLED)
		return;
	for (done = 0; done < 3 * b->span; done += n)
		copy_once(b, kind, n);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct bench *b, size_t n)
{
	/* Short copies many at a time: the clock has its own cost. */
	uint32_t times = n < MIB ? (uint32_t)(MIB / n) : 1;
	uint32_t rounds = b->rounds * (n < 16 * MIB ? 5 : 1);
	uint32_t round, k, i;
	double start;

	if (rounds > MAX_ROUNDS)
		rounds = MAX_ROUNDS;
	for (round = 0; round < rounds; round++)
		for (k = 0; k < b->kinds; k++) {
			settle(b, &b->kind[k], n);
			start = now();
			for (i = 0; i < times; i++)
				copy_once(b, &b->kind[k], n);
			b->kind[k].gbs[round] =
				(double)n * times / (now() - start) / 1e9;
		}
	for (k = 0; k < b->kinds; k++) {
		struct kind *kind = &b->kind[k];

		qsort(kind->gbs, rounds, sizeof(kind->gbs[0]), compare);
		kind->min = kind->gbs[0];
		kind->median = kind->gbs[rounds / 2];
		kind->max = kind->gbs[rounds - 1];
	}
}

static void add_kind(struct bench *b, uint32_t threads,
		     const struct ta_copy_kernel *kernel)
{
	if (b->kinds == MAX_KINDS)
		errx(1, "more than %d kinds", MAX_KINDS);
	b->kind[b->kinds].threads = threads;
	b->kind[b->kinds++].kernel = kernel;
}

static uint32_t next_threads(uint32_t threads, uint32_t most)
{
	static const uint32_t counts[] = { 1,  2,  3,  4,  6,  8,
					   12, 16, 24, 32, 48, 64 };
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i] > threads)
			return threads < most && counts[i] > most ? most :
								    counts[i];
	return most + 1;
}

/* Every kernel that works here with 1 to @most threads, then the library. */
static void add_kinds(struct bench *b, uint32_t most)
{
	const struct ta_copy_kernel *kernel;
	uint32_t threads;

	for (threads = 1; threads <= most;
	     threads = next_threads(threads, most)) {
		add_kind(b, threads, &ta_copy_plain);
		for (kernel = ta_copy_streaming; kernel->name; kernel++)
			if (kernel->usable())
				add_kind(b, threads, kernel);
	}
	add_kind(b, 0, &as_the_library);
}

static uint32_t number(const char *text, uint32_t most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !*text || value < 1 || value > most)
		errx(2, "%s: a number from 1 to %u is wanted", text, most);
	return (uint32_t)value;
}

static bool take_option(struct bench *b, const char *name, const char *value,
			const char **json)
{
	if (!strcmp(name, "--pages")) {
		b->huge = !strcmp(value, "2m");
		return b->huge || !strcmp(value, "4k");
	}
	if (!strcmp(name, "--threads"))
		b->threads = number(value, TA_COPY_MAX_THREADS);
	else if (!strcmp(name, "--min"))
		b->smallest = number(value, MOST_MIB) * MIB;
	else if (!strcmp(name, "--max"))
		b->largest = number(value, MOST_MIB) * MIB;
	else if (!strcmp(name, "--rounds"))
		b->rounds = number(value, MAX_ROUNDS);
	else if (!strcmp(name, "--span"))
		b->span = number(value, MOST_MIB) * MIB;
	else if (!strcmp(name, "--row"))
		b->row = number(value, MIB);
	else if (!strcmp(name, "--chunk"))
		b->chunk = number(value, 65536) * KIB;
	else if (!strcmp(name, "--json"))
		*json = value;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.smallest = SMALLEST,
		.largest = 256 * MIB,
		.rounds = 9,
		.span = 1024 * MIB,
		.huge = true,
	};
	const char *path = "/dev/null";
	struct ta_cpus_found found;
	FILE *json;
	size_t n;
	int i;

	ta_cpus_find(-1, &found);
	b.threads = found.threads;
	for (i = 1; i < argc; i += 2)
		if (i + 1 == argc ||
		    !take_option(&b, argv[i], argv[i + 1], &path))
			errx(2, "%s: no such option, or not with this value",
			     argv[i]);
	if (b.chunk & (b.chunk - 1))
		errx(2, "chunks must be a power of two");
	if (b.span < b.largest)
		b.span = b.largest;
	json = fopen(path, "we");
	if (!json)
		err(1, "%s", path);

	/* Room for what lies between rows, and for the last of them. */
	b.src = map(2 * b.span, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(b.src, 2, b.row ? 2 * b.span : b.span);
	b.dst = make_slot(b.span, b.huge);
	ta_copier_init(&b.copier, b.threads, -1);
	add_kinds(&b, b.threads);
	report_begin(&b, json);
	for (n = b.smallest; n <= b.largest; n *= 2) {
		measure(&b, n);
		report_size(&b, n, json);
	}
	report_end(json);
	if (fclose(json))
		err(1, "%s", path);
	ta_copier_destroy(&b.copier, false);
	return 0;
}
