// SPDX-License-Identifier: MIT
/* Telling what copies cost, to people and to programs; see copy_table.h. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "copy_table.h"

/* One value of a file of "key : value" lines, or "unknown". */
static void look_up(const char *path, const char *key, char *value, size_t size)
{
	char line[512];
	FILE *file = fopen(path, "re");

	snprintf(value, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) || !strchr(line, ':'))
			continue;
		line[strcspn(line, "\n\"\\")] = '\0';
		snprintf(value, size, "%s",
			 strchr(line, ':') + 1 +
				 strspn(strchr(line, ':') + 1, " \t"));
		break;
	}
	if (file)
		fclose(file);
}

static void describe(const struct bench *b, FILE *json)
{
	char cpu[256], pages[64];
	struct utsname os;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	look_up("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
	look_up("/proc/self/smaps_rollup", "AnonHugePages", pages,
		sizeof(pages));
	uname(&os);
	/* What comes after the version is the builder's own. */
	os.release[strspn(os.release, ".0123456789")] = '\0';
	printf("# %s, %ld processors, Linux %s\n", cpu, processors, os.release);
	printf("# slot of %s pages (2 MiB pages in use: %s), %zu MiB gone "
	       "through\n",
	       b->huge ? "2 MiB" : "4 KiB", pages, b->span / MIB);
	if (b->row)
		printf("# source of rows of %zu bytes\n", b->row);
	fprintf(json, "{\n  \"cpu\": \"%s\",\n", cpu);
	fprintf(json, "  \"processors\": %ld,\n", processors);
	fprintf(json, "  \"linux\": \"%s\",\n", os.release);
	fprintf(json, "  \"slot_pages\": \"%s\",\n", b->huge ? "2m" : "4k");
	fprintf(json, "  \"huge_pages_in_use\": \"%s\",\n", pages);
	fprintf(json, "  \"span\": %zu,\n", b->span);
	fprintf(json, "  \"row\": %zu,\n", b->row);
	fprintf(json, "  \"chunk\": %zu,\n", b->chunk);
	fprintf(json, "  \"rounds\": %u,\n  \"copies\": [", b->rounds);
}

void report_begin(const struct bench *b, FILE *json)
{
	uint32_t k;

	describe(b, json);
	printf("%10s %7s", "bytes", "threads");
	for (k = 0; k < b->kinds && b->kind[k].threads == 1; k++)
		printf(" %8s", b->kind[k].kernel->name);
	printf("   GB/s\n");
}

/* A line a thread count. */
static void print_rows(const struct bench *b, const char *size)
{
	const struct kind *last = &b->kind[b->kinds - 1], *kind;

	for (kind = b->kind; kind < last; kind++) {
		if (kind == b->kind)
			printf("%10s %7u", size, kind->threads);
		else if (kind->threads != kind[-1].threads)
			printf("\n%10s %7u", "", kind->threads);
		printf(" %8.2f", kind->median);
	}
	printf("\n");
}

/* How the library's choice compares. */
static void print_choice(const struct bench *b)
{
	const struct kind *last = &b->kind[b->kinds - 1];
	const struct kind *best = b->kind, *kind;

	for (kind = b->kind; kind < last; kind++)
		if (kind->median > best->median)
			best = kind;
	printf("%10s ta_copy %8.2f = %.2f of the best, %u x %s\n", "",
	       last->median, last->median / best->median, best->threads,
	       best->kernel->name);
	fflush(stdout);
}

void report_size(const struct bench *b, size_t n, FILE *json)
{
	const struct kind *kind;
	char size[32];

	snprintf(size, sizeof(size), n < MIB ? "%zu KiB" : "%zu MiB",
		 n < MIB ? n / KIB : n / MIB);
	print_rows(b, size);
	print_choice(b);
	for (kind = b->kind; kind < b->kind + b->kinds; kind++)
		fprintf(json,
			"%s\n    {\"bytes\": %zu, \"threads\": %u, "
			"\"kernel\": \"%s\", \"gbs\": %.3f, \"min\": %.3f, "
			"\"max\": %.3f}",
			n == b->smallest && kind == b->kind ? "" : ",", n,
			kind->threads, kind->kernel->name, kind->median,
			kind->min, kind->max);
}

void report_end(FILE *json)
{
	fprintf(json, "\n  ]\n}\n");
}
