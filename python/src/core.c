// SPDX-License-Identifier: MIT
/* The module tensorarena._core. */
#include "core.h"

PyObject *add_type(PyObject *module, const char *name, PyType_Spec *spec,
		   PyObject *base)
{
	PyObject *type = PyType_FromSpecWithBases(spec, base);

	if (!type || PyModule_AddObjectRef(module, name, type)) {
		Py_XDECREF(type);
		return NULL;
	}
	/* The module keeps it for as long as the process lives. */
	return type;
}

static PyObject *close_inherited(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	end_close_inherited();
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "dtype_bits", dtype_bits, METH_O,
	  "dtype_bits(dtype)\n--\n\n"
	  "Bits of one element, all lanes.  ValueError: no such type." },
	{ "view_at", view_at, METH_O,
	  "view_at(address)\n--\n\n"
	  "A view that shares the memory at an address of this process, or "
	  "None." },
	{ "_close_inherited", close_inherited, METH_NOARGS,
	  "In a forked child: closes what was inherited, which is dead." },
	{ 0 },
};

/* Without this a child would keep what its parent closes. */
static int register_at_fork(PyObject *module)
{
	PyObject *os = PyImport_ImportModule("os");
	PyObject *hook = PyObject_GetAttrString(module, "_close_inherited");
	PyObject *args = PyTuple_New(0);
	PyObject *kwargs = PyDict_New();
	PyObject *function = NULL, *result = NULL;

	if (os && hook && args && kwargs &&
	    !PyDict_SetItemString(kwargs, "after_in_child", hook))
		function = PyObject_GetAttrString(os, "register_at_fork");
	if (function)
		result = PyObject_Call(function, args, kwargs);
	Py_XDECREF(os);
	Py_XDECREF(hook);
	Py_XDECREF(args);
	Py_XDECREF(kwargs);
	Py_XDECREF(function);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int make_all(PyObject *module)
{
	int err;

	if (error_init(module) || ticket_init(module) || shared_init(module) ||
	    writer_init(module) || reader_init(module) || words_init(module))
		return -1;
	dtype_init();
	err = end_init();
	if (err) {
		error_raise(err);
		return -1;
	}
	return register_at_fork(module);
}

/* Each import calls this, in whatever interpreter; all is made once. */
static int fill(PyObject *module)
{
	static PyObject *made;
	PyObject *dict = PyModule_GetDict(module);

	if (PyInterpreterState_GetID(PyInterpreterState_Get())) {
		PyErr_SetString(PyExc_ImportError,
				"tensorarena is for the main interpreter only");
		return -1;
	}
	if (made)
		return PyDict_Merge(dict, made, false);
	if (make_all(module))
		return -1;
	made = Py_NewRef(dict);
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, fill },
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tensorarena._core",
	.m_doc = "The extension in C; use the package tensorarena.",
	.m_methods = functions,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&definition);
}
