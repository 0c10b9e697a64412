// SPDX-License-Identifier: MIT
/* Medians, ratios and the machine, for people and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "load_bench.h"

/* Median, least and most of some figures. */
struct spread {
	double median, min, max;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct spread spread_of(double *value, uint32_t nr)
{
	qsort(value, nr, sizeof(*value), compare);
	return (struct spread){
		.median = nr % 2 ? value[nr / 2] :
				   (value[nr / 2 - 1] + value[nr / 2]) / 2,
		.min = value[0],
		.max = value[nr - 1],
	};
}

static double rate(const struct sample *s)
{
	return (double)s->nbytes / s->seconds / 1e9;
}

/* Per cent of one core for each GB/s. */
static double cost(const struct sample *s)
{
	return s->cpu_seconds / ((double)s->nbytes / 1e9) * 100;
}

typedef double figure_fn(const struct sample *s);

static struct spread figure(struct sample (*samples)[WAYS], uint32_t rounds,
			    enum way way, figure_fn *fn)
{
	double *value = calloc(rounds, sizeof(*value));
	struct spread spread;
	uint32_t i;

	must(value, "calloc");
	for (i = 0; i < rounds; i++)
		value[i] = fn(&samples[i][way]);
	spread = spread_of(value, rounds);
	free(value);
	return spread;
}

/* Of the rates of two ways in the same round. */
static struct spread ratio(struct sample (*samples)[WAYS], uint32_t rounds,
			   enum way way, enum way to)
{
	double *value = calloc(rounds, sizeof(*value));
	struct spread spread;
	uint32_t i;

	must(value, "calloc");
	for (i = 0; i < rounds; i++)
		value[i] = rate(&samples[i][way]) / rate(&samples[i][to]);
	spread = spread_of(value, rounds);
	free(value);
	return spread;
}

static json_t *spread_json(struct spread s)
{
	return json_pack("{s:f,s:f,s:f}", "median", s.median, "min", s.min,
			 "max", s.max);
}

/* @to FIO_LARGE: whichever of fio's two usual ways is the faster. */
static const struct {
	const char *name;
	enum way way, to;
} ratios[] = {
	{ "load_cold_over_fio", LOAD_COLD, FIO_LARGE },
	{ "load_cold_over_fio_wide", LOAD_COLD, FIO_WIDE },
	{ "load_cold_odd_over_fio", LOAD_COLD_ODD, FIO_LARGE },
	{ "load_cold_odd_over_fio_wide", LOAD_COLD_ODD, FIO_WIDE },
	{ "load_cold_over_read", LOAD_COLD, READ_COLD },
	{ "load_cached_over_read", LOAD_CACHED, READ_CACHED },
	{ "load_cached_odd_over_read", LOAD_CACHED_ODD, READ_CACHED },
};

#define NR_RATIOS (sizeof(ratios) / sizeof(ratios[0]))

static struct spread ratio_of(struct sample (*samples)[WAYS], uint32_t rounds,
			      size_t i)
{
	enum way to = ratios[i].to;

	if (to == FIO_LARGE &&
	    figure(samples, rounds, FIO_SMALL, rate).median >
		    figure(samples, rounds, FIO_LARGE, rate).median)
		to = FIO_SMALL;
	return ratio(samples, rounds, ratios[i].way, to);
}

static void print_ways(struct sample (*samples)[WAYS], uint32_t rounds)
{
	struct spread r, c;
	size_t i;

	fprintf(stderr, "%-24s %-28s %s\n", "way", "GB/s median (min-max)",
		"% of a core per GB/s");
	for (i = 0; i < WAYS; i++) {
		r = figure(samples, rounds, (enum way)i, rate);
		c = figure(samples, rounds, (enum way)i, cost);
		fprintf(stderr,
			"%-24s %6.2f (%.2f-%.2f) %10s %6.1f (%.1f-%.1f)\n",
			way_name[i], r.median, r.min, r.max, "", c.median,
			c.min, c.max);
	}
	fprintf(stderr, "\nratios, side by side:\n");
	for (i = 0; i < NR_RATIOS; i++) {
		r = ratio_of(samples, rounds, i);
		fprintf(stderr, "%-28s %.2f (%.2f-%.2f)\n", ratios[i].name,
			r.median, r.min, r.max);
	}
}

static void print_sizes(const struct size_row *row, size_t nr)
{
	size_t i;

	fprintf(stderr, "\n%10s %12s %12s %12s %12s  (medians, us)\n", "KiB",
		"load cold", "read cold", "load cached", "read cached");
	for (i = 0; i < nr; i++)
		fprintf(stderr, "%10zu %12.0f %12.0f %12.0f %12.0f\n",
			row[i].nbytes >> 10, row[i].load_cold * 1e6,
			row[i].read_cold * 1e6, row[i].load_cached * 1e6,
			row[i].read_cached * 1e6);
}

static json_t *ways_json(struct sample (*samples)[WAYS], uint32_t rounds)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; i < WAYS; i++)
		json_object_set_new(
			object, way_name[i],
			json_pack("{s:o,s:o}", "gb_per_s",
				  spread_json(figure(samples, rounds,
						     (enum way)i, rate)),
				  "core_percent_per_gb_per_s",
				  spread_json(figure(samples, rounds,
						     (enum way)i, cost))));
	return object;
}

static json_t *ratios_json(struct sample (*samples)[WAYS], uint32_t rounds)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; i < NR_RATIOS; i++)
		json_object_set_new(object, ratios[i].name,
				    spread_json(ratio_of(samples, rounds, i)));
	return object;
}

static json_t *sizes_json(const struct size_row *row, size_t nr)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < nr; i++)
		json_array_append_new(
			array,
			json_pack("{s:I,s:f,s:f,s:f,s:f}", "bytes",
				  (json_int_t)row[i].nbytes, "load_cold_us",
				  row[i].load_cold * 1e6, "read_cold_us",
				  row[i].read_cold * 1e6, "load_cached_us",
				  row[i].load_cached * 1e6, "read_cached_us",
				  row[i].read_cached * 1e6));
	return array;
}

/* The processor's own name for itself. */
static void cpu_model(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "model name : %127[^\n]", buf) == 1)
			break;
	}
	if (f)
		fclose(f);
}

static json_t *machine_json(const struct bench *b)
{
	char cpu[128], fio[64];
	struct utsname u;

	uname(&u);
	cpu_model(cpu, sizeof(cpu));
	fio_version(b, fio, sizeof(fio));
	return json_pack("{s:s,s:I,s:s,s:s,s:s}", "cpu", cpu, "cpus",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "kernel",
			 u.release, "fio", fio, "engine",
			 ta_writer_engine(b->writer) == TA_ENGINE_DEVICE ?
				 "device" :
				 "embedded");
}

static json_t *stats_json(struct bench *b)
{
	struct ta_load_stats st;

	must(!ta_load_stats(b->writer, &st), "ta_load_stats");
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:i,s:i}",
			 "direct_bytes", (json_int_t)st.direct_bytes,
			 "fixed_bytes", (json_int_t)st.fixed_bytes,
			 "bounced_bytes", (json_int_t)st.bounced_bytes,
			 "cached_bytes", (json_int_t)st.cached_bytes,
			 "buffered_bytes", (json_int_t)st.buffered_bytes,
			 "registrations", (json_int_t)st.registrations,
			 "register_ns", (json_int_t)st.register_ns,
			 "ring_error", st.ring_error, "direct_error",
			 st.direct_error, "register_error", st.register_error);
}

void report(struct bench *b, struct sample (*samples)[WAYS], uint32_t rounds,
	    const struct size_row *row, size_t nr, const char *json)
{
	json_t *root;

	print_ways(samples, rounds);
	print_sizes(row, nr);
	root = json_pack("{s:o,s:I,s:I,s:o,s:o,s:o,s:o}", "machine",
			 machine_json(b), "file_bytes", (json_int_t)b->nbytes,
			 "rounds", (json_int_t)rounds, "ways",
			 ways_json(samples, rounds), "ratios",
			 ratios_json(samples, rounds), "sizes",
			 sizes_json(row, nr), "stats", stats_json(b));
	must(root && !json_dump_file(root, json,
				     JSON_INDENT(2) | JSON_REAL_PRECISION(5)),
	     json);
	json_decref(root);
}
