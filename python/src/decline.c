// SPDX-License-Identifier: MIT
/* What a writer has declined, by reason. */
#include <errno.h>
#include <string.h>

#include "core.h"

static const char *reason_of(int err)
{
	switch (err) {
	case -EAGAIN:
		return "no_slot";
	case -EMSGSIZE:
		return "oversize";
	case -ENOMEM:
		return "no_memory";
	case -EDQUOT:
		return "limit";
	case -ENOTCONN:
		return "no_reader";
	default:
		return NULL;
	}
}

static unsigned int find(const struct declines *declines, const char *reason)
{
	unsigned int i;

	for (i = 0; i < declines->nr; i++)
		if (!strcmp(declines->reason[i], reason))
			break;
	return i;
}

int decline_count(struct declines *declines, const char *reason)
{
	unsigned int i = find(declines, reason);

	/* The last place is for all that no place was left for. */
	if (i == declines->nr && i >= MAX_REASONS - 1) {
		reason = "other";
		i = find(declines, reason);
	}
	if (i == declines->nr) {
		declines->reason[i] = strdup(reason);
		if (!declines->reason[i]) {
			PyErr_NoMemory();
			return -1;
		}
		declines->nr++;
	}
	declines->count[i]++;
	declines->last = declines->reason[i];
	return 0;
}

PyObject *decline_dict(const struct declines *declines)
{
	PyObject *dict = PyDict_New();
	unsigned int i;

	for (i = 0; dict && i < declines->nr; i++) {
		PyObject *count =
			PyLong_FromUnsignedLongLong(declines->count[i]);

		if (!count ||
		    PyDict_SetItemString(dict, declines->reason[i], count))
			Py_CLEAR(dict);
		Py_XDECREF(count);
	}
	return dict;
}

PyObject *decline_last(const struct declines *declines)
{
	if (!declines->last)
		Py_RETURN_NONE;
	return PyUnicode_FromString(declines->last);
}

PyObject *decline_or_raise(struct end *end, int err)
{
	const char *reason = reason_of(err);

	if (!reason)
		return error_raise(err);
	if (decline_count(&end->declines, reason))
		return NULL;
	Py_RETURN_NONE;
}
