// SPDX-License-Identifier: MIT
/* What ends tell of themselves, as dicts. */
#include <errno.h>
#include <stddef.h>

#include "core.h"

/* A number in one of the library's structures. */
struct field {
	const char *name;
	size_t at;
	size_t size;
};

#define FIELD(type, field)                                                     \
	{                                                                      \
#field, offsetof(struct type, field),                          \
			sizeof(((struct type *)0)->field)                      \
	}
#define NR(fields) (sizeof(fields) / sizeof((fields)[0]))

static const struct field arena_fields[] = {
	FIELD(ta_stats, slots),
	FIELD(ta_stats, free),
	FIELD(ta_stats, writing),
	FIELD(ta_stats, published),
	FIELD(ta_stats, allocated_bytes),
	FIELD(ta_stats, oldest_ns),
	FIELD(ta_stats, puts),
	FIELD(ta_stats, put_bytes),
	FIELD(ta_stats, unaddressed),
	FIELD(ta_stats, aborted),
	FIELD(ta_stats, released),
	FIELD(ta_stats, declined_no_slot),
	FIELD(ta_stats, declined_oversize),
	FIELD(ta_stats, declined_no_memory),
	FIELD(ta_stats, attached),
	FIELD(ta_stats, detached),
	FIELD(ta_stats, evicted),
	FIELD(ta_stats, reclaimed_dead_readers),
	FIELD(ta_stats, retracted),
};

/* The process id is the only one that is not unsigned, and never negative. */
static const struct field reader_fields[] = {
	FIELD(ta_reader_stats, reader),	 FIELD(ta_reader_stats, oldest_ns),
	FIELD(ta_reader_stats, seat),	 FIELD(ta_reader_stats, pid),
	FIELD(ta_reader_stats, pending),
};

static const struct field cuda_fields[] = {
	FIELD(ta_cuda_stats, cuda_version), FIELD(ta_cuda_stats, pinned_slots),
	FIELD(ta_cuda_stats, pending),	    FIELD(ta_cuda_stats, pinned_bytes),
	FIELD(ta_cuda_stats, pin_budget),   FIELD(ta_cuda_stats, pins),
	FIELD(ta_cuda_stats, unpins),	    FIELD(ta_cuda_stats, pin_ns),
	FIELD(ta_cuda_stats, pin_failures), FIELD(ta_cuda_stats, over_budget),
	FIELD(ta_cuda_stats, copies),	    FIELD(ta_cuda_stats, copied_bytes),
	FIELD(ta_cuda_stats, deferred),	    FIELD(ta_cuda_stats, events),
	FIELD(ta_cuda_stats, errors),	    FIELD(ta_cuda_stats, error),
};

/* Sets an item, whose reference is taken; NULL: what made it has failed. */
static int set(PyObject *dict, const char *name, PyObject *value)
{
	int err = value ? PyDict_SetItemString(dict, name, value) : -1;

	Py_XDECREF(value);
	return err;
}

static PyObject *number(const void *structure, const struct field *field)
{
	const char *at = (const char *)structure + field->at;

	if (field->size == sizeof(uint32_t))
		return PyLong_FromUnsignedLong(*(const uint32_t *)at);
	return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
}

static PyObject *dict_of(const void *structure, const struct field *field,
			 size_t nr)
{
	PyObject *dict = PyDict_New();
	size_t i;

	for (i = 0; i < nr && dict; i++)
		if (set(dict, field[i].name, number(structure, &field[i])))
			Py_CLEAR(dict);
	return dict;
}

static PyObject *list_of_readers(const struct ta_reader_stats *row, uint32_t nr)
{
	PyObject *list = PyList_New(nr);
	uint32_t i;

	for (i = 0; i < nr && list; i++) {
		PyObject *dict =
			dict_of(&row[i], reader_fields, NR(reader_fields));

		if (!dict || PyList_SetItem(list, i, dict))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *dict_of_cuda(const struct ta_cuda_stats *cuda)
{
	PyObject *dict = dict_of(cuda, cuda_fields, NR(cuda_fields));

	if (dict &&
	    set(dict, "error_text", PyUnicode_FromString(cuda->error_text)))
		Py_CLEAR(dict);
	return dict;
}

PyObject *stats_of_writer(struct end *end)
{
	struct ta_reader_stats rows[TENSORARENA_MAX_READERS];
	struct ta_cuda_stats cuda;
	struct ta_stats stats;
	PyObject *dict;
	int err;

	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	err = ta_stats(end->writer, &stats, rows, TENSORARENA_MAX_READERS);
	if (!err)
		err = ta_cuda_writer_stats(end->writer, &cuda, NULL, 0);
	Py_END_ALLOW_THREADS
	if (err)
		return error_raise(err);
	dict = dict_of(&stats, arena_fields, NR(arena_fields));
	if (dict &&
	    (set(dict, "readers", list_of_readers(rows, stats.readers)) ||
	     set(dict, "declines", decline_dict(&end->declines)) ||
	     set(dict, "cuda", dict_of_cuda(&cuda))))
		Py_CLEAR(dict);
	return dict;
}

/* Publications held here, whether or not anything can still reach them. */
static unsigned long count_views(struct end *end)
{
	unsigned long nr = 0;
	unsigned int i;

	pthread_mutex_lock(&end->lock);
	for (i = 0; i < TENSORARENA_MAX_SLOTS; i++)
		nr += !!end->slot[i];
	pthread_mutex_unlock(&end->lock);
	return nr;
}

PyObject *stats_of_reader(struct end *end)
{
	unsigned int queued = grave_left(&end->grave);
	struct ta_cuda_stats cuda;
	PyObject *dict;
	int err;

	Py_BEGIN_ALLOW_THREADS
	err = ta_cuda_stats(end->reader, &cuda, NULL, 0);
	Py_END_ALLOW_THREADS
	if (err)
		return error_raise(err);
	dict = PyDict_New();
	if (dict &&
	    (set(dict, "id",
		 PyLong_FromUnsignedLongLong(ta_reader_id(end->reader))) ||
	     set(dict, "seat",
		 PyLong_FromUnsignedLong(ta_reader_seat(end->reader))) ||
	     set(dict, "engine", engine_name(ta_reader_engine(end->reader))) ||
	     set(dict, "views", PyLong_FromUnsignedLong(count_views(end))) ||
	     set(dict, "queued", PyLong_FromUnsignedLong(queued)) ||
	     set(dict, "cuda", dict_of_cuda(&cuda))))
		Py_CLEAR(dict);
	return dict;
}
