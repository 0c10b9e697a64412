// SPDX-License-Identifier: MIT
/* What View and Loan have in common: a share of a slot's memory. */
#include <errno.h>

#include "core.h"
#include "dlpack.h"

static struct shared *of(PyObject *self)
{
	return (struct shared *)self;
}

PyObject *shared_new(PyTypeObject *type, struct memory *memory)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *self = alloc(type, 0);

	if (!self) {
		memory_put(memory);
		return NULL;
	}
	of(self)->memory = memory;
	of(self)->ticket = memory->ticket;
	return self;
}

struct memory *shared_memory(PyObject *self)
{
	struct memory *memory = of(self)->memory;

	if (!memory) {
		PyErr_SetString(PyExc_ValueError,
				"the memory has been given up");
		return NULL;
	}
	if (end_is_inherited(memory->end)) {
		error_raise(-EIO);
		return NULL;
	}
	return memory;
}

void shared_drop(PyObject *self)
{
	struct memory *memory = of(self)->memory;

	of(self)->memory = NULL;
	if (memory)
		memory_put(memory);
}

static void shared_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (of(self)->weakrefs)
		PyObject_ClearWeakRefs(self);
	shared_drop(self);
	release(self);
	Py_DECREF(type);
}

static int get_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
	struct memory *memory = shared_memory(self);

	if (memory)
		return export_buffer(memory, self, buffer, flags);
	buffer->obj = NULL;
	return -1;
}

/* Whether a consumer of that version can be told "read-only". */
static int is_versioned(PyObject *max_version)
{
	PyObject *first;
	long major;

	if (max_version == Py_None)
		return 0;
	first = PySequence_GetItem(max_version, 0);
	if (!first)
		return -1;
	major = PyLong_AsLong(first);
	Py_DECREF(first);
	if (major == -1 && PyErr_Occurred())
		return -1;
	return major >= DLPACK_MAJOR;
}

/* Whether the consumer asks for another device than the CPU; -1. */
static int is_elsewhere(PyObject *device)
{
	PyObject *here;
	int same;

	if (device == Py_None)
		return 0;
	here = Py_BuildValue("(ii)", DLPACK_CPU, 0);
	if (!here)
		return -1;
	same = PyObject_RichCompareBool(device, here, Py_EQ);
	Py_DECREF(here);
	return same < 0 ? -1 : !same;
}

static PyObject *refuse(const char *why)
{
	PyErr_SetString(PyExc_BufferError, why);
	return NULL;
}

static PyObject *shared_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", "max_version", "dl_device", "copy",
				 NULL };
	PyObject *stream = Py_None, *max_version = Py_None;
	PyObject *device = Py_None, *copy = Py_None;
	struct memory *memory;
	int versioned, elsewhere;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__",
					 names, &stream, &max_version, &device,
					 &copy))
		return NULL;
	versioned = is_versioned(max_version);
	elsewhere = versioned < 0 ? -1 : is_elsewhere(device);
	/* Last: the arguments may have run code that gives it up. */
	memory = elsewhere < 0 ? NULL : shared_memory(self);
	if (!memory)
		return NULL;
	if (stream != Py_None || elsewhere)
		return refuse("the memory is the CPU's, which has no streams");
	if (copy == Py_True)
		return refuse("the memory is shared, never copied");
	if (memory->readonly && !versioned)
		return refuse("the memory is read-only, which the consumer "
			      "cannot be told (DLPack before 1.0)");
	return export_dlpack(memory, versioned);
}

static PyObject *shared_dlpack_device(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

static PyObject *shared_dlpack_bytes(PyObject *self, PyObject *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? export_dlpack_bytes(memory) : NULL;
}

PyObject *return_self(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(self);
}

static PyObject *get_address(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? PyLong_FromVoidPtr(memory->data) : NULL;
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? PyLong_FromSize_t(memory->nbytes) : NULL;
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? dtype_name(&memory->tensor) : NULL;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);
	struct ta_tensor tensor;
	PyObject *shape;
	uint32_t i;

	(void)unused;
	if (!memory)
		return NULL;
	/* Making a tuple may collect garbage, which may give it up. */
	tensor = memory->tensor;
	shape = PyTuple_New(tensor.ndim);
	for (i = 0; shape && i < tensor.ndim; i++) {
		PyObject *extent = PyLong_FromLongLong(tensor.shape[i]);

		if (!extent || PyTuple_SetItem(shape, i, extent))
			Py_CLEAR(shape);
	}
	return shape;
}

static PyObject *get_tag(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? PyBytes_FromStringAndSize(
				(const char *)memory->tensor.tag,
				memory->tensor.tag_bytes) :
			NULL;
}

static PyObject *get_readonly(PyObject *self, void *unused)
{
	struct memory *memory = shared_memory(self);

	(void)unused;
	return memory ? PyBool_FromLong(memory->readonly) : NULL;
}

static PyObject *get_ticket(PyObject *self, void *unused)
{
	(void)unused;
	return ticket_new(&of(self)->ticket);
}

static PyGetSetDef getters[] = {
	{ "address", get_address, NULL, "where the bytes are", NULL },
	{ "nbytes", get_nbytes, NULL, "how many bytes there are", NULL },
	{ "dtype", get_dtype, NULL, "the library's name of the element type",
	  NULL },
	{ "shape", get_shape, NULL, "extents, in elements", NULL },
	{ "tag", get_tag, NULL, "the user's own bytes", NULL },
	{ "readonly", get_readonly, NULL, "writing to it kills the process",
	  NULL },
	{ "ticket", get_ticket, NULL, "of the publication", NULL },
	{ 0 },
};

static PyMethodDef methods[] = {
	{ "__dlpack__", (PyCFunction)(void (*)(void))shared_dlpack,
	  METH_VARARGS | METH_KEYWORDS,
	  "A capsule that shares the memory.  BufferError: read-only, and the "
	  "consumer cannot be told." },
	{ "__dlpack_device__", shared_dlpack_device, METH_NOARGS, NULL },
	{ "dlpack_bytes", shared_dlpack_bytes, METH_NOARGS,
	  "A DLPack capsule of the plain bytes, whether or not they may be "
	  "written to.\n\nWriting in place to memory that is read-only kills "
	  "the process (SIGSEGV)." },
	{ 0 },
};

static PyMemberDef members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct shared, weakrefs),
	  READONLY, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A share of a slot's memory: a View or a Loan." },
	{ Py_tp_dealloc, shared_dealloc },
	{ Py_tp_getset, getters },
	{ Py_tp_methods, methods },
	{ Py_tp_members, members },
	{ Py_bf_getbuffer, get_buffer },
	{ Py_bf_releasebuffer, export_release },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena._core._Memory",
	.basicsize = sizeof(struct shared),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
		 Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int shared_init(PyObject *module)
{
	PyObject *base = add_type(module, "_Memory", &spec, NULL);

	if (!base || view_init(module, base) || loan_init(module, base))
		return -1;
	return 0;
}
