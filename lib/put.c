// SPDX-License-Identifier: MIT
/*
 * Writing tensors: put, loan with commit or abort, and retract.
 *
 * Every path through here leaves a slot published, lent to the caller, or free
 * again.
 */
#include <errno.h>
#include <stdlib.h>

#include "copy_gather.h"
#include "tensor.h"
#include "writer.h"

static struct loan *to_loan(struct ta_loan *loan)
{
	return (struct loan *)loan;
}

static void abort_slot(struct ta_writer *writer, uint32_t slot,
		       uint64_t generation)
{
	struct tensorarena_slot_ref ref = {
		.slot = slot,
		.generation = generation,
	};

	/* It fails only when the slot is not ours any more. */
	ta_writer_call(writer, TENSORARENA_ABORT, &ref);
}

/* Takes a slot that somebody would read. */
static int acquire(struct ta_writer *writer, size_t nbytes,
		   struct tensorarena_acquire *acquired)
{
	int err;

	*acquired = (struct tensorarena_acquire){ .nbytes = nbytes };
	err = ta_writer_call(writer, TENSORARENA_ACQUIRE, acquired);
	if (err || acquired->open)
		return err;
	abort_slot(writer, acquired->slot, acquired->generation);
	return -ENOTCONN;
}

/* Whom a publication is for, what it is, and its descriptor. */
static int prepare(struct tensorarena_publish *publish, bool everyone,
		   const uint64_t *readers, uint32_t nr, size_t nbytes,
		   const struct ta_tensor *tensor)
{
	int meta_bytes;

	/* To the engine, no list is everyone; an empty one is nobody. */
	if (!everyone && (!readers || !nr || nr > TENSORARENA_MAX_READERS))
		return -EINVAL;
	*publish = (struct tensorarena_publish){
		.nbytes = nbytes,
		.readers = (uintptr_t)readers,
		.nr_readers = nr,
	};
	meta_bytes = ta_tensor_encode(tensor, nbytes, publish->meta);
	if (meta_bytes < 0)
		return meta_bytes;
	publish->meta_bytes = (uint32_t)meta_bytes;
	return 0;
}

/* -ENOTCONN: nobody was there; the slot is free again. */
static int publish_slot(struct ta_writer *writer, uint32_t slot,
			uint64_t generation,
			struct tensorarena_publish *publish,
			struct ta_ticket *ticket)
{
	int err;

	publish->slot = slot;
	publish->generation = generation;
	err = ta_writer_call(writer, TENSORARENA_PUBLISH, publish);
	if (err)
		return err;
	if (!publish->addressed)
		return -ENOTCONN;
	if (ticket)
		*ticket = (struct ta_ticket){
			.arena = writer->arena,
			.generation = generation,
			.nbytes = publish->nbytes,
			.slot = slot,
		};
	return 0;
}

static int put(struct ta_writer *writer, bool everyone, const uint64_t *readers,
	       uint32_t nr, const struct ta_part *parts, uint32_t nr_parts,
	       const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	struct tensorarena_publish publish;
	struct tensorarena_acquire slot;
	size_t nbytes;
	int err;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	err = ta_parts_nbytes(parts, nr_parts, &nbytes);
	if (err)
		return err;
	err = prepare(&publish, everyone, readers, nr, nbytes, tensor);
	if (err)
		return err;
	err = acquire(writer, nbytes, &slot);
	if (err)
		return err;
	ta_copy_parts(&writer->copier, writer->port->base + slot.offset, parts,
		      nbytes);
	err = publish_slot(writer, slot.slot, slot.generation, &publish,
			   ticket);
	if (err && err != -ENOTCONN)
		abort_slot(writer, slot.slot, slot.generation);
	return err;
}

static struct ta_part plain_part(const void *data, size_t nbytes)
{
	return (struct ta_part){
		.data = data,
		.rows = 1,
		.row_bytes = nbytes,
	};
}

int ta_put(struct ta_writer *writer, const void *src, size_t nbytes,
	   const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	const struct ta_part part = plain_part(src, nbytes);

	return put(writer, true, NULL, 0, &part, 1, tensor, ticket);
}

int ta_put_to(struct ta_writer *writer, const uint64_t *readers, uint32_t nr,
	      const void *src, size_t nbytes, const struct ta_tensor *tensor,
	      struct ta_ticket *ticket)
{
	const struct ta_part part = plain_part(src, nbytes);

	return put(writer, false, readers, nr, &part, 1, tensor, ticket);
}

int ta_put_v(struct ta_writer *writer, const struct ta_part *parts,
	     uint32_t nr_parts, const struct ta_tensor *tensor,
	     struct ta_ticket *ticket)
{
	return put(writer, true, NULL, 0, parts, nr_parts, tensor, ticket);
}

int ta_put_v_to(struct ta_writer *writer, const uint64_t *readers, uint32_t nr,
		const struct ta_part *parts, uint32_t nr_parts,
		const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	return put(writer, false, readers, nr, parts, nr_parts, tensor, ticket);
}

int ta_loan(struct ta_writer *writer, size_t nbytes, struct ta_loan **loan)
{
	struct tensorarena_acquire slot;
	struct loan *l;
	int err;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	err = acquire(writer, nbytes, &slot);
	if (err) {
		free(l);
		return err;
	}
	l->pub.data = writer->port->base + slot.offset;
	l->pub.nbytes = nbytes;
	l->pub.generation = slot.generation;
	l->pub.slot = slot.slot;
	l->writer = writer;
	LIST_INIT(&l->marks.events);
	pthread_mutex_lock(&writer->lock);
	LIST_INSERT_HEAD(&writer->loans, l, link);
	pthread_mutex_unlock(&writer->lock);
	*loan = &l->pub;
	return 0;
}

int ta_loan_write(struct ta_loan *loan, size_t offset, const void *src,
		  size_t nbytes)
{
	struct ta_writer *writer = to_loan(loan)->writer;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	if (offset > loan->nbytes || nbytes > loan->nbytes - offset ||
	    (!src && nbytes))
		return -EINVAL;
	ta_copy(&writer->copier, (char *)loan->data + offset, src, nbytes);
	return 0;
}

void ta_loan_ticket(const struct ta_loan *loan, size_t nbytes,
		    struct ta_ticket *ticket)
{
	const struct loan *l = (const struct loan *)loan;

	*ticket = (struct ta_ticket){
		.arena = l->writer->arena,
		.generation = loan->generation,
		.nbytes = nbytes,
		.slot = loan->slot,
	};
}

static void forget_loan(struct loan *loan)
{
	struct ta_writer *writer = loan->writer;

	pthread_mutex_lock(&writer->lock);
	LIST_REMOVE(loan, link);
	pthread_mutex_unlock(&writer->lock);
	free(loan);
}

static int commit(struct ta_loan *loan, bool everyone, const uint64_t *readers,
		  uint32_t nr, size_t nbytes, const struct ta_tensor *tensor,
		  struct ta_ticket *ticket)
{
	struct ta_writer *writer = to_loan(loan)->writer;
	struct tensorarena_publish publish;
	int err;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	err = prepare(&publish, everyone, readers, nr, nbytes, tensor);
	if (err)
		return err;
	if (!ta_loan_drain(to_loan(loan)) || to_loan(loan)->marks.failed)
		return -EREMOTEIO;
	err = publish_slot(writer, loan->slot, loan->generation, &publish,
			   ticket);
	if (!err || err == -ENOTCONN)
		forget_loan(to_loan(loan));
	return err;
}

int ta_commit(struct ta_loan *loan, size_t nbytes,
	      const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	return commit(loan, true, NULL, 0, nbytes, tensor, ticket);
}

int ta_commit_to(struct ta_loan *loan, const uint64_t *readers, uint32_t nr,
		 size_t nbytes, const struct ta_tensor *tensor,
		 struct ta_ticket *ticket)
{
	return commit(loan, false, readers, nr, nbytes, tensor, ticket);
}

int ta_abort(struct ta_loan *loan)
{
	struct ta_writer *writer = to_loan(loan)->writer;
	struct tensorarena_slot_ref ref = {
		.slot = loan->slot,
		.generation = loan->generation,
	};
	int err;

	/* A child's copy of the loan goes with its copy of the writer. */
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	/* Nobody gets the bytes, so how copies went does not matter. */
	if (!ta_loan_drain(to_loan(loan)))
		return -EREMOTEIO;
	err = ta_writer_call(writer, TENSORARENA_ABORT, &ref);
	forget_loan(to_loan(loan));
	return err;
}

int ta_retract(struct ta_writer *writer, const struct ta_ticket *ticket,
	       uint32_t *pending)
{
	struct tensorarena_retract retract = {
		.generation = ticket->generation,
		.slot = ticket->slot,
	};
	int err;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	if (ticket->arena != writer->arena)
		return -ESTALE;
	err = ta_writer_call(writer, TENSORARENA_RETRACT, &retract);
	if (!err && pending)
		*pending = retract.pending;
	return err == -EINVAL ? -ESTALE : err;
}
