// SPDX-License-Identifier: MIT
/*
 * The report on a file of many tensors, for programs: one JSON object.
 */
#include "broadcast_stream.h"
#include "json_parts.h"

/* A tag of ours is a name of the format: UTF-8. */
static void set_name(json_t *object, const struct ta_tensor *t)
{
	json_object_set_new(object, "name",
			    json_stringn((const char *)t->tag, t->tag_bytes));
}

static json_t *tensor_json(const struct stream *s,
			   const struct stream_tensor *t)
{
	json_t *object = json_object();

	set_name(object, &t->from->tensor);
	set_tensor(object, &t->from->tensor, t->from->nbytes);
	set_integer(object, "offset", t->from->offset);
	set_integer(object, "sent", t->sent);
	set_boolean(object, "verified",
		    t->verified ==
			    (uint64_t)s->rounds * s->b->options->readers);
	if (t->err)
		set_string(object, "declined", ta_strerror(t->err));
	if (t->sent) {
		set_digest(object, t->digest);
		set_real(object, "first_load_ms", t->ms[0]);
		/* Last, for it puts them in order. */
		set_real(object, "load_ms", stream_load_ms(t));
	}
	return object;
}

static json_t *tensors_json(const struct stream *s)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		json_array_append_new(array, tensor_json(s, &s->tensor[i]));
	return array;
}

static json_t *rounds_json(const struct stream *s)
{
	json_t *array = json_array();
	uint32_t i;

	for (i = 0; i < s->rounds; i++) {
		const struct stream_round *r = &s->round[i];
		json_t *object = json_object();

		set_integer(object, "round", i + 1);
		set_integer(object, "tensors", r->tensors);
		set_integer(object, "verified", r->verified);
		set_integer(object, "bytes", r->bytes);
		set_integer(object, "declined", r->declined);
		set_real(object, "load_ms", r->load_ms);
		set_real(object, "load_gbps", stream_gbps(r));
		set_real(object, "check_ms", r->check_ms);
		set_real(object, "all_verified_ms", r->all_verified_ms);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *load_json(const struct ta_load_stats *l)
{
	json_t *object = json_object();

	set_integer(object, "direct_bytes", l->direct_bytes);
	set_integer(object, "fixed_bytes", l->fixed_bytes);
	set_integer(object, "bounced_bytes", l->bounced_bytes);
	set_integer(object, "cached_bytes", l->cached_bytes);
	set_integer(object, "buffered_bytes", l->buffered_bytes);
	return object;
}

static json_t *workers_json(const struct stream *s)
{
	json_t *array = json_array();
	uint32_t sent = 0;
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		sent += s->tensor[i].sent;
	for (i = 0; i < s->b->crew.nr; i++) {
		const struct worker *w = &s->b->crew.worker[i];
		json_t *object = json_object();

		set_integer(object, "reader", i);
		set_integer(object, "pid", (uint64_t)w->pid);
		set_integer(object, "seat", w->seat);
		set_boolean(object, "verified", w->verified == sent);
		set_integer(object, "verified_tensors", w->verified);
		set_boolean(object, "alive", w->socket >= 0);
		if (s->b->options->gpu)
			set_integer(object, "gpu", (uint64_t)w->device);
		json_array_append_new(array, object);
	}
	return array;
}

int stream_report_json(const struct stream *s, struct reason *why)
{
	const struct broadcast *b = s->b;
	bool device = ta_writer_engine(b->writer) == TA_ENGINE_DEVICE;
	json_t *object = json_object();

	set_string(object, "file", b->options->path);
	set_string(object, "about", b->in.about);
	set_string(object, "engine", device ? "device" : "embedded");
	set_integer(object, "bytes", b->in.file_bytes);
	set_integer(object, "slot_memory_bytes", b->slot_memory);
	set_integer(object, "readers", b->options->readers);
	set_integer(object, "verified", stream_verified(s));
	json_object_set_new(object, "load", load_json(&s->load));
	json_object_set_new(object, "tensors", tensors_json(s));
	json_object_set_new(object, "rounds", rounds_json(s));
	json_object_set_new(object, "per_reader", workers_json(s));
	return json_report(object, why);
}
