// SPDX-License-Identifier: MIT
/* Tickets as Python objects. */
#include <stdio.h>
#include <string.h>

#include "core.h"

/*
 * A ticket as bytes: all little-endian, the first word saying which layout this
 * is.
 */
#define TICKET_VERSION 0x314b4154u /* "TAK1" */
#define TICKET_BYTES 32

struct ticket_object {
	PyObject_HEAD
	struct ta_ticket ticket;
};

static PyTypeObject *ticket_type;

static const struct ta_ticket *of(PyObject *self)
{
	return &((struct ticket_object *)self)->ticket;
}

static PyObject *make(PyTypeObject *type, const struct ta_ticket *ticket)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *self = alloc(type, 0);

	if (self)
		((struct ticket_object *)self)->ticket = *ticket;
	return self;
}

PyObject *ticket_new(const struct ta_ticket *ticket)
{
	return make(ticket_type, ticket);
}

int ticket_get(PyObject *object, struct ta_ticket *ticket)
{
	if (!Py_IS_TYPE(object, ticket_type)) {
		PyErr_SetString(PyExc_TypeError, "a Ticket is needed");
		return -1;
	}
	*ticket = *of(object);
	return 0;
}

static PyObject *ticket_create(PyTypeObject *type, PyObject *args,
			       PyObject *kwargs)
{
	static char *names[] = { "arena", "slot", "generation", "nbytes",
				 NULL };
	PyObject *number[4];
	struct ta_ticket ticket = { 0 };
	unsigned long slot;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO:Ticket", names,
					 &number[0], &number[1], &number[2],
					 &number[3]))
		return NULL;
	ticket.arena = PyLong_AsUnsignedLongLong(number[0]);
	if (PyErr_Occurred())
		return NULL;
	slot = PyLong_AsUnsignedLong(number[1]);
	if (PyErr_Occurred())
		return NULL;
	ticket.generation = PyLong_AsUnsignedLongLong(number[2]);
	if (PyErr_Occurred())
		return NULL;
	ticket.nbytes = PyLong_AsUnsignedLongLong(number[3]);
	if (PyErr_Occurred())
		return NULL;
	if (slot >= TENSORARENA_MAX_SLOTS) {
		PyErr_SetString(PyExc_ValueError, "there is no such slot");
		return NULL;
	}
	ticket.slot = (uint32_t)slot;
	return make(type, &ticket);
}

static void store(uint8_t *at, uint64_t value, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;
	unsigned int i;

	for (i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static PyObject *ticket_bytes(PyObject *self, PyObject *unused)
{
	const struct ta_ticket *ticket = of(self);
	uint8_t bytes[TICKET_BYTES];

	(void)unused;
	store(bytes, TICKET_VERSION, 4);
	store(bytes + 4, ticket->slot, 4);
	store(bytes + 8, ticket->arena, 8);
	store(bytes + 16, ticket->generation, 8);
	store(bytes + 24, ticket->nbytes, 8);
	return PyBytes_FromStringAndSize((const char *)bytes, sizeof(bytes));
}

static PyObject *ticket_from_bytes(PyObject *type, PyObject *args)
{
	struct ta_ticket ticket = { 0 };
	const uint8_t *bytes;
	bool valid;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "y*:from_bytes", &data))
		return NULL;
	bytes = data.buf;
	valid = data.len == TICKET_BYTES && load(bytes, 4) == TICKET_VERSION &&
		load(bytes + 4, 4) < TENSORARENA_MAX_SLOTS;
	if (valid) {
		ticket.slot = (uint32_t)load(bytes + 4, 4);
		ticket.arena = load(bytes + 8, 8);
		ticket.generation = load(bytes + 16, 8);
		ticket.nbytes = load(bytes + 24, 8);
	}
	PyBuffer_Release(&data);
	if (!valid) {
		PyErr_SetString(PyExc_ValueError,
				"not a ticket, or one of another version");
		return NULL;
	}
	return make((PyTypeObject *)type, &ticket);
}

static PyObject *ticket_reduce(PyObject *self, PyObject *unused)
{
	PyObject *rebuild =
		PyObject_GetAttrString((PyObject *)Py_TYPE(self), "from_bytes");
	PyObject *bytes = rebuild ? ticket_bytes(self, unused) : NULL;
	PyObject *reduced = bytes ? Py_BuildValue("(O(O))", rebuild, bytes) :
				    NULL;

	Py_XDECREF(rebuild);
	Py_XDECREF(bytes);
	return reduced;
}

static bool is_equal(const struct ta_ticket *a, const struct ta_ticket *b)
{
	return a->arena == b->arena && a->slot == b->slot &&
	       a->generation == b->generation && a->nbytes == b->nbytes;
}

static PyObject *ticket_compare(PyObject *self, PyObject *other, int op)
{
	if (!Py_IS_TYPE(other, ticket_type) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	return PyBool_FromLong(is_equal(of(self), of(other)) == (op == Py_EQ));
}

/* The generation tells most tickets of an arena apart, the slot the rest. */
static Py_hash_t ticket_hash(PyObject *self)
{
	const struct ta_ticket *ticket = of(self);
	uint64_t hash = ticket->arena;

	hash = hash * 0x9e3779b97f4a7c15 + ticket->generation;
	hash = hash * 0x9e3779b97f4a7c15 + ticket->slot;
	hash ^= hash >> 32;
	return hash == (uint64_t)-1 ? -2 : (Py_hash_t)hash;
}

static PyObject *ticket_repr(PyObject *self)
{
	const struct ta_ticket *ticket = of(self);
	char text[160];

	/* PyUnicode_FromFormat() has no unsigned 64-bit conversion that fits. */
	snprintf(text, sizeof(text),
		 "Ticket(arena=%llu, slot=%u, generation=%llu, nbytes=%llu)",
		 (unsigned long long)ticket->arena, ticket->slot,
		 (unsigned long long)ticket->generation,
		 (unsigned long long)ticket->nbytes);
	return PyUnicode_FromString(text);
}

static PyObject *get_arena(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(of(self)->arena);
}

static PyObject *get_slot(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(of(self)->slot);
}

static PyObject *get_generation(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(of(self)->generation);
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(of(self)->nbytes);
}

static PyGetSetDef getters[] = {
	{ "arena", get_arena, NULL, "id of the arena", NULL },
	{ "slot", get_slot, NULL, "index of the slot", NULL },
	{ "generation", get_generation, NULL, "of the slot", NULL },
	{ "nbytes", get_nbytes, NULL, "bytes published", NULL },
	{ 0 },
};

static PyMethodDef methods[] = {
	{ "__bytes__", ticket_bytes, METH_NOARGS, "versioned, 32 bytes" },
	{ "from_bytes", ticket_from_bytes, METH_VARARGS | METH_CLASS,
	  "from_bytes(data) -> Ticket" },
	{ "__reduce__", ticket_reduce, METH_NOARGS, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Ticket(arena, slot, generation, nbytes)\n--\n\n"
		     "Names one publication; send it to the readers." },
	{ Py_tp_new, ticket_create },
	{ Py_tp_repr, ticket_repr },
	{ Py_tp_hash, ticket_hash },
	{ Py_tp_richcompare, ticket_compare },
	{ Py_tp_getset, getters },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena.Ticket",
	.basicsize = sizeof(struct ticket_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int ticket_init(PyObject *module)
{
	ticket_type = (PyTypeObject *)add_type(module, "Ticket", &spec, NULL);
	return ticket_type ? 0 : -1;
}
