// SPDX-License-Identifier: MIT
/* Text and JSON of the program ops; see ops.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ops.h"

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void sort(struct op_run *run)
{
	enum op op;

	for (op = 0; op < OPS; op++)
		qsort(run->samples[op].ns, run->samples[op].nr,
		      sizeof(run->samples[op].ns[0]), ascending);
}

static void print_run(struct op_run *run)
{
	const struct op_samples *s;
	enum op op;

	sort(run);
	for (op = 0; op < OPS; op++) {
		s = &run->samples[op];
		if (!s->nr)
			continue;
		printf("# %s engine, %2u readers: %-8s p50 %7u ns, p99 %7u "
		       "ns\n",
		       run->device ? "device" : "embedded", run->readers,
		       op_names[op], s->ns[s->nr / 2],
		       s->ns[(size_t)s->nr * 99 / 100]);
	}
}

void ops_print(struct op_result *result)
{
	const struct op_idle *idle = &result->idle;
	const struct op_first *first;
	size_t i;

	for (i = 0; i < result->runs; i++)
		print_run(&result->run[i]);
	printf("# idle arena, writer: %d threads, %d KiB, %d descriptors\n"
	       "# idle arena, reader: %d threads, %d KiB, %d descriptors\n",
	       idle->writer_threads, idle->writer_kib, idle->writer_fds,
	       idle->reader_threads, idle->reader_kib, idle->reader_fds);
	for (i = 0; i < result->firsts; i++) {
		first = &result->first[i];
		printf("# 200 MiB, first and second: put %.1f %.1f ms (CPU "
		       "%.1f %.1f), view %.1f %.3f ms (CPU %.1f %.3f)\n",
		       first->put[0].ms, first->put[1].ms, first->put[0].cpu_ms,
		       first->put[1].cpu_ms, first->view[0].ms,
		       first->view[1].ms, first->view[0].cpu_ms,
		       first->view[1].cpu_ms);
	}
}

static void set(json_t *object, const char *key, json_int_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

static json_t *samples_json(const struct op_samples *s)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		json_array_append_new(array, json_integer(s->ns[i]));
	return array;
}

static json_t *run_json(const struct op_run *run)
{
	json_t *object = json_object();
	enum op op;

	set(object, "readers", run->readers);
	for (op = 0; op < OPS; op++)
		json_object_set_new(object, op_names[op],
				    samples_json(&run->samples[op]));
	return object;
}

static json_t *idle_json(const struct op_idle *idle)
{
	json_t *object = json_object();

	set(object, "writer_threads", idle->writer_threads);
	set(object, "writer_kib", idle->writer_kib);
	set(object, "writer_descriptors", idle->writer_fds);
	set(object, "reader_threads", idle->reader_threads);
	set(object, "reader_kib", idle->reader_kib);
	set(object, "reader_descriptors", idle->reader_fds);
	return object;
}

static void set_costs(json_t *object, const char *what,
		      const struct op_result *result, size_t offset)
{
	json_t *ms = json_array(), *cpu = json_array();
	const struct op_cost *cost;
	char key[32];
	size_t i;

	for (i = 0; i < result->firsts; i++) {
		cost = (const void *)((const char *)&result->first[i] + offset);
		json_array_append_new(ms, json_real(cost->ms));
		json_array_append_new(cpu, json_real(cost->cpu_ms));
	}
	snprintf(key, sizeof(key), "%s_ms", what);
	json_object_set_new(object, key, ms);
	snprintf(key, sizeof(key), "%s_cpu_ms", what);
	json_object_set_new(object, key, cpu);
}

static json_t *first_json(const struct op_result *result)
{
	json_t *object = json_object();

	set_costs(object, "first_put", result,
		  offsetof(struct op_first, put[0]));
	set_costs(object, "second_put", result,
		  offsetof(struct op_first, put[1]));
	set_costs(object, "first_view", result,
		  offsetof(struct op_first, view[0]));
	set_costs(object, "second_view", result,
		  offsetof(struct op_first, view[1]));
	return object;
}

int ops_write(const char *path, const struct op_result *result)
{
	json_t *object = json_object(), *runs = json_array();
	size_t i;
	int err;

	for (i = 0; i < result->runs; i++) {
		sort(&result->run[i]);
		json_array_append_new(runs, run_json(&result->run[i]));
	}
	json_object_set_new(object, "benchmark", json_string("ops"));
	json_object_set_new(object, "engine",
			    json_string(result->run[0].device ? "device" :
								"embedded"));
	json_object_set_new(object, "idle_arena", idle_json(&result->idle));
	json_object_set_new(object, "first_use_200_mib", first_json(result));
	json_object_set_new(object, "samples_ns_sorted", runs);
	err = json_dump_file(object, path,
			     JSON_COMPACT | JSON_REAL_PRECISION(6));
	json_decref(object);
	if (err)
		fprintf(stderr, "ops: %s: %s\n", path, strerror(errno));
	return err ? 1 : 0;
}
