// SPDX-License-Identifier: MIT
/* Writer: what is written to an arena. */
#include <errno.h>

#include "core.h"

/* A tensor to be put. */
struct source {
	const void *data;
	size_t nbytes;
	struct ta_tensor tensor;
	struct addressees to;
};

static int put(struct end *end, const struct source *from,
	       struct ta_ticket *ticket)
{
	struct ta_loan *loan;
	int err;

	end_settle(end);
	err = memory_acquire(end, from->nbytes, &loan);
	if (err)
		return err;
	err = ta_loan_write(loan, 0, from->data, from->nbytes);
	if (!err)
		err = commit_to(loan, &from->to, from->nbytes, &from->tensor,
				ticket);
	if (err && err != -ENOTCONN)
		ta_abort(loan);
	return err;
}

static PyObject *put_source(PyObject *self, const struct source *from)
{
	struct end *end = end_use(self);
	struct ta_ticket ticket;
	PyObject *result;
	int err;

	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = put(end, from, &ticket);
	Py_END_ALLOW_THREADS
	result = err ? decline_or_raise(end, err) : ticket_new(&ticket);
	Py_BEGIN_ALLOW_THREADS
	end_done(end);
	Py_END_ALLOW_THREADS
	return result;
}

PyObject *writer_put(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "", "dtype", "shape", "tag", "readers", NULL };
	PyObject *object, *shape = NULL, *readers = NULL, *result = NULL;
	const char *dtype = NULL;
	Py_buffer tag = { 0 };
	Py_buffer buffer;
	struct source from;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zO$y*O:put", names,
					 &object, &dtype, &shape, &tag,
					 &readers))
		return NULL;
	if (PyObject_GetBuffer(object, &buffer,
			       PyBUF_C_CONTIGUOUS | PyBUF_FORMAT))
		goto release_tag;
	from.data = buffer.buf;
	from.nbytes = (size_t)buffer.len;
	if (!describe(&from.tensor, from.nbytes, dtype, shape, &tag, &buffer) &&
	    !describe_readers(readers, &from.to))
		result = put_source(self, &from);
	PyBuffer_Release(&buffer);
release_tag:
	PyBuffer_Release(&tag);
	return result;
}

PyObject *writer_put_address(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "",	"",	   "dtype", "shape",
				 "tag", "readers", NULL };
	PyObject *address, *shape = NULL, *readers = NULL, *result = NULL;
	const char *dtype = NULL;
	Py_buffer tag = { 0 };
	struct source from;
	Py_ssize_t nbytes;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On|zO$y*O:put_address",
					 names, &address, &nbytes, &dtype,
					 &shape, &tag, &readers))
		return NULL;
	from.data = PyLong_AsVoidPtr(address);
	from.nbytes = (size_t)nbytes;
	if (!PyErr_Occurred() && nbytes < 0)
		PyErr_SetString(PyExc_ValueError, "nbytes is negative");
	if (!PyErr_Occurred() &&
	    !describe(&from.tensor, from.nbytes, dtype, shape, &tag, NULL) &&
	    !describe_readers(readers, &from.to))
		result = put_source(self, &from);
	PyBuffer_Release(&tag);
	return result;
}

static PyObject *loan_described(PyObject *self, const struct ta_tensor *tensor,
				size_t nbytes)
{
	struct memory *memory = NULL;
	struct end *end = end_use(self);
	struct ta_loan *loan;
	PyObject *result;
	int err;

	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	err = memory_acquire(end, nbytes, &loan);
	if (!err)
		err = memory_of_loan(end, loan, tensor, &memory);
	Py_END_ALLOW_THREADS
	result = err ? decline_or_raise(end, err) : loan_new(memory);
	Py_BEGIN_ALLOW_THREADS
	end_done(end);
	Py_END_ALLOW_THREADS
	return result;
}

PyObject *writer_loan(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "nbytes", "dtype", "shape", "tag", NULL };
	PyObject *shape = NULL, *result = NULL;
	const char *dtype = NULL;
	struct ta_tensor tensor;
	Py_buffer tag = { 0 };
	Py_ssize_t nbytes;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|zO$y*:loan", names,
					 &nbytes, &dtype, &shape, &tag))
		return NULL;
	if (nbytes < 0)
		PyErr_SetString(PyExc_ValueError, "nbytes is negative");
	else if (!describe(&tensor, (size_t)nbytes, dtype, shape, &tag, NULL))
		result = loan_described(self, &tensor, (size_t)nbytes);
	PyBuffer_Release(&tag);
	return result;
}

PyObject *writer_loan_at(PyObject *self, PyObject *address)
{
	void *at = PyLong_AsVoidPtr(address);
	struct memory *memory;
	struct end *end;

	if (!at && PyErr_Occurred())
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	memory = memory_at(end, (uintptr_t)at);
	end_put(end);
	if (!memory)
		Py_RETURN_NONE;
	if (memory_is_on_loan(memory))
		return loan_new(memory);
	memory_put(memory);
	return error_raise_text(-ESTALE, "what was on loan there has been "
					 "committed: its bytes are the "
					 "readers' now");
}
