// SPDX-License-Identifier: MIT
/*
 * See raw.h.  A series is a set of columns with one entry a round; the same
 * place in two series of a size and mode is the same round.
 */
#include <math.h>
#include <stddef.h>

#include "raw.h"

static void set_string(json_t *object, const char *key, const char *value)
{
	json_object_set_new(object, key, json_string(value));
}

static void set_integer(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* ---- columns ---- */

static uint64_t most(const uint64_t *value, uint32_t nr)
{
	uint64_t most = 0;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (value[i] > most)
			most = value[i];
	return most;
}

static double put_ms(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return ms(o->put_ns);
}

static double free_ms(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return ms(o->free_ns);
}

static double writer_cpu_ms(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return ms(o->writer_cpu_ns);
}

static double writer_faults(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return (double)o->writer_faults;
}

static double have_ms(const struct outcome *o, uint32_t readers)
{
	return ms(most(o->have_ns, readers));
}

static double end_ms(const struct outcome *o, uint32_t readers)
{
	return ms(most(o->end_ns, readers));
}

/* The longest that a reader took from the address to what the mode asks for. */
static double use_ms(const struct outcome *o, uint32_t readers)
{
	uint64_t longest = 0;
	uint32_t i;

	for (i = 0; i < readers; i++)
		if (o->end_ns[i] - o->have_ns[i] > longest)
			longest = o->end_ns[i] - o->have_ns[i];
	return ms(longest);
}

static double readers_cpu_ms(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return ms(o->readers_cpu_ns);
}

static double readers_faults(const struct outcome *o, uint32_t readers)
{
	(void)readers;
	return (double)o->readers_faults;
}

static const struct column {
	const char *name;
	double (*value)(const struct outcome *outcome, uint32_t readers);
	bool of_readers;
} columns[] = {
	{ "put_ms", put_ms, false },
	{ "free_ms", free_ms, false },
	{ "writer_cpu_ms", writer_cpu_ms, false },
	{ "writer_faults", writer_faults, false },
	{ "have_ms", have_ms, true },
	{ "end_ms", end_ms, true },
	{ "use_ms", use_ms, true },
	{ "readers_cpu_ms", readers_cpu_ms, true },
	{ "readers_faults", readers_faults, true },
};

static json_t *column_json(const struct series *s, const struct column *column)
{
	json_t *array = json_array();
	double value;
	uint32_t i;

	for (i = 0; i < s->rounds; i++) {
		value = column->value(&s->outcome[i], s->group->readers);
		/* To the nanosecond, which is what the clock gives. */
		json_array_append_new(array,
				      json_real(round(value * 1e6) / 1e6));
	}
	return array;
}

static json_t *series_json(const struct series *s)
{
	json_t *object = json_object();
	size_t i;

	set_string(object, "contender", s->group->contender->name);
	set_integer(object, "readers", s->group->readers);
	set_integer(object, "bytes", s->nbytes);
	set_string(object, "mode", mode_names[s->mode]);
	if (s->about[0])
		set_string(object, "about", s->about);
	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (!columns[i].of_readers || s->group->readers)
			json_object_set_new(object, columns[i].name,
					    column_json(s, &columns[i]));
	return object;
}

/* ---- the whole ---- */

static json_t *contender_json(const struct contender *c, const char *absent)
{
	json_t *object = json_object();

	set_string(object, "name", c->name);
	set_string(object, "about", c->about);
	json_object_set_new(object, "floor", json_boolean(c->floor));
	set_integer(object, "copies_put", c->copies_put);
	set_integer(object, "copies_take", c->copies_take);
	set_integer(object, "copies_gpu", c->copies_gpu);
	if (absent[0])
		set_string(object, "absent", absent);
	return object;
}

json_t *raw_json(const struct plan *plan, const struct result *result,
		 json_t *machine)
{
	json_t *object = json_object();
	json_t *contender = json_array(), *series = json_array();
	uint32_t i;

	for (i = 0; plan->entry[i].contender; i++)
		json_array_append_new(contender,
				      contender_json(plan->entry[i].contender,
						     result->absent[i].text));
	for (i = 0; i < result->nr_series; i++)
		json_array_append_new(series, series_json(&result->series[i]));
	set_string(object, "benchmark", "broadcast");
	json_object_set_new(object, "machine", machine);
	set_integer(object, "seed", plan->seed);
	set_integer(object, "rounds_most", plan->rounds);
	set_integer(object, "warmup_rounds", plan->warmup);
	set_integer(object, "broadcasts_checked", result->checked);
	json_object_set_new(object, "seconds", json_real(result->seconds));
	json_object_set_new(object, "contenders", contender);
	json_object_set_new(object, "series", series);
	return object;
}
