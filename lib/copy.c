// SPDX-License-Identifier: MIT
/* The one copy of the bytes: who does how much of it; see copy.h. */
#include "copy.h"
#include "copy_gather.h"

/**
 * struct copy - a copy by several threads
 * @first: where the first part begins
 * @dst: where to
 * @n: bytes
 * @lead: bytes from the last multiple of @chunk to @dst.  Chunks begin at
 *	multiples, so that no line or page is written by two threads.
 * @chunk: bytes a thread takes at a time
 * @next: chunks that have been taken
 */
struct copy {
	const struct ta_part *parts;
	uint8_t *dst;
	size_t n;
	size_t lead;
	size_t chunk;
	const struct ta_copy_kernel *kernel;
	_Atomic size_t next;
};

/* What each thread does. */
static bool copy_chunks(void *arg)
{
	struct copy *copy = arg;
	struct ta_cursor cursor = { .part = copy->parts };
	size_t chunks = (copy->lead + copy->n - 1) / copy->chunk + 1;
	size_t i, from, to;
	bool any = false;

	for (;;) {
		i = atomic_fetch_add_explicit(&copy->next, 1,
					      memory_order_relaxed);
		if (i >= chunks)
			break;
		from = i ? i * copy->chunk - copy->lead : 0;
		to = i + 1 < chunks ? (i + 1) * copy->chunk - copy->lead :
				      copy->n;
		ta_gather(&cursor, copy->dst + from, from, to, copy->kernel);
		any = true;
	}
	if (any)
		copy->kernel->fence();
	return any;
}

static void copy_alone(void *dst, const struct ta_part *parts, size_t n,
		       const struct ta_copy_kernel *kernel)
{
	struct ta_cursor cursor = { .part = parts };

	ta_gather(&cursor, dst, 0, n, kernel);
	kernel->fence();
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Makes the pool when there is none.  Its threads stay where they are put then:
 * on the processors that this thread may use and that are next to the slots.
 */
static struct ta_pool *get_pool(struct ta_copier *copier)
{
	struct ta_pool *pool = atomic_load(&copier->pool);
	struct ta_cpus_found found;

	if (pool && atomic_load(&copier->limit))
		return pool;
	ta_cpus_find(copier->node, &found);
	if (!atomic_load(&copier->limit))
		atomic_store(&copier->limit,
			     least(found.threads, TA_COPY_MAX_THREADS));
	if (pool || atomic_load(&copier->limit) == 1)
		return pool;
	pool = ta_pool_create(found.on_node ? &found.cpus : NULL);
	atomic_store(&copier->pool, pool);
	return pool;
}

/*
 * As many threads as are wanted, and not more than there may be.  Where they
 * cannot be had, that is not tried every time.
 */
static void grow(struct ta_copier *copier, uint32_t wanted)
{
	struct ta_pool *pool = get_pool(copier);
	uint32_t threads = atomic_load(&copier->threads);
	uint32_t limit = atomic_load(&copier->limit);

	wanted = least(wanted, limit);
	if (wanted <= threads && threads <= limit)
		return;
	threads = pool ? ta_pool_resize(pool, wanted - 1) + 1 : 1;
	atomic_store(&copier->threads, threads);
	if (threads < wanted)
		atomic_store(&copier->limit, threads);
}

/* How many threads can take part, of @wanted. */
static uint32_t get_threads(struct ta_copier *copier, uint32_t wanted)
{
	uint32_t limit = atomic_load(&copier->limit);

	if (wanted == 1 || limit == 1)
		return 1;
	if (!limit || least(wanted, limit) > atomic_load(&copier->threads)) {
		pthread_mutex_lock(&copier->lock);
		grow(copier, wanted);
		pthread_mutex_unlock(&copier->lock);
	}
	return least(wanted, least(atomic_load(&copier->limit),
				   atomic_load(&copier->threads)));
}

void ta_copy_parts(struct ta_copier *copier, void *dst,
		   const struct ta_part *parts, size_t n)
{
	const struct ta_copy_plan *plan = copier->forced;
	struct copy copy = {
		.parts = parts,
		.dst = dst,
		.n = n,
	};
	uint32_t threads;

	if (!n)
		return;
	if (!plan)
		plan = ta_copy_plan_for(n);
	copy.kernel = plan->stream ? copier->kernel : &ta_copy_plain;
	threads = get_threads(copier, plan->threads);
	if (threads == 1) {
		copy_alone(dst, parts, n, copy.kernel);
		return;
	}
	copy.chunk = plan->chunk;
	copy.lead = (uintptr_t)dst % plan->chunk;
	ta_pool_run(atomic_load(&copier->pool), threads - 1, copy_chunks,
		    &copy);
}

void ta_copy(struct ta_copier *copier, void *dst, const void *src, size_t n)
{
	const struct ta_part part = { .data = src, .rows = 1, .row_bytes = n };

	ta_copy_parts(copier, dst, &part, n);
}

void ta_copier_init(struct ta_copier *copier, uint32_t threads, int node)
{
	*copier = (struct ta_copier){
		.node = node,
		.kernel = ta_copy_best(),
		.limit = threads,
		.threads = 1,
	};
	pthread_mutex_init(&copier->lock, NULL);
}

void ta_copier_destroy(struct ta_copier *copier, bool forked)
{
	ta_pool_destroy(atomic_load(&copier->pool), forked);
}

void ta_copier_set_threads(struct ta_copier *copier, uint32_t threads)
{
	struct ta_pool *pool;

	pthread_mutex_lock(&copier->lock);
	pool = atomic_load(&copier->pool);
	atomic_store(&copier->limit, threads);
	if (threads && threads < atomic_load(&copier->threads)) {
		atomic_store(&copier->threads, threads);
		ta_pool_resize(pool, threads - 1);
	}
	pthread_mutex_unlock(&copier->lock);
}
