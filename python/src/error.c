// SPDX-License-Identifier: MIT
/* Error numbers as exceptions. */
#include <errno.h>
#include <string.h>

#include "core.h"

enum {
	ERROR,
	STALE_TICKET,
	NOT_ADDRESSED,
	WRITER_GONE,
	EVICTED,
	WRONG_PROCESS
};

static const struct {
	const char *name;
	const char *doc;
} classes[] = {
	[ERROR] = { "tensorarena.Error",
		    "A call failed; .errno says how, .strerror in "
		    "tensorarena's terms." },
	[STALE_TICKET] = { "tensorarena.StaleTicket",
			   "ESTALE: the slot has moved on, or this reader has "
			   "released it." },
	[NOT_ADDRESSED] = { "tensorarena.NotAddressed",
			    "ENXIO: the publication was not meant for this "
			    "reader." },
	[WRITER_GONE] = { "tensorarena.WriterGone",
			  "EPIPE, ECONNREFUSED: the writer has closed the "
			  "arena or died." },
	[EVICTED] = { "tensorarena.Evicted",
		      "EOWNERDEAD: the writer has thrown this reader out." },
	[WRONG_PROCESS] = { "tensorarena.WrongProcess",
			    "EIO: the object was inherited by a forked child, "
			    "where it is dead." },
};

#define NR_CLASSES (sizeof(classes) / sizeof(classes[0]))

static PyObject *exception[NR_CLASSES];

int error_init(PyObject *module)
{
	PyObject *base = PyExc_OSError;
	size_t i;

	for (i = 0; i < NR_CLASSES; i++) {
		exception[i] = PyErr_NewExceptionWithDoc(
			classes[i].name, classes[i].doc, base, NULL);
		if (!exception[i] ||
		    PyModule_AddObjectRef(module,
					  strchr(classes[i].name, '.') + 1,
					  exception[i]))
			return -1;
		base = exception[ERROR];
	}
	return 0;
}

static PyObject *class_of(int err)
{
	switch (-err) {
	case ESTALE:
		return exception[STALE_TICKET];
	case ENXIO:
		return exception[NOT_ADDRESSED];
	case EPIPE:
	case ECONNREFUSED:
		return exception[WRITER_GONE];
	case EOWNERDEAD:
		return exception[EVICTED];
	case EIO:
		return exception[WRONG_PROCESS];
	default:
		return exception[ERROR];
	}
}

PyObject *error_raise_text(int err, const char *text)
{
	PyObject *args;

	if (!text || !*text)
		text = ta_strerror(err);
	args = Py_BuildValue("(is)", -err, text);
	if (args) {
		PyErr_SetObject(class_of(err), args);
		Py_DECREF(args);
	}
	return NULL;
}

PyObject *error_raise(int err)
{
	return error_raise_text(err, NULL);
}
