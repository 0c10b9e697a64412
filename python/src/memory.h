/* SPDX-License-Identifier: MIT */
/*
 * Ends of arenas and the memory of slots, as objects that may die anywhere.
 *
 * An end is a writer or reader.  Its references are the Python object that is
 * not closed, each memory, and each call in progress; the library's object is
 * closed with the last one, so that closing in one thread cannot pull an arena
 * from under an array or a call in another.
 *
 * A memory is what a view or loan gives access to.  Its references are the
 * Python object and everything it was exported to.  There is at most one for
 * each slot that can be reached, so an address says whose it is.
 *
 * Nothing in here knows Python, and nothing needs the GIL.
 */
#ifndef TENSORARENA_MEMORY_H
#define TENSORARENA_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

#include "reaper.h"
#include "stream.h"

/* Reasons that can be told apart in one writer; the rest are "other". */
#define MAX_REASONS 32

/**
 * struct declines - what was declined
 * @last: the reason last counted, or NULL
 * @nr: reasons seen
 * @reason: names, allocated
 * @count: how often
 */
struct declines {
	const char *last;
	unsigned int nr;
	char *reason[MAX_REASONS];
	uint64_t count[MAX_REASONS];
};

/**
 * struct end - a writer or a reader
 * @dead: for the reaper
 * @refs: see above
 * @life: of the process that made it; see end_is_inherited()
 * @writer, @reader: one of them
 * @readonly: its views are
 * @link: all ends of this process
 * @lock: guards @slot and what it points to that is not settled at birth
 * @publishing: held while a loan is committed, or the slots are trimmed: a slot
 *	that memory can be reached of must not become free in between.  Before
 *	@lock
 * @slot: the memory that is, or was last, shared of each slot
 * @declines: of a writer, how often and why; with the GIL
 * @grave: of its memories, and of itself
 */
struct end {
	struct dead dead;
	unsigned int refs;
	unsigned int life;
	struct ta_writer *writer;
	struct ta_reader *reader;
	bool readonly;
	LIST_ENTRY(end) link;
	pthread_mutex_t lock;
	pthread_mutex_t publishing;
	struct memory *slot[TENSORARENA_MAX_SLOTS];
	struct declines declines;
	struct grave grave;
};

/**
 * struct memory - a slot's memory, shared by Python objects
 * @dead: for the reaper
 * @refs: see above
 * @end: whose it is; referenced
 * @data: the bytes
 * @nbytes: how many
 * @tensor: what they are
 * @strides: of @tensor, in elements
 * @steps: the same in bytes
 * @ticket: of the publication, or of what a loan will be
 * @readonly: for good
 * @view: of a reader: the hold
 * @streams: of a reader: what the slot has to wait for; under the end's lock
 * @loan: of a writer: NULL once committed, or while it is; atomic
 * @writing: of a writer: threads that write to the loan; with the GIL
 * @kept: of a writer: the slot, acquired once more to keep it from being used
 *	while this memory of an earlier publication can still be reached; under
 *	the end's lock
 */
struct memory {
	struct dead dead;
	unsigned int refs;
	struct end *end;
	void *data;
	size_t nbytes;
	struct ta_tensor tensor;
	int64_t strides[TA_MAX_NDIM];
	int64_t steps[TA_MAX_NDIM];
	struct ta_ticket ticket;
	bool readonly;
	struct ta_view *view;
	struct streams streams;
	struct ta_loan *loan;
	unsigned int writing;
	struct ta_loan *kept;
};

/* ---- end.c ---- */

/* Of one of them, with one reference; NULL: no memory. */
struct end *end_new(struct ta_writer *writer, struct ta_reader *reader,
		    const char *handle);
struct end *end_get(struct end *end);
/* Whether anything but the caller refers to it. */
bool end_is_shared(const struct end *end);
/* Leaves closing to the reaper; never waits. */
void end_put(struct end *end);
/* Closes with the last reference at once; without the GIL. */
void end_close(struct end *end);
/* Whether this is a forked child of the process that made it. */
bool end_is_inherited(const struct end *end);
/* Makes forked children see that; 0 or -errno. */
int end_init(void);
/* The memory at an address that any reader holds, referenced, or NULL. */
struct memory *memory_of_any_reader(uintptr_t address);
/* In a forked child: closes what was inherited. */
void end_close_inherited(void);

/* ---- memory.c ---- */

struct memory *memory_get(struct memory *memory);
/* Never waits. */
void memory_put(struct memory *memory);
/* The slot waits for this stream of this thread's context: 0 or -errno. */
int memory_add_stream(struct memory *memory, void *stream);
/* The memory at an address that an end can reach, referenced, or NULL. */
struct memory *memory_at(struct end *end, uintptr_t address);
/*
 * Of a view that was just taken; the view is consumed, also when this fails.
 * 0 or -errno.
 */
int memory_of_view(struct end *end, struct ta_view *view,
		   struct memory **memory);
/* Of a loan that was just taken; consumed likewise. */
int memory_of_loan(struct end *end, struct ta_loan *loan,
		   const struct ta_tensor *tensor, struct memory **memory);
/* ta_loan(), of a slot that no memory of an earlier loan can reach. */
int memory_acquire(struct end *end, size_t nbytes, struct ta_loan **loan);
/* The loan, if it is there, for whoever commits it: it is gone for all others. */
struct ta_loan *memory_take_loan(struct memory *memory);
/* It could not be committed. */
void memory_return_loan(struct memory *memory, struct ta_loan *loan);
/* The loan, which whoever commits it may take meanwhile; NULL: it is taken. */
struct ta_loan *memory_peek_loan(const struct memory *memory);
bool memory_is_on_loan(const struct memory *memory);
/*
 * ta_trim(); -EBUSY also while memory of loans that have been committed can be
 * reached.
 */
int memory_trim(struct end *end, uint64_t keep_bytes, uint64_t *freed_bytes);

#endif /* TENSORARENA_MEMORY_H */
