/* SPDX-License-Identifier: MIT */
/* What writer.c, put.c, load.c and writer_cuda.c share. */
#ifndef TA_WRITER_H
#define TA_WRITER_H

#include <pthread.h>
#include <sys/queue.h>

#include <tensorarena.h>

#include "alive.h"
#include "copy.h"
#include "cuda.h"
#include "engine.h"
#include "handle.h"
#include "load.h"

/*
 * A loan as we keep it; callers see the first member.  @marks: what a GPU still
 * writes to it; once they have failed it must not be published.
 */
struct loan {
	struct ta_loan pub;
	struct ta_writer *writer;
	struct ta_cuda_marks marks;
	LIST_ENTRY(loan) link;
};

/**
 * struct ta_writer - a writer
 * @port: its end of the arena
 * @alive: whether this is the process that created it
 * @engine: which engine it got
 * @arena: the arena's id
 * @handle: the string for the readers
 * @copier: what copies into slots
 * @lock: guards @loans.  A forked child never waits for it: the thread that
 *	held it may not exist there.
 * @loans: loans not yet committed or aborted
 * @cuda_lock: guards @cuda and the loans' marks; taken before @lock, and not
 *	held across commands to the engine
 * @cuda: pins and events
 * @loader: what loads files; has locks of its own, taken before @lock
 */
struct ta_writer {
	struct ta_port *port;
	struct ta_alive alive;
	enum ta_engine_kind engine;
	uint64_t arena;
	char handle[TA_HANDLE_MAX];
	struct ta_copier copier;
	pthread_mutex_t lock;
	LIST_HEAD(, loan) loans;
	pthread_mutex_t cuda_lock;
	struct ta_cuda cuda;
	struct ta_loader loader;
};

/* A command to the engine; -EIO in a forked child. */
static inline int ta_writer_call(struct ta_writer *writer, unsigned int cmd,
				 void *arg)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	return writer->port->ops->call(writer->port, cmd, arg);
}

/* ---- writer.c ---- */

/* For a new writer whose port is there. */
void ta_writer_init(struct ta_writer *writer, uint64_t stride, uint32_t slots);
/* Whether nobody has a slot on loan; @owner is the writer. */
bool ta_writer_is_idle(const void *owner, uint32_t slot);

/* ---- writer_cuda.c ---- */

void ta_writer_cuda_init(struct ta_writer *writer, uint64_t stride,
			 uint32_t slots);
/* The engine is about to unmap what may be registered. */
void ta_writer_cuda_unmapping(struct ta_writer *writer, uint32_t slot);
/* Waits for what GPUs do to loans, unregisters everything. */
void ta_writer_cuda_destroy(struct ta_writer *writer, bool forked);
/* Waits for what GPUs do to a loan.  False: it may still be going on. */
bool ta_loan_drain(struct loan *loan);
/* Unregisters slots that are not on loan; whether there were any. */
bool ta_writer_unpin(struct ta_writer *writer);

#endif /* TA_WRITER_H */
