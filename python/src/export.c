// SPDX-License-Identifier: MIT
/*
 * Handing a slot's memory to others: the buffer protocol and DLPack.
 *
 * Each export has a share of its own.  A buffer is released under the GIL by
 * its consumer.  What was handed over by DLPack is deleted by other libraries
 * in whatever thread, perhaps after the interpreter has gone: that path touches
 * nothing of Python.
 */
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "dlpack.h"

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t),
	       "shapes are handed on as they are");

static char bytes_format[] = "B";

/* As the type and shape that they are, or as plain bytes. */
static void fill_shape(struct memory *memory, Py_buffer *buffer, int flags)
{
	const char *format = dtype_format(&memory->tensor);

	if (format) {
		buffer->format = (char *)(uintptr_t)format;
		buffer->itemsize = memory->tensor.bits / 8;
		buffer->ndim = (int)memory->tensor.ndim;
		buffer->shape = (Py_ssize_t *)memory->tensor.shape;
		buffer->strides = (Py_ssize_t *)memory->steps;
	} else {
		buffer->format = bytes_format;
		buffer->itemsize = 1;
		buffer->ndim = 1;
		buffer->shape = &buffer->len;
		buffer->strides = &buffer->itemsize;
	}
	if (!(flags & PyBUF_FORMAT))
		buffer->format = NULL;
	if (!(flags & PyBUF_ND)) {
		buffer->ndim = 1;
		buffer->shape = NULL;
	}
	if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
		buffer->strides = NULL;
}

int export_buffer(struct memory *memory, PyObject *object, Py_buffer *buffer,
		  int flags)
{
	const char *why = NULL;

	buffer->obj = NULL;
	if ((flags & PyBUF_WRITABLE) && memory->readonly)
		why = "the memory is read-only";
	else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS &&
		 memory->tensor.ndim > 1)
		why = "the memory is row-major";
	if (why) {
		PyErr_SetString(PyExc_BufferError, why);
		return -1;
	}
	buffer->buf = memory->data;
	buffer->len = (Py_ssize_t)memory->nbytes;
	buffer->readonly = memory->readonly;
	buffer->suboffsets = NULL;
	fill_shape(memory, buffer, flags);
	buffer->internal = memory_get(memory);
	buffer->obj = Py_NewRef(object);
	return 0;
}

void export_release(PyObject *object, Py_buffer *buffer)
{
	(void)object;
	memory_put(buffer->internal);
}

/* An export by DLPack: one of the two forms, and what is behind it. */
struct export
{
	union {
		struct dlpack_managed managed;
		struct dlpack_versioned versioned;
	};
	struct memory *memory;
	int64_t nbytes;
	int64_t step;
};

static void delete (void *context)
{
	struct export *export = context;

	memory_put(export->memory);
	free(export);
}

static void delete_managed(struct dlpack_managed *self)
{
	delete (self->context);
}

static void delete_versioned(struct dlpack_versioned *self)
{
	delete (self->context);
}

/* Nobody has taken it over. */
static void forget_capsule(PyObject *capsule)
{
	const char *name = DLPACK_NAME;
	struct export *export;

	if (PyCapsule_IsValid(capsule, DLPACK_VERSIONED_NAME))
		name = DLPACK_VERSIONED_NAME;
	else if (!PyCapsule_IsValid(capsule, DLPACK_NAME))
		return;
	export = PyCapsule_GetPointer(capsule, name);
	delete (export);
}

static struct dlpack_tensor *prepare(struct export *export, bool versioned)
{
	if (!versioned) {
		export->managed.context = export;
		export->managed.deleter = delete_managed;
		return &export->managed.tensor;
	}
	export->versioned.major = DLPACK_MAJOR;
	export->versioned.minor = DLPACK_MINOR;
	export->versioned.context = export;
	export->versioned.deleter = delete_versioned;
	if (export->memory->readonly)
		export->versioned.flags = DLPACK_READ_ONLY;
	return &export->versioned.tensor;
}

static PyObject *capsule_of(struct export *export, bool versioned)
{
	PyObject *capsule = PyCapsule_New(
		export, versioned ? DLPACK_VERSIONED_NAME : DLPACK_NAME,
		forget_capsule);

	if (!capsule)
		delete (export);
	return capsule;
}

static struct export *new_export(struct memory *memory)
{
	struct export *export = calloc(1, sizeof(*export));

	if (!export) {
		PyErr_NoMemory();
		return NULL;
	}
	export->memory = memory_get(memory);
	return export;
}

PyObject *export_dlpack(struct memory *memory, bool versioned)
{
	const struct ta_tensor *tensor = &memory->tensor;
	struct export *export = new_export(memory);
	struct dlpack_tensor *to;

	if (!export)
		return NULL;
	to = prepare(export, versioned);
	to->data = memory->data;
	to->device.type = DLPACK_CPU;
	to->ndim = (int32_t)tensor->ndim;
	to->dtype.code = tensor->code;
	to->dtype.bits = tensor->bits;
	to->dtype.lanes = tensor->lanes;
	to->shape = memory->tensor.shape;
	to->strides = memory->strides;
	return capsule_of(export, versioned);
}

PyObject *export_dlpack_bytes(struct memory *memory)
{
	struct export *export = new_export(memory);
	struct dlpack_tensor *to;

	if (!export)
		return NULL;
	export->nbytes = (int64_t)memory->nbytes;
	export->step = 1;
	to = prepare(export, false);
	to->data = memory->data;
	to->device.type = DLPACK_CPU;
	to->ndim = 1;
	to->dtype = (struct dlpack_dtype){ TA_UINT, 8, 1 };
	to->shape = &export->nbytes;
	to->strides = &export->step;
	return capsule_of(export, false);
}
