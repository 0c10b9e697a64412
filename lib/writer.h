/* SPDX-License-Identifier: MIT */
/* What writer.c and put.c share. */
#ifndef TA_WRITER_H
#define TA_WRITER_H

#include <pthread.h>
#include <sys/queue.h>

#include <tensorarena.h>

#include "alive.h"
#include "engine.h"
#include "handle.h"

/* A loan as we keep it; callers see the first member. */
struct loan {
	struct ta_loan pub;
	struct ta_writer *writer;
	LIST_ENTRY(loan) link;
};

/**
 * struct ta_writer - a writer
 * @port: its end of the arena
 * @alive: whether this is the process that created it
 * @engine: which engine it got
 * @arena: the arena's id
 * @handle: the string for the readers
 * @lock: guards @loans.  A forked child never waits for it: the thread that
 *	held it may not exist there.
 * @loans: loans not yet committed or aborted
 */
struct ta_writer {
	struct ta_port *port;
	struct ta_alive alive;
	enum ta_engine_kind engine;
	uint64_t arena;
	char handle[TA_HANDLE_MAX];
	pthread_mutex_t lock;
	LIST_HEAD(, loan) loans;
};

/* A command to the engine; -EIO in a forked child. */
static inline int ta_writer_call(struct ta_writer *writer, unsigned int cmd,
				 void *arg)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	return writer->port->ops->call(writer->port, cmd, arg);
}

#endif /* TA_WRITER_H */
