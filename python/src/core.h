/* SPDX-License-Identifier: MIT */
/*
 * The Python half of the extension, over memory.h.
 *
 * Python functions return NULL, and others -1, with an exception set.  There is
 * one state for the process, so the module is for the main interpreter only.
 */
#ifndef TENSORARENA_CORE_H
#define TENSORARENA_CORE_H

/* Stable from 3.11 on, the first with the buffer protocol. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "memory.h"

/* ---- error.c ---- */

int error_init(PyObject *module);
/* The exception for an error number of the library's; NULL. */
PyObject *error_raise(int err);
/* The same with a sentence of its own, unless that is empty. */
PyObject *error_raise_text(int err, const char *text);

/* ---- decline.c ---- */

/* Counts a decline by reason; with the GIL. */
int decline_count(struct declines *declines, const char *reason);
/* dict of counts by reason, and the reason counted last or None. */
PyObject *decline_dict(const struct declines *declines);
PyObject *decline_last(const struct declines *declines);
/* None for an error that is a decline, which is counted; else an exception. */
PyObject *decline_or_raise(struct end *end, int err);

/* ---- dtype.c ---- */

void dtype_init(void);
/* What a name means; ValueError. */
int dtype_parse(const char *name, struct ta_tensor *tensor);
PyObject *dtype_name(const struct ta_tensor *tensor);
/* The struct module's code, or NULL when it has none. */
const char *dtype_format(const struct ta_tensor *tensor);
/* What a buffer says it is; false: nothing that has a name here. */
bool dtype_of_format(const Py_buffer *buffer, struct ta_tensor *tensor);
PyObject *dtype_bits(PyObject *module, PyObject *name);

/* ---- describe.c ---- */

/*
 * Fills a descriptor of @nbytes bytes from Python's arguments.
 *
 * @dtype: name, or NULL
 * @shape: sequence, or NULL or None
 * @tag: user's bytes; @tag->buf may be NULL
 * @buffer: what to go by where those say nothing, or NULL
 */
int describe(struct ta_tensor *tensor, size_t nbytes, const char *dtype,
	     PyObject *shape, const Py_buffer *tag, const Py_buffer *buffer);
/* Replaces the tag; ValueError: too long. */
int describe_tag(struct ta_tensor *tensor, const Py_buffer *tag);

/**
 * struct addressees - whom a publication is for
 * @everyone: all open seats
 */
struct addressees {
	bool everyone;
	uint32_t nr;
	uint64_t id[TENSORARENA_MAX_READERS];
};

/* @readers: sequence of ids, or NULL or None for everyone. */
int describe_readers(PyObject *readers, struct addressees *to);
/* ta_commit() or ta_commit_to(). */
int commit_to(struct ta_loan *loan, const struct addressees *to, size_t nbytes,
	      const struct ta_tensor *tensor, struct ta_ticket *ticket);

/* ---- ticket.c ---- */

int ticket_init(PyObject *module);
PyObject *ticket_new(const struct ta_ticket *ticket);
/* TypeError: not a ticket. */
int ticket_get(PyObject *object, struct ta_ticket *ticket);

/* ---- export.c ---- */

/* The buffer protocol for @memory, on behalf of @object. */
int export_buffer(struct memory *memory, PyObject *object, Py_buffer *buffer,
		  int flags);
void export_release(PyObject *object, Py_buffer *buffer);
/* A capsule that shares @memory; @versioned: can say "read-only". */
PyObject *export_dlpack(struct memory *memory, bool versioned);
/* The same of the plain bytes, which cannot. */
PyObject *export_dlpack_bytes(struct memory *memory);

/* ---- shared.c ---- */

/**
 * struct shared - what View and Loan are
 * @memory: NULL once it has been given up
 * @ticket: of the publication, or of what a loan will be
 * @committed: of a loan
 */
struct shared {
	PyObject_HEAD
	struct memory *memory;
	struct ta_ticket ticket;
	bool committed;
	PyObject *weakrefs;
};

/* Makes the base class, then the two; see view.c and loan.c. */
int shared_init(PyObject *module);
/* A new object of a type that takes over the reference to @memory. */
PyObject *shared_new(PyTypeObject *type, struct memory *memory);
/*
 * The memory, borrowed: until other Python code may run, which may give it up.
 * ValueError: given up.  In a forked child: EIO.
 */
struct memory *shared_memory(PyObject *self);
/* Gives up this object's share. */
void shared_drop(PyObject *self);
PyObject *return_self(PyObject *self, PyObject *unused);

/* ---- view.c, loan.c ---- */

int view_init(PyObject *module, PyObject *base);
PyObject *view_new(struct memory *memory);
int loan_init(PyObject *module, PyObject *base);
PyObject *loan_new(struct memory *memory);

/* ---- ends.c ---- */

/**
 * struct end_object - what Writer and Reader are
 * @end: NULL when closed, or not made yet
 * @handle: str
 * @slots, @slot_bytes: of a writer
 */
struct end_object {
	PyObject_HEAD
	struct end *end;
	PyObject *handle;
	uint32_t slots;
	uint64_t slot_bytes;
	PyObject *weakrefs;
};

/* For a call: the end, referenced; closed, or in a forked child: an Error. */
struct end *end_use(PyObject *self);
/* At the end of the call, without the GIL: may close. */
static inline void end_done(struct end *end)
{
	end_close(end);
}
/* What has died of it before; without the GIL. */
void end_settle(struct end *end);
int end_is_new(struct end_object *self);
/* Makes it of one of them, which is closed when that fails. */
int end_object_make(PyObject *self, struct ta_writer *writer,
		    struct ta_reader *reader, const char *handle);
void end_object_dealloc(PyObject *self);
PyObject *end_object_close(PyObject *self, PyObject *unused);
PyObject *end_object_exit(PyObject *self, PyObject *args);
PyObject *end_object_closed(PyObject *self, void *unused);
PyObject *end_object_handle(PyObject *self, void *unused);
PyObject *engine_name(enum ta_engine_kind kind);
/* A (descriptor, events) pair. */
PyObject *poll_pair(int fd, short events);

/* Documents, names and makes a class, and adds it to the module. */
PyObject *add_type(PyObject *module, const char *name, PyType_Spec *spec,
		   PyObject *base);

/* ---- writer.c, writer_control.c, writer_put.c ---- */

int writer_init(PyObject *module);
extern PyMethodDef writer_methods[];
PyObject *writer_put(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *writer_put_address(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *writer_loan(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *writer_loan_at(PyObject *self, PyObject *address);

/* ---- reader.c, reader_view.c ---- */

int reader_init(PyObject *module);
PyObject *reader_view(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *reader_next(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_at(PyObject *module, PyObject *address);

/* ---- words.c ---- */

int words_init(PyObject *module);

/* ---- stats.c ---- */

/* Dicts; these call the engine, dropping the GIL. */
PyObject *stats_of_writer(struct end *end);
PyObject *stats_of_reader(struct end *end);

#endif /* TENSORARENA_CORE_H */
