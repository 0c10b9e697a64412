// SPDX-License-Identifier: MIT
/*
 * Words of memory that processes share, for what Python has no means of its
 * own: loads and stores in an order that all of them see, and sleeping until a
 * word changes.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core.h"

/* A futex is one, and the other processes may not be of this program. */
static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t),
	      "an atomic word is a word");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "and has no lock beside it");

struct words_object {
	PyObject_HEAD
	Py_buffer buffer;
	_Atomic uint32_t *word;
	Py_ssize_t nr;
};

static struct words_object *of(PyObject *self)
{
	return (struct words_object *)self;
}

static PyObject *words_create(PyTypeObject *type, PyObject *args,
			      PyObject *kwargs)
{
	static char *names[] = { "", NULL };
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct words_object *self;
	PyObject *object;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Words", names,
					 &object))
		return NULL;
	self = of(alloc(type, 0));
	if (!self)
		return NULL;
	if (PyObject_GetBuffer(object, &self->buffer, PyBUF_WRITABLE)) {
		Py_DECREF(self);
		return NULL;
	}
	if ((uintptr_t)self->buffer.buf % sizeof(uint32_t)) {
		PyErr_SetString(PyExc_ValueError, "the buffer is not aligned");
		Py_DECREF(self);
		return NULL;
	}
	self->word = self->buffer.buf;
	self->nr = self->buffer.len / (Py_ssize_t)sizeof(uint32_t);
	return (PyObject *)self;
}

static void words_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyBuffer_Release(&of(self)->buffer);
	release(self);
	Py_DECREF(type);
}

static _Atomic uint32_t *word_at(PyObject *self, Py_ssize_t index)
{
	if (index < 0 || index >= of(self)->nr) {
		PyErr_SetString(PyExc_IndexError, "there is no such word");
		return NULL;
	}
	return of(self)->word + index;
}

static PyObject *words_load(PyObject *self, PyObject *number)
{
	Py_ssize_t index = PyLong_AsSsize_t(number);
	_Atomic uint32_t *word;

	if (index == -1 && PyErr_Occurred())
		return NULL;
	word = word_at(self, index);
	if (!word)
		return NULL;
	return PyLong_FromUnsignedLong(
		atomic_load_explicit(word, memory_order_acquire));
}

static PyObject *words_store(PyObject *self, PyObject *args)
{
	_Atomic uint32_t *word;
	unsigned int value;
	Py_ssize_t index;

	if (!PyArg_ParseTuple(args, "nI:store", &index, &value))
		return NULL;
	word = word_at(self, index);
	if (!word)
		return NULL;
	atomic_store_explicit(word, value, memory_order_release);
	Py_RETURN_NONE;
}

static PyObject *words_grow(PyObject *self, PyObject *args)
{
	_Atomic uint32_t *word;
	unsigned int value;
	Py_ssize_t index;
	uint32_t seen;

	if (!PyArg_ParseTuple(args, "nI:grow", &index, &value))
		return NULL;
	word = word_at(self, index);
	if (!word)
		return NULL;
	seen = atomic_load_explicit(word, memory_order_relaxed);
	while (seen < value && !atomic_compare_exchange_weak_explicit(
				       word, &seen, value, memory_order_release,
				       memory_order_relaxed))
		;
	Py_RETURN_NONE;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static PyObject *words_ring(PyObject *self, PyObject *number)
{
	Py_ssize_t index = PyLong_AsSsize_t(number);
	_Atomic uint32_t *word;

	if (index == -1 && PyErr_Occurred())
		return NULL;
	word = word_at(self, index);
	if (!word)
		return NULL;
	/*
	 * Pairs with the load of who is about to wait: it either sees the new
	 * value, and with it all that came before, or FUTEX_WAIT does.
	 */
	atomic_fetch_add_explicit(word, 1, memory_order_release);
	futex(word, FUTEX_WAKE, INT32_MAX, NULL);
	Py_RETURN_NONE;
}

static PyObject *words_wait(PyObject *self, PyObject *args)
{
	_Atomic uint32_t *word;
	struct timespec timeout;
	unsigned int value;
	Py_ssize_t index;
	double seconds;
	long err;

	if (!PyArg_ParseTuple(args, "nId:wait", &index, &value, &seconds))
		return NULL;
	word = word_at(self, index);
	if (!word)
		return NULL;
	if (!(seconds >= 0 && seconds < 1e9)) {
		PyErr_SetString(PyExc_ValueError, "no such time");
		return NULL;
	}
	timeout.tv_sec = (time_t)seconds;
	timeout.tv_nsec = (long)((seconds - (double)timeout.tv_sec) * 1e9);
	Py_BEGIN_ALLOW_THREADS
	err = futex(word, FUTEX_WAIT, value, &timeout) ? errno : 0;
	Py_END_ALLOW_THREADS
	if (err == EINTR && PyErr_CheckSignals())
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "load", words_load, METH_O,
	  "load(index) -> int\n\nAn acquire: what was stored before the "
	  "store() that is seen, is seen." },
	{ "store", words_store, METH_VARARGS,
	  "store(index, value)\n\nA release: see load()." },
	{ "grow", words_grow, METH_VARARGS,
	  "grow(index, value)\n\nstore(), if the word is less." },
	{ "ring", words_ring, METH_O,
	  "ring(index)\n\nAdds one, a release, and wakes who waits." },
	{ "wait", words_wait, METH_VARARGS,
	  "wait(index, value, timeout)\n\nSleeps while the word is that value, "
	  "for timeout seconds at most; may return early." },
	{ 0 },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Words(buffer, /)\n--\n\n"
		     "Words of 32 bits that processes share." },
	{ Py_tp_new, words_create },
	{ Py_tp_dealloc, words_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

static PyType_Spec spec = {
	.name = "tensorarena._core.Words",
	.basicsize = sizeof(struct words_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};

int words_init(PyObject *module)
{
	return add_type(module, "Words", &spec, NULL) ? 0 : -1;
}
