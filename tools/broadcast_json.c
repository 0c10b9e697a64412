// SPDX-License-Identifier: MIT
/*
 * The report for programs: one JSON object.
 */
#include <stdio.h>

#include "broadcast.h"
#include "json_parts.h"
#include "median.h"

static void set_bare(json_t *object, const struct baseline *bare)
{
	set_real(object, "memcpy_ms", bare->memcpy_ms);
	set_real(object, "checksum_ms", bare->checksum_ms);
	set_real(object, "passes_ms", bare->passes_ms);
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
	const int64_t grid[] = { b->in.grid_thw[0], b->in.grid_thw[1],
				 b->in.grid_thw[2] };
	json_t *object = json_object();

	set_string(object, "file", b->options->path);
	set_string(object, "about", b->in.about);
	set_string(object, "engine", device ? "device" : "embedded");
	set_tensor(object, &b->in.tensor, b->in.nbytes);
	if (grid[0])
		set_integers(object, "grid_thw", grid, 3);
	set_digest(object, b->digest);
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

	if (broadcast_figures(b, &f))
		return reason_set(why, "no memory for the report");
	return json_report(broadcast_json(b, &f), why);
}
