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

/* To the nanosecond, which is what the clock gives: milliseconds, or a ratio. */
static double rounded(double value)
{
	return round(value * 1e6) / 1e6;
}

static json_t *shape_json(const struct ta_tensor *tensor)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < tensor->ndim; i++)
		json_array_append_new(array, json_integer(tensor->shape[i]));
	return array;
}

static json_t *rounds_json(const struct broadcast *b)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < b->rounds; i++) {
		const struct broadcast_round *r = &b->round[i];

		json_array_append_new(
			array,
			json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:I, s:I}",
				  "round", (json_int_t)i + 1, "way",
				  r->loaned ? "loan" : "put", "bytes",
				  (json_int_t)b->in.nbytes, "produce_ms",
				  rounded(r->produce_ms), "put_ms",
				  rounded(r->put_ms), "all_verified_ms",
				  rounded(r->all_verified_ms), "verified",
				  (json_int_t)r->verified, "declined",
				  (json_int_t)r->declined));
	}
	return array;
}

/* A worker's time: the median of its warm rounds, null when it saw nothing. */
static json_t *worker_ms(const struct worker *w)
{
	uint32_t first = w->verified > 1 ? 1 : 0;

	if (!w->verified)
		return json_null();
	return json_real(rounded(median(w->ms + first, w->verified - first)));
}

static json_t *workers_json(const struct broadcast *b)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < b->crew.nr; i++) {
		const struct worker *w = &b->crew.worker[i];

		json_array_append_new(
			array,
			json_pack("{s:I, s:I, s:I, s:b, s:I, s:b, s:o}",
				  "reader", (json_int_t)i, "pid",
				  (json_int_t)w->pid, "seat",
				  (json_int_t)w->seat, "verified",
				  w->verified == b->rounds, "verified_rounds",
				  (json_int_t)w->verified, "alive",
				  w->socket >= 0, "ms", worker_ms(w)));
	}
	return array;
}

static json_t *figures_json(const struct broadcast *b,
			    const struct broadcast_figures *f)
{
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}",
			 "verified", (json_int_t)f->verified, "put_ms",
			 rounded(f->put_ms), "all_verified_ms",
			 rounded(f->all_verified_ms), "memcpy_ms",
			 rounded(b->baseline.memcpy_ms), "checksum_ms",
			 rounded(b->baseline.checksum_ms), "passes_ms",
			 rounded(b->baseline.passes_ms), "bound_ms",
			 rounded(f->bound_ms), "over_bound",
			 rounded(f->over_bound), "declined",
			 (json_int_t)f->declined);
}

static json_t *broadcast_json(const struct broadcast *b,
			      const struct broadcast_figures *f)
{
	bool device = ta_writer_engine(b->writer) == TA_ENGINE_DEVICE;
	char dtype[32], digest[32];
	json_t *object;

	ta_dtype_name(&b->in.tensor, dtype, sizeof(dtype));
	snprintf(digest, sizeof(digest), "%016" PRIx64, b->digest);
	object = json_pack("{s:o, s:s, s:s, s:I, s:s, s:o, s:s, s:I, s:I}",
			   "file", path_json(b->options->path), "about",
			   b->in.about, "engine",
			   device ? "device" : "embedded", "bytes",
			   (json_int_t)b->in.nbytes, "dtype", dtype, "shape",
			   shape_json(&b->in.tensor), CHECKSUM_NAME, digest,
			   "slot_memory_bytes", (json_int_t)b->slot_memory,
			   "readers", (json_int_t)b->options->readers);
	json_object_update_new(object, figures_json(b, f));
	if (b->in.grid_thw[0])
		json_object_set_new(object, "grid_thw",
				    json_pack("[i, i, i]", b->in.grid_thw[0],
					      b->in.grid_thw[1],
					      b->in.grid_thw[2]));
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
