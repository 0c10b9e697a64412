// SPDX-License-Identifier: MIT
/* Reader: attaching to an arena, looking after it, and the class. */
#include <errno.h>

#include <lib/reader.h>

#include "core.h"

static struct end_object *of(PyObject *self)
{
	return (struct end_object *)self;
}

static int reader_make(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "handle", "fd", NULL };
	struct ta_reader *reader;
	const char *handle;
	int fd = -1;
	int err;

	if (end_is_new(of(self)) ||
	    !PyArg_ParseTupleAndKeywords(args, kwargs, "s|$i:Reader", names,
					 &handle, &fd))
		return -1;
	Py_BEGIN_ALLOW_THREADS
	err = fd < 0 ? ta_attach(handle, &reader) :
		       ta_attach_fd(handle, fd, &reader);
	Py_END_ALLOW_THREADS
	if (err) {
		error_raise(err);
		return -1;
	}
	return end_object_make(self, NULL, reader, handle);
}

static PyObject *reader_flush_releases(PyObject *self, PyObject *unused)
{
	struct ta_cuda_stats cuda;
	struct end *end = end_use(self);
	unsigned long long left = 0;
	int err;

	(void)unused;
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	reaper_drain(&end->grave);
	/* This, too, looks after what waits for streams. */
	err = ta_cuda_stats(end->reader, &cuda, NULL, 0);
	if (!err)
		left = cuda.pending + grave_left(&end->grave);
	end_done(end);
	Py_END_ALLOW_THREADS
	return err ? error_raise(err) : PyLong_FromUnsignedLongLong(left);
}

static PyObject *reader_prepare(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	uint32_t pinned = 0;
	int err;

	(void)unused;
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = ta_cuda_prepare(end->reader, &pinned);
	end_done(end);
	Py_END_ALLOW_THREADS
	return err ? error_raise(err) : PyLong_FromUnsignedLong(pinned);
}

static PyObject *reader_pin_budget(PyObject *self, PyObject *nbytes)
{
	unsigned long long budget = PyLong_AsUnsignedLongLong(nbytes);
	struct end *end;
	int err;

	if (PyErr_Occurred())
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = ta_cuda_pin_budget(end->reader, budget);
	end_done(end);
	Py_END_ALLOW_THREADS
	if (err)
		return error_raise(err);
	Py_RETURN_NONE;
}

static PyObject *reader_poll_fd(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	short events = 0;
	int fd;

	(void)unused;
	if (!end)
		return NULL;
	fd = ta_reader_poll_fd(end->reader, &events);
	end_put(end);
	return poll_pair(fd, events);
}

static PyObject *reader_writer_gone(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	bool gone;

	(void)unused;
	if (!end)
		return NULL;
	gone = ta_reader_gone(end->reader);
	end_put(end);
	return PyBool_FromLong(gone);
}

static PyObject *reader_stats(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	PyObject *stats;

	(void)unused;
	if (!end)
		return NULL;
	stats = stats_of_reader(end);
	end_put(end);
	return stats;
}

static PyObject *get_engine(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *name;

	(void)unused;
	if (!end)
		return NULL;
	name = engine_name(ta_reader_engine(end->reader));
	end_put(end);
	return name;
}

static PyObject *get_id(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *id;

	(void)unused;
	if (!end)
		return NULL;
	id = PyLong_FromUnsignedLongLong(ta_reader_id(end->reader));
	end_put(end);
	return id;
}

static PyObject *get_seat(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *seat;

	(void)unused;
	if (!end)
		return NULL;
	seat = PyLong_FromUnsignedLong(ta_reader_seat(end->reader));
	end_put(end);
	return seat;
}

static PyGetSetDef getters[] = {
	{ "handle", end_object_handle, NULL, "what it was attached with",
	  NULL },
	{ "engine", get_engine, NULL, "\"device\" or \"embedded\"", NULL },
	{ "id", get_id, NULL, "of this attachment, never reused", NULL },
	{ "seat", get_seat, NULL, "where it sits", NULL },
	{ "closed", end_object_closed, NULL, "it has been closed", NULL },
	{ 0 },
};

static PyMethodDef methods[] = {
	{ "view", (PyCFunction)(void (*)(void))reader_view,
	  METH_VARARGS | METH_KEYWORDS,
	  "view(ticket, *, stream=None)\n--\n\n"
	  "The publication that a ticket names.\n\n"
	  "stream: the CUDA stream, of this thread's current device, that will "
	  "read it; the\nslot waits for what that has been sent when the last "
	  "object that shares the\nmemory goes." },
	{ "next", (PyCFunction)(void (*)(void))reader_next,
	  METH_VARARGS | METH_KEYWORDS,
	  "next(timeout=None, *, stream=None)\n--\n\n"
	  "The oldest publication not seen yet, or None when none arrived in "
	  "time.\n\ntimeout: seconds; None waits for ever." },
	{ "flush_releases", reader_flush_releases, METH_NOARGS,
	  "Releases all that is due, now rather than soon; returns how many "
	  "releases\nstill wait for CUDA streams." },
	{ "prepare", reader_prepare, METH_NOARGS,
	  "Pins every slot that has memory now; returns how many are." },
	{ "pin_budget", reader_pin_budget, METH_O,
	  "pin_budget(nbytes)\n--\n\n"
	  "Most bytes this reader may keep pinned." },
	{ "poll_fd", reader_poll_fd, METH_NOARGS,
	  "A descriptor and the poll events that mean \"next() has "
	  "something\"." },
	{ "writer_gone", reader_writer_gone, METH_NOARGS,
	  "Whether the writer is, so that nothing more will come.  Waits for "
	  "nobody." },
	{ "stats", reader_stats, METH_NOARGS,
	  "State and counters, as a dict." },
	{ "close", end_object_close, METH_NOARGS,
	  "No new views.  The arena is left when the last object that shares "
	  "its memory\nis gone." },
	{ "__enter__", return_self, METH_NOARGS, NULL },
	{ "__exit__", end_object_exit, METH_VARARGS, NULL },
	{ 0 },
};

static PyMemberDef members[] = {
	{ "__weaklistoffset__", T_PYSSIZET,
	  offsetof(struct end_object, weakrefs), READONLY, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A reader's end of an arena; see tensorarena.Reader." },
	{ Py_tp_init, reader_make },
	{ Py_tp_dealloc, end_object_dealloc },
	{ Py_tp_getset, getters },
	{ Py_tp_members, members },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena._core.Reader",
	.basicsize = sizeof(struct end_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int reader_init(PyObject *module)
{
	return add_type(module, "Reader", &spec, NULL) ? 0 : -1;
}
