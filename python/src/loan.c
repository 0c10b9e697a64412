// SPDX-License-Identifier: MIT
/* Loan: a writer's share of a slot that is being filled. */
#include <errno.h>

#include "core.h"

static PyTypeObject *loan_type;

PyObject *loan_new(struct memory *memory)
{
	return shared_new(loan_type, memory);
}

static PyObject *raise_committed(void)
{
	return error_raise_text(-ESTALE, "the loan has been committed");
}

/* The memory, if it is still on loan. */
static struct memory *loan_memory(PyObject *self)
{
	struct memory *memory = shared_memory(self);

	if (memory && !memory_is_on_loan(memory)) {
		raise_committed();
		return NULL;
	}
	return memory;
}

static PyObject *write_from(struct memory *memory, const void *src,
			    Py_ssize_t nbytes, Py_ssize_t offset)
{
	struct ta_loan *loan;
	int err;

	if (offset < 0 || nbytes < 0 || (size_t)offset > memory->nbytes ||
	    (size_t)nbytes > memory->nbytes - (size_t)offset) {
		PyErr_Format(PyExc_ValueError,
			     "%zd bytes at %zd are not inside the loan's %zu",
			     nbytes, offset, memory->nbytes);
		return NULL;
	}
	loan = memory_peek_loan(memory);
	if (!loan)
		return raise_committed();
	/* Until it is back, nobody can commit it. */
	memory->writing++;
	memory_get(memory);
	Py_BEGIN_ALLOW_THREADS
	err = ta_loan_write(loan, (size_t)offset, src, (size_t)nbytes);
	Py_END_ALLOW_THREADS
	memory->writing--;
	memory_put(memory);
	if (err)
		return error_raise(err);
	Py_RETURN_NONE;
}

static PyObject *loan_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "", "offset", NULL };
	struct memory *memory;
	PyObject *object, *result = NULL;
	Py_ssize_t offset = 0;
	Py_buffer buffer;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|n:write", names,
					 &object, &offset) ||
	    PyObject_GetBuffer(object, &buffer, PyBUF_C_CONTIGUOUS))
		return NULL;
	memory = loan_memory(self);
	if (memory)
		result = write_from(memory, buffer.buf, buffer.len, offset);
	PyBuffer_Release(&buffer);
	return result;
}

static PyObject *loan_write_address(PyObject *self, PyObject *args,
				    PyObject *kwargs)
{
	static char *names[] = { "", "", "offset", NULL };
	struct memory *memory;
	PyObject *address;
	Py_ssize_t nbytes, offset = 0;
	void *src;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "On|n:write_address",
					 names, &address, &nbytes, &offset))
		return NULL;
	src = PyLong_AsVoidPtr(address);
	if (PyErr_Occurred())
		return NULL;
	memory = loan_memory(self);
	return memory ? write_from(memory, src, nbytes, offset) : NULL;
}

/* Arguments of commit(). */
struct publication {
	size_t nbytes;
	struct ta_tensor tensor;
	struct addressees to;
};

/* Fills in what is to be published: by default all as it was described. */
static int describe_loan(const struct memory *memory, PyObject *nbytes,
			 const char *dtype, PyObject *shape,
			 const Py_buffer *tag, struct publication *p)
{
	const struct ta_tensor *whole = &memory->tensor;
	const Py_buffer own_tag = {
		.buf = (void *)(uintptr_t)whole->tag,
		.len = whole->tag_bytes,
	};

	p->nbytes = memory->nbytes;
	p->tensor = *whole;
	if (nbytes != Py_None) {
		p->nbytes = PyLong_AsSize_t(nbytes);
		if (PyErr_Occurred())
			return -1;
	}
	if (p->nbytes > memory->nbytes) {
		PyErr_Format(PyExc_ValueError, "the loan has only %zu bytes",
			     memory->nbytes);
		return -1;
	}
	if (nbytes == Py_None && !dtype && shape == Py_None)
		return tag->buf ? describe_tag(&p->tensor, tag) : 0;
	return describe(&p->tensor, p->nbytes, dtype, shape,
			tag->buf ? tag : &own_tag, NULL);
}

/* Whoever commits or aborts it meanwhile finds that it is gone. */
static PyObject *publish(PyObject *self, struct memory *memory,
			 const struct publication *p)
{
	struct ta_loan *loan = memory_take_loan(memory);
	struct ta_ticket ticket;
	int err;

	if (!loan)
		return raise_committed();
	if (memory->writing) {
		memory_return_loan(memory, loan);
		return error_raise_text(-EBUSY,
					"another thread writes to the loan");
	}
	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&memory->end->publishing);
	err = commit_to(loan, &p->to, p->nbytes, &p->tensor, &ticket);
	pthread_mutex_unlock(&memory->end->publishing);
	Py_END_ALLOW_THREADS
	if (err && err != -ENOTCONN)
		memory_return_loan(memory, loan);
	else
		shared_drop(self);
	if (!err) {
		((struct shared *)self)->ticket = ticket;
		((struct shared *)self)->committed = true;
	}
	return err ? decline_or_raise(memory->end, err) : ticket_new(&ticket);
}

static PyObject *loan_commit(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "nbytes", "dtype",   "shape",
				 "tag",	   "readers", NULL };
	PyObject *nbytes = Py_None, *shape = Py_None, *readers = NULL;
	struct publication publication;
	const char *dtype = NULL;
	struct memory *memory;
	Py_buffer tag = { 0 };
	PyObject *result = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OzO$z*O:commit", names,
					 &nbytes, &dtype, &shape, &tag,
					 &readers))
		return NULL;
	memory = loan_memory(self);
	if (memory) {
		memory_get(memory);
		/* Code that the arguments run may have given the loan up. */
		if (!describe_loan(memory, nbytes, dtype, shape, &tag,
				   &publication) &&
		    !describe_readers(readers, &publication.to) &&
		    loan_memory(self))
			result = publish(self, memory, &publication);
		memory_put(memory);
	}
	PyBuffer_Release(&tag);
	return result;
}

static PyObject *loan_abort(PyObject *self, PyObject *unused)
{
	struct memory *memory;
	struct end *end;

	(void)unused;
	if (!((struct shared *)self)->memory)
		Py_RETURN_NONE;
	memory = shared_memory(self);
	if (!memory)
		return NULL;
	end = end_get(memory->end);
	shared_drop(self);
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	end_done(end);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyObject *loan_exit(PyObject *self, PyObject *args)
{
	(void)args;
	return loan_abort(self, NULL);
}

static PyObject *get_committed(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct shared *)self)->committed);
}

static PyGetSetDef getters[] = {
	{ "committed", get_committed, NULL, "it has been published", NULL },
	{ 0 },
};

static PyMethodDef methods[] = {
	{ "write", (PyCFunction)(void (*)(void))loan_write,
	  METH_VARARGS | METH_KEYWORDS,
	  "write(buffer, offset=0)\n--\n\n"
	  "Copies a contiguous buffer into the loan." },
	{ "write_address", (PyCFunction)(void (*)(void))loan_write_address,
	  METH_VARARGS | METH_KEYWORDS,
	  "write_address(address, nbytes, offset=0)\n--\n\n"
	  "Copies memory of this process, which must be valid, into the "
	  "loan." },
	{ "commit", (PyCFunction)(void (*)(void))loan_commit,
	  METH_VARARGS | METH_KEYWORDS,
	  "commit(nbytes=None, dtype=None, shape=None, *, tag=None, "
	  "readers=None)\n--\n\n"
	  "Publishes the loan, or only nbytes of it, as it was described or is "
	  "here.\n\nReturns a Ticket, or None when it is declined; the loan "
	  "is gone then, too." },
	{ "abort", loan_abort, METH_NOARGS,
	  "Gives the slot back unpublished, as soon as nothing shares it." },
	{ "__enter__", return_self, METH_NOARGS, NULL },
	{ "__exit__", loan_exit, METH_VARARGS, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc,
	  "A slot to be filled in place, then published with commit().\n\n"
	  "An array or tensor that was made of it before stays valid memory, "
	  "and the slot\nis not used again while it lives; but the bytes are "
	  "the readers' then." },
	{ Py_tp_getset, getters },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena.Loan",
	.basicsize = sizeof(struct shared),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int loan_init(PyObject *module, PyObject *base)
{
	loan_type = (PyTypeObject *)add_type(module, "Loan", &spec, base);
	return loan_type ? 0 : -1;
}
