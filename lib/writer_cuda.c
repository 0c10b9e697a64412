// SPDX-License-Identifier: MIT
/* A writer and its GPU: tensors that go from there into a loan. */
#include <errno.h>

#include "writer.h"

static struct loan *to_loan(struct ta_loan *loan)
{
	return (struct loan *)loan;
}

void ta_writer_cuda_unmapping(struct ta_writer *writer, uint32_t slot)
{
	pthread_mutex_lock(&writer->cuda_lock);
	ta_cuda_unpin(&writer->cuda, slot);
	pthread_mutex_unlock(&writer->cuda_lock);
}

void ta_writer_cuda_init(struct ta_writer *writer, uint64_t stride,
			 uint32_t slots)
{
	pthread_mutex_init(&writer->cuda_lock, NULL);
	ta_cuda_init(&writer->cuda, writer->port->base, stride, slots, false);
}

void ta_writer_cuda_destroy(struct ta_writer *writer, bool forked)
{
	struct loan *loan;

	/* A child's copies of all this may be half changed. */
	if (forked)
		return;
	LIST_FOREACH(loan, &writer->loans, link) {
		/* Pages that may yet be written to must be nobody else's. */
		if (!ta_loan_drain(loan))
			ta_cuda_leave_pinned(&writer->cuda, loan->pub.slot);
		ta_cuda_drop_events(&writer->cuda, &loan->marks.events, false);
	}
	ta_cuda_destroy(&writer->cuda, false);
}

bool ta_loan_drain(struct loan *loan)
{
	struct ta_writer *writer = loan->writer;
	bool over;

	if (!ta_cuda_is_marked(&loan->marks))
		return true;
	/* Unlocked: no other thread may use the loan now. */
	ta_cuda_wait(&writer->cuda, &loan->marks);
	pthread_mutex_lock(&writer->cuda_lock);
	over = ta_cuda_reached_alone(&writer->cuda, &loan->marks);
	pthread_mutex_unlock(&writer->cuda_lock);
	return over;
}

bool ta_writer_unpin(struct ta_writer *writer)
{
	uint64_t before;
	bool any;

	pthread_mutex_lock(&writer->cuda_lock);
	before = writer->cuda.stats.pinned_bytes;
	ta_cuda_unpin_idle(&writer->cuda, 0, ta_writer_is_idle, writer);
	any = writer->cuda.stats.pinned_bytes < before;
	pthread_mutex_unlock(&writer->cuda_lock);
	return any;
}

/* Sends a copy, if @src, and marks the loan with where the stream is then. */
static int send(struct loan *loan, size_t offset, const void *src, size_t bytes,
		void *stream)
{
	struct ta_writer *writer = loan->writer;
	struct ta_cuda *cuda = &writer->cuda;
	struct ta_cuda_work work;
	int err;

	pthread_mutex_lock(&writer->cuda_lock);
	err = ta_cuda_begin(cuda, &loan->marks, stream, &work);
	if (!err)
		ta_cuda_pin_for(cuda, &work, loan->pub.slot, loan->pub.nbytes,
				ta_writer_is_idle, writer);
	pthread_mutex_unlock(&writer->cuda_lock);
	if (err)
		return err;

	ta_cuda_send(cuda, &work, (char *)loan->pub.data + offset, src, bytes,
		     TA_CUDA_TO_HOST);

	pthread_mutex_lock(&writer->cuda_lock);
	err = ta_cuda_finish(cuda, &loan->marks, &work);
	pthread_mutex_unlock(&writer->cuda_lock);
	return err;
}

int ta_copy_from_device(struct ta_loan *loan, size_t offset, const void *src,
			size_t bytes, void *stream)
{
	if (!ta_is_alive(&to_loan(loan)->writer->alive))
		return -EIO;
	if (offset > loan->nbytes || bytes > loan->nbytes - offset || !src)
		return -EINVAL;
	return send(to_loan(loan), offset, src, bytes, stream);
}

int ta_commit_after(struct ta_loan *loan, void *stream, size_t nbytes,
		    const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	int err;

	if (!ta_is_alive(&to_loan(loan)->writer->alive))
		return -EIO;
	err = send(to_loan(loan), 0, NULL, 0, stream);
	return err ? err : ta_commit(loan, nbytes, tensor, ticket);
}

int ta_cuda_writer_stats(struct ta_writer *writer, struct ta_cuda_stats *stats,
			 struct ta_cuda_slot *rows, uint32_t nr)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	pthread_mutex_lock(&writer->cuda_lock);
	ta_cuda_report(&writer->cuda, stats, rows, nr);
	pthread_mutex_unlock(&writer->cuda_lock);
	return 0;
}
