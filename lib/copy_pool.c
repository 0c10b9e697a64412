// SPDX-License-Identifier: MIT
/*
 * The threads; see copy_pool.h.
 *
 * A piece of work is a job.  Threads enter and leave it through its gate, a
 * word that counts those inside and has a bit for "open".  Only the caller
 * opens and closes it, and the others look at the job only when they entered
 * while it was open; so a thread that comes too late, even long after, meets a
 * closed gate and touches nothing.
 *
 * Barriers.  Three words are shared without a lock, and three pairs order what
 * they stand for:
 *
 *	opening the gate	release -> acquire	entering it
 *		What the job is was written before; who enters and finds it
 *		open reads it after.  Others may have entered or left between:
 *		each of them adds to the word, which keeps the pair together.
 *	leaving the gate	release -> acquire	seeing nobody inside
 *		What a thread did in a job, the caller sees; and the job is not
 *		written anew while anybody reads it.
 *	opening, then @round	seq_cst -> seq_cst	@round, then the gates
 *		A thread that has read the new round finds the gate open; one
 *		that has read the old one does not fall asleep on it.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copy_pool.h"
#include "thread.h"

/* Callers that are helped at one time; further ones work alone. */
#define JOBS 4
#define OPEN (1U << 31)
/*
 * To wake a processor up can take as long as to copy 200 KiB.  So nobody wakes
 * more threads than this: those wake the next, and the caller gets to work.
 */
#define WAKES 2

/**
 * struct job - a piece of work
 * @gate: OPEN, and the number of threads inside; a futex
 * @uncalled: threads that may still be woken for it.  Relaxed: a number, and
 *	touched only by the caller and by those inside.
 * @taken: a caller owns it.  Taking it is an acquire and pairs with the release
 *	of giving it back: owners write to the job one after the other.
 * @helpers: most threads that may be inside
 */
struct job {
	_Atomic uint32_t gate;
	_Atomic uint32_t uncalled;
	atomic_bool taken;
	uint32_t helpers;
	bool (*work)(void *arg);
	void *arg;
};

struct worker {
	struct ta_pool *pool;
	pthread_t thread;
};

/**
 * struct ta_pool - see copy_pool.h
 * @round: changes when there is something new; a futex on which threads sleep
 * @wanted: threads that may stay: a worker whose index is not below it ends.
 *	Changed before @round, and read after it, like a gate.
 * @nr: threads there are, known to ta_pool_resize() only
 * @pinned: whether to move threads to @cpus
 */
struct ta_pool {
	_Atomic uint32_t round;
	_Atomic uint32_t wanted;
	struct job job[JOBS];
	struct worker worker[TA_POOL_MAX];
	uint32_t nr;
	bool pinned;
	struct ta_cpus cpus;
};

/* Returns at once unless *@word is @value; may return for no reason, too. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t nr)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nr, NULL, NULL, 0);
}

/* Wakes the next threads for a job. */
static void call_helpers(struct ta_pool *pool, struct job *job)
{
	uint32_t left =
		atomic_load_explicit(&job->uncalled, memory_order_relaxed);
	uint32_t nr;

	do {
		nr = left < WAKES ? left : WAKES;
		if (!nr)
			return;
	} while (!atomic_compare_exchange_weak_explicit(
		&job->uncalled, &left, left - nr, memory_order_relaxed,
		memory_order_relaxed));
	futex_wake(&pool->round, nr);
}

static void leave(struct job *job)
{
	/* Release: pairs with the acquire in close_gate(). */
	if (atomic_fetch_sub_explicit(&job->gate, 1, memory_order_release) == 1)
		futex_wake(&job->gate, INT_MAX);
}

static bool help(struct ta_pool *pool, struct job *job)
{
	bool helped = false;
	uint32_t gate;

	/* Only to save the rest, which is what counts. */
	if (!(atomic_load_explicit(&job->gate, memory_order_relaxed) & OPEN))
		return false;
	/* Acquire: pairs with the release in ta_pool_run(). */
	gate = atomic_fetch_add_explicit(&job->gate, 1, memory_order_acquire);
	if (gate & OPEN && (gate & ~OPEN) < job->helpers) {
		call_helpers(pool, job);
		helped = job->work(job->arg);
	}
	leave(job);
	return helped;
}

static void *serve(void *arg)
{
	const struct worker *self = arg;
	struct ta_pool *pool = self->pool;
	uint32_t index = (uint32_t)(self - pool->worker);
	uint32_t round, i;
	bool helped;

	prctl(PR_SET_NAME, "ta-copy");
	/* If it may not, it copies from where it is. */
	if (pool->pinned)
		ta_cpus_move_to(&pool->cpus);
	for (;;) {
		/*
		 * Before looking: what comes after this ends the sleep.  Pairs
		 * with the atomic_fetch_add() in ta_pool_run() and in
		 * ta_pool_resize().
		 */
		round = atomic_load(&pool->round);
		if (index >= atomic_load(&pool->wanted))
			return NULL;
		helped = false;
		for (i = 0; i < JOBS; i++)
			helped |= help(pool, &pool->job[i]);
		if (!helped)
			futex_wait(&pool->round, round);
	}
}

struct ta_pool *ta_pool_create(const struct ta_cpus *cpus)
{
	struct ta_pool *pool = calloc(1, sizeof(*pool));

	if (pool && cpus) {
		pool->pinned = true;
		pool->cpus = *cpus;
	}
	return pool;
}

static bool start(struct ta_pool *pool, uint32_t index)
{
	struct worker *worker = &pool->worker[index];

	worker->pool = pool;
	return !ta_thread_start(&worker->thread, serve, worker);
}

uint32_t ta_pool_resize(struct ta_pool *pool, uint32_t nr)
{
	if (nr < pool->nr) {
		/* In this order: see serve(). */
		atomic_store(&pool->wanted, nr);
		atomic_fetch_add(&pool->round, 1);
		futex_wake(&pool->round, INT_MAX);
		while (pool->nr > nr)
			pthread_join(pool->worker[--pool->nr].thread, NULL);
		return nr;
	}
	atomic_store(&pool->wanted, nr);
	while (pool->nr < nr && start(pool, pool->nr))
		pool->nr++;
	return pool->nr;
}

static struct job *take_job(struct ta_pool *pool)
{
	uint32_t i;

	/* Acquire: pairs with the release at the end of ta_pool_run(). */
	for (i = 0; i < JOBS; i++)
		if (!atomic_exchange_explicit(&pool->job[i].taken, true,
					      memory_order_acquire))
			return &pool->job[i];
	return NULL;
}

/* Lets nobody in any more, and returns when nobody is inside. */
static void close_gate(struct job *job)
{
	uint32_t inside;

	/* Relaxed: who is inside is counted in the same word. */
	atomic_fetch_and_explicit(&job->gate, ~OPEN, memory_order_relaxed);
	/* Acquire: pairs with the release in leave(), of all who have left. */
	while ((inside =
			atomic_load_explicit(&job->gate, memory_order_acquire)))
		futex_wait(&job->gate, inside);
}

void ta_pool_run(struct ta_pool *pool, uint32_t helpers,
		 bool (*work)(void *arg), void *arg)
{
	struct job *job = take_job(pool);

	if (!job) {
		work(arg);
		return;
	}
	job->helpers = helpers;
	job->work = work;
	job->arg = arg;
	atomic_store_explicit(&job->uncalled, helpers, memory_order_relaxed);
	/* Release: pairs with the acquire in help(). */
	atomic_fetch_or_explicit(&job->gate, OPEN, memory_order_release);
	/* In this order: see serve(). */
	atomic_fetch_add(&pool->round, 1);
	call_helpers(pool, job);
	work(arg);
	close_gate(job);
	/* Release: pairs with the acquire in take_job(). */
	atomic_store_explicit(&job->taken, false, memory_order_release);
}

void ta_pool_destroy(struct ta_pool *pool, bool forked)
{
	if (!pool)
		return;
	if (!forked)
		ta_pool_resize(pool, 0);
	free(pool);
}
