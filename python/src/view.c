// SPDX-License-Identifier: MIT
/* View: a reader's share of what was published. */
#include "core.h"

static PyTypeObject *view_type;

PyObject *view_new(struct memory *memory)
{
	return shared_new(view_type, memory);
}

static PyObject *view_release(PyObject *self, PyObject *unused)
{
	(void)unused;
	shared_drop(self);
	Py_RETURN_NONE;
}

static PyObject *view_exit(PyObject *self, PyObject *args)
{
	(void)args;
	shared_drop(self);
	Py_RETURN_NONE;
}

static PyObject *view_record_stream(PyObject *self, PyObject *stream)
{
	void *handle = PyLong_AsVoidPtr(stream);
	struct memory *memory;
	int err;

	if (!handle && PyErr_Occurred())
		return NULL;
	memory = shared_memory(self);
	if (!memory)
		return NULL;
	memory_get(memory);
	Py_BEGIN_ALLOW_THREADS
	err = memory_add_stream(memory, handle);
	memory_put(memory);
	Py_END_ALLOW_THREADS
	if (err)
		return error_raise(err);
	Py_RETURN_NONE;
}

static PyObject *get_released(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(!((struct shared *)self)->memory);
}

static PyGetSetDef getters[] = {
	{ "released", get_released, NULL, "this object has given up its share",
	  NULL },
	{ 0 },
};

static PyMethodDef methods[] = {
	{ "release", view_release, METH_NOARGS,
	  "Gives up this object's share; what it was exported to keeps its "
	  "own." },
	{ "record_stream", view_record_stream, METH_O,
	  "record_stream(stream)\n--\n\n"
	  "The slot is to wait also for what this CUDA stream has been sent "
	  "when the\nlast object that shares the memory goes." },
	{ "__enter__", return_self, METH_NOARGS, NULL },
	{ "__exit__", view_exit, METH_VARARGS, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc,
	  "A reader's hold on a published slot.\n\n"
	  "The slot is released with the last object that shares its memory: "
	  "this one,\na memoryview, an array, a tensor or a slice of it.  "
	  "Writing to read-only\nmemory kills the process (SIGSEGV)." },
	{ Py_tp_getset, getters },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena.View",
	.basicsize = sizeof(struct shared),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int view_init(PyObject *module, PyObject *base)
{
	view_type = (PyTypeObject *)add_type(module, "View", &spec, base);
	return view_type ? 0 : -1;
}
