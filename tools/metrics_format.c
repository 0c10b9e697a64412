// SPDX-License-Identifier: MIT
/*
 * The figures of arenas as OpenMetrics; see metrics_format.h.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "arenas.h"
#include "metrics_format.h"

#define NS 1e-9

/**
 * struct sample - a figure as a sample of its family
 * @attribute: the figure's name
 * @label: what tells it from the family's others, as it stands in braces, or NULL
 */
struct sample {
	const char *attribute;
	const char *label;
};

#define MAX_SAMPLES 4

/**
 * struct family - samples that belong together
 * @name: without prefix and, for counters, without "_total"
 * @counter: whether it only ever grows
 * @unit: NULL for a number of things
 * @scale: of the figures, to get to that unit
 * @help: a sentence
 * @sample: its samples
 */
struct family {
	const char *name;
	bool counter;
	const char *unit;
	double scale;
	const char *help;
	struct sample sample[MAX_SAMPLES];
};

static const struct family families[] = {
	{ "slots",
	  false,
	  NULL,
	  1,
	  "Slots by state.",
	  { { "free", "state=\"free\"" },
	    { "writing", "state=\"writing\"" },
	    { "published", "state=\"published\"" } } },
	{ "slot_size_bytes",
	  false,
	  "bytes",
	  1,
	  "Largest tensor a slot takes.",
	  { { "slot_bytes", NULL } } },
	{ "seats",
	  false,
	  NULL,
	  1,
	  "Open seats, claimed or not.",
	  { { "readers", NULL } } },
	{ "memory_bytes",
	  false,
	  "bytes",
	  1,
	  "Memory that slots hold.",
	  { { "allocated_bytes", NULL } } },
	{ "memory_extents",
	  false,
	  NULL,
	  1,
	  "Physically contiguous stretches that this memory is of.",
	  { { "extents", NULL } } },
	{ "oldest_pending_seconds",
	  false,
	  "seconds",
	  NS,
	  "Age of the oldest publication that is not released.",
	  { { "oldest_ns", NULL } } },
	{ "puts",
	  true,
	  NULL,
	  1,
	  "Publications that addressed somebody.",
	  { { "puts", NULL } } },
	{ "put_bytes",
	  true,
	  "bytes",
	  1,
	  "Bytes of these publications.",
	  { { "put_bytes", NULL } } },
	{ "unaddressed",
	  true,
	  NULL,
	  1,
	  "Publications that addressed nobody.",
	  { { "unaddressed", NULL } } },
	{ "aborted",
	  true,
	  NULL,
	  1,
	  "Slots given back unpublished.",
	  { { "aborted", NULL } } },
	{ "released",
	  true,
	  NULL,
	  1,
	  "Releases by readers.",
	  { { "released", NULL } } },
	{ "retracted",
	  true,
	  NULL,
	  1,
	  "Readers that publications were taken back from, unseen.",
	  { { "retracted", NULL } } },
	{ "declined",
	  true,
	  NULL,
	  1,
	  "Times the arena declined a tensor.",
	  { { "declined_no_slot", "reason=\"no_slot\"" },
	    { "declined_oversize", "reason=\"oversize\"" },
	    { "declined_no_memory", "reason=\"no_memory\"" } } },
	{ "readers_attached",
	  true,
	  NULL,
	  1,
	  "Readers that attached.",
	  { { "attached", NULL } } },
	{ "readers_left",
	  true,
	  NULL,
	  1,
	  "Readers that left, and how.",
	  { { "detached", "how=\"detached\"" },
	    { "evicted", "how=\"evicted\"" },
	    { "reclaimed_dead_readers", "how=\"died\"" } } },
	{ "reclaimed_bytes",
	  true,
	  "bytes",
	  1,
	  "Memory taken back because the machine was short of it.",
	  { { "reclaimed_bytes", NULL } } },
	{ "waits",
	  true,
	  NULL,
	  1,
	  "Polls that found nothing to do, by side.",
	  { { "writer_waits", "side=\"writer\"" },
	    { "reader_waits", "side=\"reader\"" } } },
};

#define NR_FAMILIES (sizeof(families) / sizeof(*families))

static void print_head(FILE *out, const char *prefix, const char *name,
		       const char *type, const char *unit, const char *help)
{
	fprintf(out, "# TYPE tensorarena_%s%s %s\n", prefix, name, type);
	if (unit)
		fprintf(out, "# UNIT tensorarena_%s%s %s\n", prefix, name,
			unit);
	fprintf(out, "# HELP tensorarena_%s%s %s\n", prefix, name, help);
}

/* Integers as such, lest they lose digits. */
static void print_value(FILE *out, long long value, double scale)
{
	if (scale < 1)
		fprintf(out, " %.9f\n", (double)value * scale);
	else
		fprintf(out, " %lld\n", value);
}

static void print_samples(FILE *out, const char *prefix, const struct family *f,
			  const json_t *object, const char *labels)
{
	size_t i;

	for (i = 0; i < MAX_SAMPLES && f->sample[i].attribute; i++) {
		const struct sample *s = &f->sample[i];
		const char *comma = *labels && s->label ? "," : "";

		/* Not every engine has every figure. */
		if (!json_is_integer(json_object_get(object, s->attribute)))
			continue;
		fprintf(out, "tensorarena_%s%s%s", prefix, f->name,
			f->counter ? "_total" : "");
		if (*labels || s->label)
			fprintf(out, "{%s%s%s}", labels, comma,
				s->label ? s->label : "");
		print_value(out, arenas_figure(object, s->attribute), f->scale);
	}
}

static bool has_figures(const struct family *f, const json_t *object)
{
	return json_is_integer(json_object_get(object, f->sample[0].attribute));
}

/* Names and engines have no character that would need escaping. */
static void label_arena(const json_t *arena, char *labels, size_t size)
{
	snprintf(labels, size, "arena=\"%s\",engine=\"%s\"", arenas_name(arena),
		 json_string_value(json_object_get(arena, "engine")));
}

static void print_arenas(FILE *out, const json_t *arenas,
			 const struct family *f)
{
	char labels[128];
	size_t i;

	print_head(out, "arena_", f->name, f->counter ? "counter" : "gauge",
		   f->unit, f->help);
	for (i = 0; i < json_array_size(arenas); i++) {
		const json_t *arena = json_array_get(arenas, i);

		label_arena(arena, labels, sizeof(labels));
		print_samples(out, "arena_", f, arena, labels);
	}
}

/* A figure of each seat of each arena. */
static void print_seats(FILE *out, const json_t *arenas, const char *name,
			const char *attribute, double scale)
{
	char labels[128];
	size_t i, s;

	for (i = 0; i < json_array_size(arenas); i++) {
		const json_t *arena = json_array_get(arenas, i);
		const json_t *list = json_object_get(arena, attribute);

		label_arena(arena, labels, sizeof(labels));
		for (s = 0; s < json_array_size(list); s++) {
			fprintf(out,
				"tensorarena_reader_%s{%s,seat=\"%lld\","
				"reader=\"%lld\",pid=\"%lld\"}",
				name, labels,
				arenas_figure_at(arena, "seats", s),
				arenas_figure_at(arena, "seat_readers", s),
				arenas_figure_at(arena, "seat_pids", s));
			print_value(out, arenas_figure_at(arena, attribute, s),
				    scale);
		}
	}
}

static void print_module(FILE *out, const json_t *module)
{
	size_t i;

	print_head(out, "module_", "loaded", "gauge", NULL,
		   "Whether the kernel module is.");
	fprintf(out, "tensorarena_module_loaded %d\n", json_is_object(module));
	if (!json_is_object(module))
		return;
	print_head(out, "module_", "arenas", "gauge", NULL,
		   "Arenas that exist.");
	fprintf(out, "tensorarena_module_arenas %lld\n",
		arenas_figure(module, "arenas"));
	print_head(out, "module_", "limited_bytes", "gauge", "bytes",
		   "What max_total_bytes limits.");
	fprintf(out, "tensorarena_module_limited_bytes %lld\n",
		arenas_figure(module, "total_bytes"));
	for (i = 0; i < NR_FAMILIES; i++) {
		const struct family *f = &families[i];

		if (!has_figures(f, module))
			continue;
		print_head(out, "module_", f->name,
			   f->counter ? "counter" : "gauge", f->unit, f->help);
		print_samples(out, "module_", f, module, "");
	}
}

void metrics_format(FILE *out, const json_t *seen)
{
	const json_t *arenas = json_object_get(seen, "arenas");
	size_t i;

	/* Of handles alone nothing is said about the module. */
	if (json_object_get(seen, "module"))
		print_module(out, json_object_get(seen, "module"));
	for (i = 0; i < NR_FAMILIES; i++)
		print_arenas(out, arenas, &families[i]);
	print_head(out, "reader_", "pending", "gauge", NULL,
		   "Publications that an open seat has not released.");
	print_seats(out, arenas, "pending", "seat_pending", 1);
	print_head(out, "reader_", "oldest_pending_seconds", "gauge", "seconds",
		   "Age of the oldest of them.");
	print_seats(out, arenas, "oldest_pending_seconds", "seat_oldest_ns",
		    NS);
	fputs("# EOF\n", out);
}
