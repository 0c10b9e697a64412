// SPDX-License-Identifier: MIT
/*
 * The report for programs: one JSON object.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "broadcast.h"
#include "checksum.h"
#include "median.h"

/* As printed, digits; without it 0.1 is 0.10000000000000001. */
#define REAL_DIGITS 12

/* JSON is UTF-8; the bytes of a path that is not are shown as '?'. */
static json_t *path_json(const char *path)
{
	json_t *value = json_string(path);
	char *ascii, *c;

	if (value)
		return value;
	ascii = strdup(path);
	if (!ascii)
		return NULL;
	for (c = ascii; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	value = json_string(ascii);
	free(ascii);
	return value;
}

static void set_integer(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

/* To the nanosecond, which is what the clock gives, or a millionth. */
static void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_real(round(value * 1e6) / 1e6));
}

static void set_string(json_t *object, const char *key, const char *value)
{
	json_object_set_new(object, key, json_string(value));
}

static void set_boolean(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

static void set_bare(json_t *object, const struct baseline *bare)
{
	set_real(object, "memcpy_ms", bare->memcpy_ms);
	set_real(object, "checksum_ms", bare->checksum_ms);
	set_real(object, "passes_ms", bare->passes_ms);
}

static json_t *integers_json(const int64_t *value, size_t n)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(array, json_integer(value[i]));
	return array;
}

static json_t *round_json(const struct broadcast *b, uint32_t i)
{
	const struct broadcast_round *r = &b->round[i];
	json_t *object = json_object();

	set_integer(object, "round", i + 1);
	set_string(object, "way", r->loaned ? "loan" : "put");
	set_integer(object, "bytes", b->in.nbytes);
	set_real(object, "produce_ms", r->produce_ms);
	set_real(object, "put_ms", r->put_ms);
	set_real(object, "all_verified_ms", r->all_verified_ms);
	set_integer(object, "verified", r->verified);
	set_integer(object, "declined", r->declined);
	if (b->options->gpu)
		set_real(object, "slot_free_ms", r->slot_free_ms);
	set_bare(object, &r->bare);
	return object;
}

static json_t *rounds_json(const struct broadcast *b)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < b->rounds; i++)
		json_array_append_new(array, round_json(b, i));
	return array;
}

static json_t *worker_json(const struct broadcast *b, uint32_t i)
{
	const struct worker *w = &b->crew.worker[i];
	uint32_t first = w->verified > 1 ? 1 : 0;
	json_t *object = json_object();

	set_integer(object, "reader", i);
	set_integer(object, "pid", w->pid);
	set_integer(object, "seat", w->seat);
	set_boolean(object, "verified", w->verified == b->rounds);
	set_integer(object, "verified_rounds", w->verified);
	set_boolean(object, "alive", w->socket >= 0);
	if (b->options->gpu) {
		set_integer(object, "gpu", w->device);
		set_real(object, "h2d_gbps", broadcast_worker_gbps(b, w));
		set_real(object, "pin_ms", w->pin_ms);
	}
	/* The median of its warm rounds; null when it verified none. */
	if (w->verified)
		set_real(object, "ms",
			 median(w->ms + first, w->verified - first));
	else
		json_object_set_new(object, "ms", json_null());
	return object;
}

static json_t *workers_json(const struct broadcast *b)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < b->crew.nr; i++)
		json_array_append_new(array, worker_json(b, i));
	return array;
}

static void set_tensor(json_t *object, const struct input *in)
{
	const int64_t grid[] = { in->grid_thw[0], in->grid_thw[1],
				 in->grid_thw[2] };
	char dtype[32];

	ta_dtype_name(&in->tensor, dtype, sizeof(dtype));
	set_integer(object, "bytes", in->nbytes);
	set_string(object, "dtype", dtype);
	json_object_set_new(object, "shape",
			    integers_json(in->tensor.shape, in->tensor.ndim));
	if (grid[0])
		json_object_set_new(object, "grid_thw", integers_json(grid, 3));
}

static void set_figures(json_t *object, const struct broadcast_figures *f)
{
	set_integer(object, "verified", f->verified);
	set_integer(object, "declined", f->declined);
	set_real(object, "put_ms", f->put_ms);
	set_real(object, "all_verified_ms", f->all_verified_ms);
	set_bare(object, &f->bare);
	set_real(object, "bound_ms", f->bound_ms);
	set_real(object, "over_bound", f->over_bound);
}

static json_t *broadcast_json(const struct broadcast *b,
			      const struct broadcast_figures *f)
{
	bool device = ta_writer_engine(b->writer) == TA_ENGINE_DEVICE;
	json_t *object = json_object();
	char digest[32];

	json_object_set_new(object, "file", path_json(b->options->path));
	set_string(object, "about", b->in.about);
	set_string(object, "engine", device ? "device" : "embedded");
	set_tensor(object, &b->in);
	snprintf(digest, sizeof(digest), "%016" PRIx64, b->digest);
	set_string(object, CHECKSUM_NAME, digest);
	set_integer(object, "slot_memory_bytes", b->slot_memory);
	set_integer(object, "readers", b->options->readers);
	set_figures(object, f);
	if (b->options->gpu) {
		set_real(object, "h2d_gbps", f->h2d_gbps);
		set_real(object, "pin_ms", f->pin_ms);
		set_real(object, "slot_free_ms", f->slot_free_ms);
	}
	json_object_set_new(object, "rounds", rounds_json(b));
	json_object_set_new(object, "per_reader", workers_json(b));
	return object;
}

int report_json(const struct broadcast *b, struct reason *why)
{
	struct broadcast_figures f;
	json_t *object;
	int err;

	if (broadcast_figures(b, &f))
		return reason_set(why, "no memory for the report");
	object = broadcast_json(b, &f);
	err = json_dumpf(object, stdout,
			 JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));
	json_decref(object);
	if (err)
		return reason_set(why, "cannot write the report");
	putchar('\n');
	return 0;
}
