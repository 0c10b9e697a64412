// SPDX-License-Identifier: MIT
/* Reader: views of what is published. */
#include <errno.h>
#include <time.h>

#include "core.h"

/* A stream that a view is to remember; @given is NULL when there is none. */
static int parse_stream(PyObject *object, void **handle, bool *given)
{
	*given = object && object != Py_None;
	*handle = *given ? PyLong_AsVoidPtr(object) : NULL;
	return PyErr_Occurred() ? -1 : 0;
}

/* A view that was just taken, with its stream: 0 or -errno. */
static int adopt(struct end *end, struct ta_view *view, bool has_stream,
		 void *stream, struct memory **memory)
{
	int err = memory_of_view(end, view, memory);

	if (!err && has_stream)
		err = memory_add_stream(*memory, stream);
	if (err && *memory)
		memory_put(*memory);
	return err;
}

static PyObject *view_or_raise(struct memory *memory, int err)
{
	if (err)
		return error_raise(err);
	reaper_start();
	return view_new(memory);
}

PyObject *reader_view(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "ticket", "stream", NULL };
	PyObject *object, *stream_object = NULL, *result;
	struct memory *memory = NULL;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct end *end;
	bool has_stream;
	void *stream;
	int err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:view", names,
					 &object, &stream_object) ||
	    ticket_get(object, &ticket) ||
	    parse_stream(stream_object, &stream, &has_stream))
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	err = ta_view(end->reader, &ticket, &view);
	if (!err)
		err = adopt(end, view, has_stream, stream, &memory);
	Py_END_ALLOW_THREADS
	result = view_or_raise(memory, err);
	Py_BEGIN_ALLOW_THREADS
	end_done(end);
	Py_END_ALLOW_THREADS
	return result;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Milliseconds, -1 for ever; ValueError. */
static int parse_timeout(PyObject *object, int *ms)
{
	double seconds;

	*ms = -1;
	if (!object || object == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(object);
	if (PyErr_Occurred())
		return -1;
	if (!(seconds >= 0 && seconds <= INT32_MAX / 1000)) {
		PyErr_SetString(PyExc_ValueError,
				"timeout is negative or more than 24 days");
		return -1;
	}
	/* Rather a little longer than not at all. */
	*ms = (int)(seconds * 1000 + 0.999);
	return 0;
}

/* ta_next() that goes on after signals that raise nothing. */
static int next_view(struct end *end, int ms, struct ta_view **view)
{
	int64_t deadline = now_ms() + ms;
	int err;

	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		end_settle(end);
		err = ta_next(end->reader, ms, view);
		Py_END_ALLOW_THREADS
		if (err != -EINTR || PyErr_CheckSignals())
			return err;
		if (ms >= 0)
			ms = (int)Py_MAX(deadline - now_ms(), 0);
	}
}

PyObject *reader_next(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "timeout", "stream", NULL };
	PyObject *timeout = NULL, *stream_object = NULL, *result = NULL;
	struct memory *memory = NULL;
	struct ta_view *view;
	struct end *end;
	bool has_stream;
	void *stream;
	int err, ms;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:next", names,
					 &timeout, &stream_object) ||
	    parse_timeout(timeout, &ms) ||
	    parse_stream(stream_object, &stream, &has_stream))
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	err = next_view(end, ms, &view);
	if (!err) {
		Py_BEGIN_ALLOW_THREADS
		err = adopt(end, view, has_stream, stream, &memory);
		Py_END_ALLOW_THREADS
	}
	if (err == -EAGAIN)
		result = Py_NewRef(Py_None);
	else if (!PyErr_Occurred())
		result = view_or_raise(memory, err);
	Py_BEGIN_ALLOW_THREADS
	end_done(end);
	Py_END_ALLOW_THREADS
	return result;
}

PyObject *view_at(PyObject *module, PyObject *address)
{
	void *at = PyLong_AsVoidPtr(address);
	struct memory *memory;

	(void)module;
	if (!at && PyErr_Occurred())
		return NULL;
	memory = memory_of_any_reader((uintptr_t)at);
	if (!memory)
		Py_RETURN_NONE;
	return view_new(memory);
}
