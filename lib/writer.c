// SPDX-License-Identifier: MIT
/* The writer's end but for what it writes: life, memory, readers, figures. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "stats.h"
#include "writer.h"

/* Of a trim that waits for the kernel, an eighth of a second in all. */
#define LONGEST_PAUSE_NS 64000000

bool ta_writer_is_idle(const void *owner, uint32_t slot)
{
	struct ta_writer *writer = (struct ta_writer *)owner;
	const struct loan *loan;
	bool idle = true;

	pthread_mutex_lock(&writer->lock);
	LIST_FOREACH(loan, &writer->loans, link)
		idle &= loan->pub.slot != slot;
	pthread_mutex_unlock(&writer->lock);
	return idle;
}

/* The engine is about to unmap what may be registered. */
static void unmapping(void *above, uint32_t slot)
{
	struct ta_writer *writer = above;

	ta_writer_cuda_unmapping(writer, slot);
	ta_loader_forget(&writer->loader, slot);
}

void ta_writer_init(struct ta_writer *writer, uint64_t stride, uint32_t slots)
{
	ta_writer_cuda_init(writer, stride, slots);
	ta_loader_init(&writer->loader, writer->port->base, stride, slots);
	writer->port->above = writer;
	writer->port->unmapping = unmapping;
}

void ta_writer_close(struct ta_writer *writer)
{
	bool forked;
	struct loan *loan, *next;

	if (!writer)
		return;
	forked = !ta_is_alive(&writer->alive);
	ta_copier_destroy(&writer->copier, forked);
	ta_writer_cuda_destroy(writer, forked);
	ta_loader_destroy(&writer->loader, forked);
	writer->port->unmapping = NULL;
	/*
	 * In a child the lock may have been held at the fork by a thread that
	 * is not here.  Then the list may be half changed and is left alone.
	 */
	if (!pthread_mutex_trylock(&writer->lock)) {
		for (loan = LIST_FIRST(&writer->loans); loan; loan = next) {
			next = LIST_NEXT(loan, link);
			free(loan);
		}
		pthread_mutex_unlock(&writer->lock);
	}
	writer->port->ops->close(writer->port, forked);
	ta_alive_destroy(&writer->alive);
	free(writer);
}

const char *ta_handle(const struct ta_writer *writer)
{
	return writer->handle;
}

enum ta_engine_kind ta_writer_engine(const struct ta_writer *writer)
{
	return writer->engine;
}

int ta_set_copy_threads(struct ta_writer *writer, uint32_t threads)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	if (threads > TA_COPY_MAX_THREADS)
		return -EINVAL;
	ta_copier_set_threads(&writer->copier, threads);
	return 0;
}

int ta_populate(struct ta_writer *writer, uint32_t slots, size_t nbytes)
{
	struct tensorarena_populate populate = {
		.nbytes = nbytes,
		.slots = slots,
	};

	return ta_writer_call(writer, TENSORARENA_POPULATE, &populate);
}

static int trim(struct ta_writer *writer, uint64_t keep_bytes, uint64_t *freed)
{
	struct tensorarena_trim args = { .keep_bytes = keep_bytes };
	int err = ta_writer_call(writer, TENSORARENA_TRIM, &args);

	*freed += args.freed_bytes;
	return err;
}

/*
 * What io_uring had registered it lets go of when its last read's request is
 * freed.  A worker thread of the kernel's does that, some time after it has
 * reported the read: it may be waiting for a processor.
 */
static int trim_unregistered(struct ta_writer *writer, uint64_t keep_bytes,
			     uint64_t *freed)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int err;

	for (;;) {
		err = trim(writer, keep_bytes, freed);
		if (err != -EBUSY || pause.tv_nsec > LONGEST_PAUSE_NS)
			return err;
		nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
}

int ta_trim(struct ta_writer *writer, uint64_t keep_bytes,
	    uint64_t *freed_bytes)
{
	uint64_t freed = 0;
	bool registered, pinned;
	int err;

	err = trim(writer, keep_bytes, &freed);
	/* The pins in the way may be our own. */
	if (err == -EBUSY) {
		registered = ta_loader_forget_idle(&writer->loader,
						   ta_writer_is_idle, writer);
		pinned = ta_writer_unpin(writer);
		if (registered)
			err = trim_unregistered(writer, keep_bytes, &freed);
		else if (pinned)
			err = trim(writer, keep_bytes, &freed);
	}
	if (freed_bytes)
		*freed_bytes = freed;
	return err;
}

int ta_evict(struct ta_writer *writer, uint64_t reader)
{
	struct tensorarena_evict evict = { .reader = reader };

	return ta_writer_call(writer, TENSORARENA_EVICT, &evict);
}

int ta_close_seat(struct ta_writer *writer, uint32_t seat)
{
	struct tensorarena_evict evict = {
		.reader = seat,
		.flags = TENSORARENA_EVICT_SEAT,
	};

	return ta_writer_call(writer, TENSORARENA_EVICT, &evict);
}

int ta_writer_poll_fd(struct ta_writer *writer, short *events)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	return writer->port->ops->poll_fd(writer->port, events);
}

int ta_writer_connect(struct ta_writer *writer)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	return writer->port->ops->connect(writer->port);
}

int ta_stats(struct ta_writer *writer, struct ta_stats *stats,
	     struct ta_reader_stats *rows, uint32_t nr)
{
	struct tensorarena_stats st = {
		.readers = (uintptr_t)rows,
		.nr_readers = rows ? nr : 0,
		.row_bytes = sizeof(*rows),
	};
	int err;

	err = ta_writer_call(writer, TENSORARENA_STATS, &st);
	if (err)
		return err;
	ta_stats_take(stats, &st);
	return 0;
}
