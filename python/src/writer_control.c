// SPDX-License-Identifier: MIT
/* Writer: slots' memory, readers, and what it tells. */
#include <errno.h>

#include "core.h"

static PyObject *finish(struct end *end, int err)
{
	Py_BEGIN_ALLOW_THREADS
	end_done(end);
	Py_END_ALLOW_THREADS
	if (err)
		return error_raise(err);
	Py_RETURN_NONE;
}

static PyObject *writer_populate(PyObject *self, PyObject *args,
				 PyObject *kwargs)
{
	static char *names[] = { "slots", "nbytes", NULL };
	Py_ssize_t nbytes;
	struct end *end;
	int slots, err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "in:populate", names,
					 &slots, &nbytes))
		return NULL;
	if (slots < 0 || nbytes < 0)
		return error_raise(-EINVAL);
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	err = ta_populate(end->writer, (uint32_t)slots, (size_t)nbytes);
	Py_END_ALLOW_THREADS
	return finish(end, err);
}

static PyObject *writer_trim(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "keep_bytes", NULL };
	PyObject *number = NULL, *done;
	uint64_t keep = 0, freed = 0;
	struct end *end;
	int err;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:trim", names,
					 &number))
		return NULL;
	if (number)
		keep = PyLong_AsUnsignedLongLong(number);
	if (PyErr_Occurred())
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	end_settle(end);
	err = memory_trim(end, keep, &freed);
	Py_END_ALLOW_THREADS
	done = finish(end, err);
	if (!done)
		return NULL;
	Py_DECREF(done);
	return PyLong_FromUnsignedLongLong(freed);
}

static PyObject *writer_retract(PyObject *self, PyObject *object)
{
	struct ta_ticket ticket;
	uint32_t pending = 0;
	struct end *end;
	PyObject *done;
	int err;

	if (ticket_get(object, &ticket))
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = ta_retract(end->writer, &ticket, &pending);
	Py_END_ALLOW_THREADS
	done = finish(end, err);
	if (!done)
		return NULL;
	Py_DECREF(done);
	return PyLong_FromUnsignedLong(pending);
}

static PyObject *writer_evict(PyObject *self, PyObject *id)
{
	unsigned long long reader = PyLong_AsUnsignedLongLong(id);
	struct end *end;
	int err;

	if (PyErr_Occurred())
		return NULL;
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = ta_evict(end->writer, reader);
	Py_END_ALLOW_THREADS
	return finish(end, err);
}

static PyObject *writer_close_seat(PyObject *self, PyObject *number)
{
	unsigned long seat = PyLong_AsUnsignedLong(number);
	struct end *end;
	int err;

	if (PyErr_Occurred())
		return NULL;
	if (seat > UINT32_MAX)
		return error_raise(-EINVAL);
	end = end_use(self);
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = ta_close_seat(end->writer, (uint32_t)seat);
	Py_END_ALLOW_THREADS
	return finish(end, err);
}

static PyObject *writer_connect(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	int fd;

	(void)unused;
	if (!end)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	fd = ta_writer_connect(end->writer);
	end_done(end);
	Py_END_ALLOW_THREADS
	return fd < 0 ? error_raise(fd) : PyLong_FromLong(fd);
}

static PyObject *writer_poll_fd(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	short events = 0;
	int fd;

	(void)unused;
	if (!end)
		return NULL;
	fd = ta_writer_poll_fd(end->writer, &events);
	end_put(end);
	return poll_pair(fd, events);
}

static PyObject *writer_decline(PyObject *self, PyObject *reason)
{
	const char *text = PyUnicode_AsUTF8AndSize(reason, NULL);
	struct end *end = text ? end_use(self) : NULL;
	int err;

	if (!end)
		return NULL;
	err = decline_count(&end->declines, text);
	end_put(end);
	if (err)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *writer_stats(PyObject *self, PyObject *unused)
{
	struct end *end = end_use(self);
	PyObject *stats;

	(void)unused;
	if (!end)
		return NULL;
	stats = stats_of_writer(end);
	end_put(end);
	return stats;
}

PyMethodDef writer_methods[] = {
	{ "put", (PyCFunction)(void (*)(void))writer_put,
	  METH_VARARGS | METH_KEYWORDS,
	  "put(buffer, dtype=None, shape=None, *, tag=b'', readers=None)\n"
	  "--\n\n"
	  "Copies a contiguous buffer into a slot and publishes it.\n\n"
	  "Returns a Ticket, or None when it is declined; .last_decline says "
	  "why." },
	{ "put_address", (PyCFunction)(void (*)(void))writer_put_address,
	  METH_VARARGS | METH_KEYWORDS,
	  "put_address(address, nbytes, dtype=None, shape=None, *, tag=b'', "
	  "readers=None)\n--\n\n"
	  "put() of memory of this process, which must be valid." },
	{ "loan", (PyCFunction)(void (*)(void))writer_loan,
	  METH_VARARGS | METH_KEYWORDS,
	  "loan(nbytes, dtype=None, shape=None, *, tag=b'')\n--\n\n"
	  "A slot to be filled in place, or None when that is declined." },
	{ "loan_at", writer_loan_at, METH_O,
	  "loan_at(address)\n--\n\n"
	  "The loan at an address of this process, or None.  StaleTicket: it "
	  "has been\ncommitted." },
	{ "populate", (PyCFunction)(void (*)(void))writer_populate,
	  METH_VARARGS | METH_KEYWORDS,
	  "populate(slots, nbytes)\n--\n\n"
	  "Builds slots of that size now instead of in their first put()." },
	{ "trim", (PyCFunction)(void (*)(void))writer_trim,
	  METH_VARARGS | METH_KEYWORDS,
	  "trim(keep_bytes=0)\n--\n\n"
	  "Frees idle slots' memory until at most that much is left; returns "
	  "the bytes\nfreed.  EBUSY: pages are pinned, or an array or tensor "
	  "made of a loan lives." },
	{ "retract", writer_retract, METH_O,
	  "retract(ticket)\n--\n\n"
	  "Calls a publication back from the readers that have not seen it; "
	  "returns how many\nhave, and keep it.  StaleTicket: all have "
	  "released "
	  "it." },
	{ "evict", writer_evict, METH_O,
	  "evict(reader)\n--\n\nThrows out a reader, by its id." },
	{ "close_seat", writer_close_seat, METH_O,
	  "close_seat(seat)\n--\n\n"
	  "Closes a seat that nobody has claimed." },
	{ "connect", writer_connect, METH_NOARGS,
	  "A descriptor for Reader(handle, fd=...), which the caller closes." },
	{ "poll_fd", writer_poll_fd, METH_NOARGS,
	  "A descriptor and the poll events that mean \"a slot is free\"." },
	{ "decline", writer_decline, METH_O,
	  "decline(reason)\n--\n\n"
	  "Counts a decline that a layer above has decided on." },
	{ "stats", writer_stats, METH_NOARGS,
	  "State and counters, as a dict." },
	{ "close", end_object_close, METH_NOARGS,
	  "No more publications.  The readers see that once no array or tensor "
	  "made of\na loan is left." },
	{ "__enter__", return_self, METH_NOARGS, NULL },
	{ "__exit__", end_object_exit, METH_VARARGS, NULL },
	{ 0 },
};
