// SPDX-License-Identifier: MIT
/* Python's arguments as the library's descriptors. */
#include <errno.h>
#include <string.h>

#include "core.h"

static bool is_given(PyObject *object)
{
	return object && object != Py_None;
}

/* Calls @take for each item; ValueError: more than @max. */
static int each(PyObject *sequence, Py_ssize_t max, const char *what,
		int (*take)(void *to, Py_ssize_t i, PyObject *item), void *to)
{
	PyObject *items = PySequence_Tuple(sequence);
	Py_ssize_t i, n;
	int err = 0;

	if (!items)
		return -1;
	n = PyTuple_Size(items);
	if (n > max) {
		PyErr_Format(PyExc_ValueError, "%zd %s, at most %zd can be", n,
			     what, max);
		err = -1;
	}
	for (i = 0; i < n && !err; i++)
		err = take(to, i, PyTuple_GetItem(items, i));
	Py_DECREF(items);
	return err ? -1 : (int)n;
}

static int take_extent(void *to, Py_ssize_t i, PyObject *item)
{
	struct ta_tensor *tensor = to;
	long long extent = PyLong_AsLongLong(item);

	if (extent == -1 && PyErr_Occurred())
		return -1;
	if (extent < 0) {
		PyErr_SetString(PyExc_ValueError,
				"an extent of the shape is negative");
		return -1;
	}
	tensor->shape[i] = extent;
	return 0;
}

static int take_shape(struct ta_tensor *tensor, PyObject *shape)
{
	int ndim = each(shape, TA_MAX_NDIM, "dimensions", take_extent, tensor);

	tensor->ndim = ndim < 0 ? 0 : (uint32_t)ndim;
	return ndim < 0 ? -1 : 0;
}

static int copy_shape(struct ta_tensor *tensor, const Py_buffer *buffer)
{
	if (buffer->ndim > TA_MAX_NDIM) {
		PyErr_Format(PyExc_ValueError,
			     "%d dimensions, at most %d can be", buffer->ndim,
			     TA_MAX_NDIM);
		return -1;
	}
	tensor->ndim = (uint32_t)buffer->ndim;
	memcpy(tensor->shape, buffer->shape,
	       tensor->ndim * sizeof(tensor->shape[0]));
	return 0;
}

/* One dimension of however many elements there are in @nbytes. */
static void flat_shape(struct ta_tensor *tensor, size_t nbytes)
{
	uint64_t bits = (uint64_t)tensor->bits * tensor->lanes;

	tensor->ndim = 1;
	tensor->shape[0] = bits % 8 ? (int64_t)(nbytes * 8 / bits) :
				      (int64_t)(nbytes / (bits / 8));
}

int describe_tag(struct ta_tensor *tensor, const Py_buffer *tag)
{
	if (tag->len > TA_MAX_TAG) {
		PyErr_Format(PyExc_ValueError,
			     "a tag of %zd bytes, at most %d can be", tag->len,
			     TA_MAX_TAG);
		return -1;
	}
	tensor->tag_bytes = (uint32_t)tag->len;
	memcpy(tensor->tag, tag->buf, (size_t)tag->len);
	return 0;
}

static int check(const struct ta_tensor *tensor, size_t nbytes)
{
	uint64_t described;

	if (!ta_tensor_nbytes(tensor, &described) && described == nbytes)
		return 0;
	PyErr_Format(PyExc_ValueError,
		     "%zu bytes are not a tensor of that type and shape",
		     nbytes);
	return -1;
}

int describe(struct ta_tensor *tensor, size_t nbytes, const char *dtype,
	     PyObject *shape, const Py_buffer *tag, const Py_buffer *buffer)
{
	bool inferred;
	int err = 0;

	*tensor = (struct ta_tensor){
		.code = TA_UINT,
		.bits = 8,
		.lanes = 1,
	};
	inferred = !dtype && buffer && dtype_of_format(buffer, tensor);
	if (dtype)
		err = dtype_parse(dtype, tensor);
	if (err)
		return err;
	if (is_given(shape))
		err = take_shape(tensor, shape);
	else if (inferred)
		err = copy_shape(tensor, buffer);
	else
		flat_shape(tensor, nbytes);
	if (!err && tag->buf)
		err = describe_tag(tensor, tag);
	return err ? err : check(tensor, nbytes);
}

static int take_id(void *to, Py_ssize_t i, PyObject *item)
{
	struct addressees *addressees = to;

	addressees->id[i] = PyLong_AsUnsignedLongLong(item);
	return PyErr_Occurred() ? -1 : 0;
}

int describe_readers(PyObject *readers, struct addressees *to)
{
	int nr = 0;

	to->everyone = !is_given(readers);
	if (!to->everyone)
		nr = each(readers, TENSORARENA_MAX_READERS, "readers", take_id,
			  to);
	to->nr = nr < 0 ? 0 : (uint32_t)nr;
	return nr < 0 ? -1 : 0;
}

int commit_to(struct ta_loan *loan, const struct addressees *to, size_t nbytes,
	      const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	if (to->everyone)
		return ta_commit(loan, nbytes, tensor, ticket);
	return ta_commit_to(loan, to->id, to->nr, nbytes, tensor, ticket);
}
