// SPDX-License-Identifier: MIT
/* What Writer and Reader have in common: an end of an arena. */
#include <errno.h>

#include "core.h"

static struct end_object *of(PyObject *self)
{
	return (struct end_object *)self;
}

struct end *end_use(PyObject *self)
{
	struct end *end = of(self)->end;
	int err = 0;

	if (!end)
		err = -ESHUTDOWN;
	else if (end_is_inherited(end))
		err = -EIO;
	if (!err)
		return end_get(end);
	error_raise(err);
	return NULL;
}

void end_settle(struct end *end)
{
	if (reaper_is_busy(&end->grave))
		reaper_drain(&end->grave);
}

int end_is_new(struct end_object *self)
{
	if (!self->handle)
		return 0;
	PyErr_SetString(PyExc_RuntimeError, "it has been made already");
	return -1;
}

int end_object_make(PyObject *self, struct ta_writer *writer,
		    struct ta_reader *reader, const char *handle)
{
	PyObject *text = NULL;
	struct end *end = NULL;

	/* The arguments may have run code, or another thread has been here. */
	if (!end_is_new(of(self)))
		text = PyUnicode_FromString(handle);
	if (text)
		end = end_new(writer, reader, handle);
	if (end) {
		of(self)->handle = text;
		of(self)->end = end;
		return 0;
	}
	if (text)
		PyErr_NoMemory();
	Py_XDECREF(text);
	Py_BEGIN_ALLOW_THREADS
	ta_writer_close(writer);
	ta_reader_close(reader);
	Py_END_ALLOW_THREADS
	return -1;
}

/*
 * Whoever drops it does not wait.  To leave an arena is a question to its
 * writer, which may be stopped; and what shares memory may go last.
 */
static void drop(struct end *end)
{
	if (!end_is_inherited(end) && (end->reader || end_is_shared(end)))
		reaper_start();
	if (reaper_is_running()) {
		end_put(end);
		return;
	}
	Py_BEGIN_ALLOW_THREADS
	end_close(end);
	Py_END_ALLOW_THREADS
}

void end_object_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
	struct end *end = of(self)->end;

	if (of(self)->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_CLEAR(of(self)->handle);
	if (end)
		drop(end);
	release(self);
	Py_DECREF(type);
}

PyObject *end_object_close(PyObject *self, PyObject *unused)
{
	struct end *end = of(self)->end;

	(void)unused;
	of(self)->end = NULL;
	if (!end)
		Py_RETURN_NONE;
	/* Somebody has to close it when what still shares its memory goes. */
	if (end_is_shared(end))
		reaper_start();
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	end_close(end);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

PyObject *end_object_exit(PyObject *self, PyObject *args)
{
	(void)args;
	return end_object_close(self, NULL);
}

PyObject *end_object_closed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(!of(self)->end);
}

PyObject *end_object_handle(PyObject *self, void *unused)
{
	(void)unused;
	if (of(self)->handle)
		return Py_NewRef(of(self)->handle);
	return error_raise(-ESHUTDOWN);
}

PyObject *engine_name(enum ta_engine_kind kind)
{
	return PyUnicode_FromString(kind == TA_ENGINE_DEVICE ? "device" :
							       "embedded");
}

PyObject *poll_pair(int fd, short events)
{
	return fd < 0 ? error_raise(fd) : Py_BuildValue("(ih)", fd, events);
}
