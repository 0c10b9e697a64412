/* SPDX-License-Identifier: MIT */
/*
 * Threads that sleep until somebody has work for several.
 *
 * A caller of ta_pool_run() works itself, and threads of the pool that are
 * awake in time help.  Nobody waits for a thread to start: one that comes when
 * all is taken goes back to sleep.  Several callers at once share the threads.
 */
#ifndef TA_COPY_POOL_H
#define TA_COPY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "copy_cpus.h"

/* Besides the caller. */
#define TA_POOL_MAX 63

struct ta_pool;

/* NULL: no memory.  @cpus: where its threads run; NULL: where the caller may. */
struct ta_pool *ta_pool_create(const struct ta_cpus *cpus);

/*
 * Makes it @nr threads, at most TA_POOL_MAX, or as many as can be had, and says
 * how many that is.  Threads too many end: those in the middle of some work
 * first come to its end, and this waits for them.  Not from two threads at once.
 */
uint32_t ta_pool_resize(struct ta_pool *pool, uint32_t nr);

/*
 * Calls @work(@arg) here and in up to @helpers threads, and returns when all
 * those calls have.  @work does a share until nothing is left to take, and says
 * whether it did anything.  What it wrote is visible here afterwards.
 */
void ta_pool_run(struct ta_pool *pool, uint32_t helpers,
		 bool (*work)(void *arg), void *arg);

/*
 * Nobody may be in ta_pool_run().  @forked: in a child, which has a copy of the
 * pool but none of its threads.
 */
void ta_pool_destroy(struct ta_pool *pool, bool forked);

#endif /* TA_COPY_POOL_H */
