/* SPDX-License-Identifier: MIT */
/*
 * The one copy of the bytes that a put makes.
 *
 * All of the library's bulk copying goes through here, so that how it is done
 * (stores that bypass the cache, several cores at once) is decided in one
 * place and by the size alone.
 *
 * Barriers.  Stores that bypass the cache are not ordered with others, so
 *
 *	each thread fences after the last it made, then leaves the job's gate
 *	(release); the caller sees the gate empty (acquire).  So when a copy
 *	returns, every byte is visible before whatever the caller stores next,
 *	whichever thread wrote it.
 *	What the caller does next is to publish: PUBLISH takes a lock (of the
 *	arena in the kernel; of the embedded engine's slots) that every NEXT and
 *	BORROW takes before it tells of the publication: in the same kernel, or
 *	in the server, which answers through a socket.  Release and acquire of
 *	that lock, and the answer, order the reader's loads after the stores.
 *	A GPU reads what its process has told it to read after that.
 */
#ifndef TA_COPY_H
#define TA_COPY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#include "copy_kernel.h"
#include "copy_plan.h"
#include "copy_pool.h"

/* Threads a copy may have, the caller's included. */
#define TA_COPY_MAX_THREADS (TA_POOL_MAX + 1)

/**
 * struct ta_copier - a writer's means to copy
 * @node: NUMA node of the slots, or negative
 * @kernel: for copies that stream
 * @forced: how to copy whatever the size; NULL: as the table says.  Only tests
 *	and benchmarks set this or @kernel, before the first copy.
 * @lock: guards what follows when it changes.  It is held while threads start,
 *	never during a copy, and never taken in a forked child.
 *	What follows is read without it; each is set after what it stands for:
 *	@threads after @pool, so who finds several threads finds the pool.
 * @limit: most threads a copy may have; 0: not found out yet
 * @threads: those there are, the caller's included
 * @pool: NULL until a copy wants more than one thread; stays once it is there
 */
struct ta_copier {
	int node;
	const struct ta_copy_kernel *kernel;
	const struct ta_copy_plan *forced;
	pthread_mutex_t lock;
	_Atomic uint32_t limit;
	_Atomic uint32_t threads;
	struct ta_pool *_Atomic pool;
};

/* Starts nothing.  @threads: 0 chooses by what there is when they are wanted. */
void ta_copier_init(struct ta_copier *copier, uint32_t threads, int node);
/* @forked: in a child of the process that has it. */
void ta_copier_destroy(struct ta_copier *copier, bool forked);
/* Changes what ta_copier_init() was told; ends threads that are too many. */
void ta_copier_set_threads(struct ta_copier *copier, uint32_t threads);

/*
 * Copies @n bytes from @src to @dst, which do not overlap.  @src may be NULL
 * when @n is 0.
 *
 * Several copies at once, from several threads, share the pool: its threads go
 * from one to the next when there is nothing left to take of the first.
 */
void ta_copy(struct ta_copier *copier, void *dst, const void *src, size_t n);

/* The same from @parts, which ta_parts_nbytes() says are @n bytes. */
void ta_copy_parts(struct ta_copier *copier, void *dst,
		   const struct ta_part *parts, size_t n);

#endif /* TA_COPY_H */
