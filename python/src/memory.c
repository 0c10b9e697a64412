// SPDX-License-Identifier: MIT
/* The memory of slots, given back when nothing shares it any more. */
#include <errno.h>
#include <stdlib.h>

#include "memory.h"

struct memory *memory_get(struct memory *memory)
{
	__atomic_add_fetch(&memory->refs, 1, __ATOMIC_RELAXED);
	return memory;
}

/* Whether it was still alive, and now is for one more. */
static bool get_unless_dead(struct memory *memory)
{
	unsigned int refs = __atomic_load_n(&memory->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&memory->refs, &refs, refs + 1,
						true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

static void memory_free(struct memory *memory)
{
	stream_forget(&memory->streams);
	end_put(memory->end);
	free(memory);
}

void memory_put(struct memory *memory)
{
	if (__atomic_sub_fetch(&memory->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (end_is_inherited(memory->end)) {
		memory_free(memory);
		return;
	}
	reaper_push(&memory->dead);
}

int memory_add_stream(struct memory *memory, void *stream)
{
	int err;

	pthread_mutex_lock(&memory->end->lock);
	err = stream_add(&memory->streams, stream);
	pthread_mutex_unlock(&memory->end->lock);
	return err;
}

/* Takes it off its slot; returns what it kept the slot from, or NULL. */
static struct ta_loan *leave(struct memory *memory)
{
	struct end *end = memory->end;
	struct memory **slot = &end->slot[memory->ticket.slot];
	struct ta_loan *kept;

	pthread_mutex_lock(&end->lock);
	if (*slot == memory)
		*slot = NULL;
	kept = memory->kept;
	pthread_mutex_unlock(&end->lock);
	return kept;
}

static bool bury(struct dead *dead)
{
	struct memory *memory = (struct memory *)dead;
	struct ta_loan *kept;

	if (memory->view && stream_mark(&memory->streams, memory->view))
		return false;
	kept = leave(memory);
	/*
	 * What these return has nobody left to be told.  It cannot be that the
	 * slot stays: they fail when it has been taken from us already.
	 */
	if (memory->view)
		ta_release(memory->view);
	if (memory->loan)
		ta_abort(memory->loan);
	if (kept)
		ta_abort(kept);
	memory_free(memory);
	return true;
}

static struct memory *memory_new(struct end *end)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->dead.bury = bury;
	memory->dead.grave = &end->grave;
	memory->refs = 1;
	memory->end = end_get(end);
	SLIST_INIT(&memory->streams);
	return memory;
}

static void fill_strides(struct memory *memory)
{
	const struct ta_tensor *tensor = &memory->tensor;
	int64_t bytes = (int64_t)tensor->bits * tensor->lanes / 8;
	int64_t stride = 1;
	uint32_t i;

	for (i = tensor->ndim; i-- > 0;) {
		memory->strides[i] = stride;
		memory->steps[i] = stride * bytes;
		/* An empty tensor's other extents may be absurd. */
		if (__builtin_mul_overflow(stride, tensor->shape[i], &stride))
			stride = 0;
	}
}

struct memory *memory_at(struct end *end, uintptr_t address)
{
	struct memory *found = NULL;
	unsigned int i;

	pthread_mutex_lock(&end->lock);
	for (i = 0; i < TENSORARENA_MAX_SLOTS && !found; i++) {
		struct memory *memory = end->slot[i];

		if (memory && address - (uintptr_t)memory->data <
				      (uintptr_t)memory->nbytes)
			found = get_unless_dead(memory) ? memory : NULL;
	}
	pthread_mutex_unlock(&end->lock);
	return found;
}

static bool is_same(const struct ta_ticket *a, const struct ta_ticket *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

int memory_of_view(struct end *end, struct ta_view *view,
		   struct memory **memory)
{
	struct memory **slot = &end->slot[view->ticket.slot];
	struct memory *fresh = memory_new(end);
	bool shared;

	if (!fresh) {
		ta_release(view);
		return -ENOMEM;
	}
	fresh->view = view;
	/* Whether it may be written to is told by @readonly. */
	fresh->data = (void *)(uintptr_t)view->data;
	fresh->nbytes = view->nbytes;
	fresh->tensor = view->tensor;
	fresh->ticket = view->ticket;
	fresh->readonly = end->readonly;
	fill_strides(fresh);

	pthread_mutex_lock(&end->lock);
	shared = *slot && is_same(&(*slot)->ticket, &view->ticket) &&
		 get_unless_dead(*slot);
	if (!shared)
		*slot = fresh;
	*memory = *slot;
	pthread_mutex_unlock(&end->lock);
	if (shared) {
		ta_release(view);
		memory_free(fresh);
	}
	return 0;
}

int memory_of_loan(struct end *end, struct ta_loan *loan,
		   const struct ta_tensor *tensor, struct memory **memory)
{
	struct memory *fresh = memory_new(end);

	if (!fresh) {
		ta_abort(loan);
		return -ENOMEM;
	}
	fresh->loan = loan;
	fresh->data = loan->data;
	fresh->nbytes = loan->nbytes;
	fresh->tensor = *tensor;
	ta_loan_ticket(loan, loan->nbytes, &fresh->ticket);
	fill_strides(fresh);

	pthread_mutex_lock(&end->lock);
	end->slot[loan->slot] = fresh;
	pthread_mutex_unlock(&end->lock);
	*memory = fresh;
	return 0;
}

/* Whether a loan of a slot has to be kept for a memory that lives on. */
static bool keep(struct end *end, struct ta_loan *loan)
{
	struct memory *memory;
	bool kept;

	pthread_mutex_lock(&end->lock);
	memory = end->slot[loan->slot];
	/* What dies from here on gives the loan back when it is buried. */
	kept = memory && __atomic_load_n(&memory->refs, __ATOMIC_ACQUIRE);
	if (kept)
		memory->kept = loan;
	pthread_mutex_unlock(&end->lock);
	return kept;
}

int memory_acquire(struct end *end, size_t nbytes, struct ta_loan **loan)
{
	int err;

	do
		err = ta_loan(end->writer, nbytes, loan);
	while (!err && keep(end, *loan));
	return err;
}

struct ta_loan *memory_take_loan(struct memory *memory)
{
	/* Acquire: pairs with memory_return_loan(). */
	return __atomic_exchange_n(&memory->loan, NULL, __ATOMIC_ACQUIRE);
}

void memory_return_loan(struct memory *memory, struct ta_loan *loan)
{
	/* Release: what was tried with it came before; memory_take_loan(). */
	__atomic_store_n(&memory->loan, loan, __ATOMIC_RELEASE);
}

struct ta_loan *memory_peek_loan(const struct memory *memory)
{
	return __atomic_load_n(&memory->loan, __ATOMIC_RELAXED);
}

bool memory_is_on_loan(const struct memory *memory)
{
	return memory_peek_loan(memory);
}

/* Whether memory of loans that have been committed can still be reached. */
static bool outlives(struct end *end)
{
	bool found = false;
	unsigned int i;

	pthread_mutex_lock(&end->lock);
	for (i = 0; i < TENSORARENA_MAX_SLOTS; i++)
		found |= end->slot[i] && !memory_is_on_loan(end->slot[i]) &&
			 __atomic_load_n(&end->slot[i]->refs, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(&end->lock);
	return found;
}

int memory_trim(struct end *end, uint64_t keep_bytes, uint64_t *freed_bytes)
{
	int err = -EBUSY;

	pthread_mutex_lock(&end->publishing);
	if (!outlives(end))
		err = ta_trim(end->writer, keep_bytes, freed_bytes);
	pthread_mutex_unlock(&end->publishing);
	return err;
}
