// SPDX-License-Identifier: MIT
/* Writer: making an arena, looking after it, and the class. */
#include <errno.h>
#include <string.h>

#include "core.h"

static struct end_object *of(PyObject *self)
{
	return (struct end_object *)self;
}

static int parse_engine(const char *name, uint32_t *engine)
{
	static const char *const names[] = {
		[TA_ENGINE_AUTO] = "auto",
		[TA_ENGINE_DEVICE] = "device",
		[TA_ENGINE_EMBEDDED] = "embedded",
	};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i], name)) {
			*engine = i;
			return 0;
		}
	}
	PyErr_Format(PyExc_ValueError, "there is no engine '%.100s'", name);
	return -1;
}

/* Arguments of Writer(), on their way into options. */
struct arguments {
	int slots;
	int seats;
	PyObject *slot_bytes;
	const char *engine;
	int copy_threads;
	int writable;
	int contiguous;
	int fallback_small;
	int node_strict;
	int memory_check;
	int any_uid;
};

static int parse(PyObject *args, PyObject *kwargs, struct ta_options *options)
{
	static char *names[] = { "slots",	   "slot_bytes",
				 "seats",	   "engine",
				 "node",	   "copy_threads",
				 "writable",	   "contiguous",
				 "fallback_small", "node_strict",
				 "memory_check",   "any_uid",
				 "socket_path",	   NULL };
	struct arguments a = {
		.slots = (int)options->slots,
		.engine = "auto",
		.memory_check = true,
	};

	if (!PyArg_ParseTupleAndKeywords(
		    args, kwargs, "|iOi$siippppppz:Writer", names, &a.slots,
		    &a.slot_bytes, &a.seats, &a.engine, &options->node,
		    &a.copy_threads, &a.writable, &a.contiguous,
		    &a.fallback_small, &a.node_strict, &a.memory_check,
		    &a.any_uid, &options->socket_path))
		return -1;
	if (a.slots < 0 || a.seats < 0 || a.copy_threads < 0) {
		PyErr_SetString(PyExc_ValueError,
				"a number of slots, seats or threads is "
				"negative");
		return -1;
	}
	options->slots = (uint32_t)a.slots;
	options->seats = (uint32_t)a.seats;
	options->copy_threads = (uint32_t)a.copy_threads;
	if (a.slot_bytes)
		options->slot_bytes = PyLong_AsUnsignedLongLong(a.slot_bytes);
	if (PyErr_Occurred())
		return -1;
	options->flags = (a.writable ? TA_WRITABLE_READERS : 0) |
			 (a.contiguous ? TA_CONTIGUOUS : 0) |
			 (a.fallback_small ? TA_FALLBACK_SMALL : 0) |
			 (a.node_strict ? TA_NODE_STRICT : 0) |
			 (a.memory_check ? 0 : TA_NO_MEMORY_CHECK) |
			 (a.any_uid ? TA_ANY_UID : 0);
	return parse_engine(a.engine, &options->engine);
}

static int writer_make(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct ta_options options;
	struct ta_writer *writer;
	char why[512] = "";
	int err;

	ta_options_init(&options);
	if (end_is_new(of(self)) || parse(args, kwargs, &options))
		return -1;
	Py_BEGIN_ALLOW_THREADS
	err = ta_create(&options, &writer, why, sizeof(why));
	Py_END_ALLOW_THREADS
	if (err) {
		error_raise_text(err, why);
		return -1;
	}
	if (end_object_make(self, writer, NULL, ta_handle(writer)))
		return -1;
	of(self)->slots = options.slots;
	of(self)->slot_bytes = options.slot_bytes;
	return 0;
}

static PyObject *get_engine(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *name;

	(void)unused;
	if (!end)
		return NULL;
	name = engine_name(ta_writer_engine(end->writer));
	end_put(end);
	return name;
}

static PyObject *get_slots(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(of(self)->slots);
}

static PyObject *get_slot_bytes(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(of(self)->slot_bytes);
}

static PyObject *get_last_decline(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *reason;

	(void)unused;
	if (!end)
		return NULL;
	reason = decline_last(&end->declines);
	end_put(end);
	return reason;
}

static PyObject *get_declines(PyObject *self, void *unused)
{
	struct end *end = end_use(self);
	PyObject *dict;

	(void)unused;
	if (!end)
		return NULL;
	dict = decline_dict(&end->declines);
	end_put(end);
	return dict;
}

static PyGetSetDef getters[] = {
	{ "handle", end_object_handle, NULL,
	  "to be given to the readers; a secret", NULL },
	{ "engine", get_engine, NULL, "\"device\" or \"embedded\"", NULL },
	{ "slots", get_slots, NULL, "how many tensors may be in flight", NULL },
	{ "slot_bytes", get_slot_bytes, NULL, "largest tensor", NULL },
	{ "last_decline", get_last_decline, NULL,
	  "the reason declined for last, or None", NULL },
	{ "declines", get_declines, NULL, "how often, by reason", NULL },
	{ "closed", end_object_closed, NULL, "it has been closed", NULL },
	{ 0 },
};

static PyMemberDef members[] = {
	{ "__weaklistoffset__", T_PYSSIZET,
	  offsetof(struct end_object, weakrefs), READONLY, NULL },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "The writer's end of an arena; see tensorarena.Writer." },
	{ Py_tp_init, writer_make },
	{ Py_tp_dealloc, end_object_dealloc },
	{ Py_tp_getset, getters },
	{ Py_tp_members, members },
	{ Py_tp_methods, writer_methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena._core.Writer",
	.basicsize = sizeof(struct end_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int writer_init(PyObject *module)
{
	return add_type(module, "Writer", &spec, NULL) ? 0 : -1;
}
