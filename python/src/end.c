// SPDX-License-Identifier: MIT
/* Writers and readers that are closed when nothing uses them any more. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

LIST_HEAD(ends, end);

/*
 * All ends of this process, for its forked children.  @life: how many forks
 * lie between this process and the one that loaded us.  @lock guards @all, and
 * is held across fork() so that a child finds the list whole.
 */
static struct {
	pthread_mutex_t lock;
	struct ends all;
	unsigned int life;
} process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.all = LIST_HEAD_INITIALIZER(process.all),
};

static void forget(struct end *end)
{
	pthread_mutex_lock(&process.lock);
	LIST_REMOVE(end, link);
	pthread_mutex_unlock(&process.lock);
}

static void close_library(struct end *end)
{
	ta_writer_close(end->writer);
	ta_reader_close(end->reader);
	end->writer = NULL;
	end->reader = NULL;
}

static void end_free(struct end *end)
{
	unsigned int i;

	/*
	 * First, or a child forked meanwhile would close it once more.  Such a
	 * child keeps the descriptors, until it ends or becomes another program.
	 */
	forget(end);
	close_library(end);
	if (!end_is_inherited(end)) {
		grave_close(&end->grave);
		pthread_mutex_destroy(&end->lock);
		pthread_mutex_destroy(&end->publishing);
	}
	for (i = 0; i < end->declines.nr; i++)
		free(end->declines.reason[i]);
	free(end);
}

static bool bury(struct dead *dead)
{
	end_free((struct end *)dead);
	return true;
}

/* Whether the writer is in this process; under the lock. */
static bool is_at_home(const char *handle)
{
	struct end *end;

	LIST_FOREACH(end, &process.all, link)
		if (end->writer && !end_is_inherited(end) &&
		    !strcmp(ta_handle(end->writer), handle))
			return true;
	return false;
}

/* Whether what it gives back waits for no other process; under the lock. */
static bool is_near(struct ta_writer *writer, struct ta_reader *reader,
		    const char *handle)
{
	return writer || ta_reader_engine(reader) == TA_ENGINE_DEVICE ||
	       is_at_home(handle);
}

struct end *end_new(struct ta_writer *writer, struct ta_reader *reader,
		    const char *handle)
{
	struct end *end = calloc(1, sizeof(*end));

	if (!end)
		return NULL;
	end->dead.bury = bury;
	end->dead.grave = &end->grave;
	/* Closing waits for streams. */
	end->dead.last = true;
	end->refs = 1;
	end->writer = writer;
	end->reader = reader;
	end->readonly = reader &&
			!(ta_reader_flags(reader) & TA_WRITABLE_READERS);
	pthread_mutex_init(&end->lock, NULL);
	pthread_mutex_init(&end->publishing, NULL);
	pthread_mutex_lock(&process.lock);
	end->life = process.life;
	grave_init(&end->grave, is_near(writer, reader, handle));
	LIST_INSERT_HEAD(&process.all, end, link);
	pthread_mutex_unlock(&process.lock);
	return end;
}

bool end_is_inherited(const struct end *end)
{
	return end->life != __atomic_load_n(&process.life, __ATOMIC_RELAXED);
}

struct end *end_get(struct end *end)
{
	__atomic_add_fetch(&end->refs, 1, __ATOMIC_RELAXED);
	return end;
}

bool end_is_shared(const struct end *end)
{
	return __atomic_load_n(&end->refs, __ATOMIC_RELAXED) > 1;
}

static bool put(struct end *end)
{
	return !__atomic_sub_fetch(&end->refs, 1, __ATOMIC_ACQ_REL);
}

void end_put(struct end *end)
{
	if (!put(end))
		return;
	if (end_is_inherited(end))
		end_free(end);
	else
		reaper_push(&end->dead);
}

void end_close(struct end *end)
{
	if (put(end))
		end_free(end);
}

struct memory *memory_of_any_reader(uintptr_t address)
{
	struct memory *found = NULL;
	struct end *end;

	pthread_mutex_lock(&process.lock);
	LIST_FOREACH(end, &process.all, link)
		if (!found && end->reader && !end_is_inherited(end))
			found = memory_at(end, address);
	pthread_mutex_unlock(&process.lock);
	return found;
}

void end_close_inherited(void)
{
	struct end *end;

	/* No other thread is here yet, and none of the parent's. */
	LIST_FOREACH(end, &process.all, link)
		if (end_is_inherited(end))
			close_library(end);
}

static void before_fork(void)
{
	pthread_mutex_lock(&process.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&process.lock);
}

static void in_child(void)
{
	pthread_mutex_init(&process.lock, NULL);
	process.life++;
	reaper_forget();
	stream_reset();
}

int end_init(void)
{
	return -pthread_atfork(before_fork, in_parent, in_child);
}
