// SPDX-License-Identifier: MIT
/*
 * The floors of the one copy: the C library's memcpy() into resident shared
 * memory, as a slot is, and the best that the machine can do in any way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "contender.h"
#include "copies.h"

/* Copies of each kind that the choice of the best is made from. */
#define TRIES 5
#define HUGE_BYTES ((size_t)2 << 20)

/**
 * struct copying - the state
 * @shared: shared memory
 * @huge: private memory, in huge pages where there are any
 * @dst, @threads, @how: the best copy of the size at hand
 * @best_for: which size that is
 */
struct copying {
	void *shared;
	void *huge;
	struct copies *copies;
	void *dst;
	unsigned int threads;
	enum copies_how how;
	size_t best_for;
};

static void *memory(size_t nbytes, int flags)
{
	void *data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
			  flags | MAP_ANONYMOUS, -1, 0);

	if (data == MAP_FAILED)
		die("memory for a copy", errno);
	return data;
}

static void *resident(void *data, size_t nbytes)
{
	/* Advice that a kernel need not take, and then the touch. */
	madvise(data, nbytes, MADV_HUGEPAGE);
	memset(data, 1, nbytes);
	return data;
}

static void open_memcpy(struct end *end)
{
	struct copying *c = calloc(1, sizeof(*c));

	if (!c)
		die("memcpy", ENOMEM);
	c->shared =
		resident(memory(end->max_bytes, MAP_SHARED), end->max_bytes);
	end->state = c;
}

static void open_best(struct end *end)
{
	struct copying *c;
	char *room;

	open_memcpy(end);
	c = end->state;
	room = memory(end->max_bytes + HUGE_BYTES, MAP_PRIVATE);
	room += -(uintptr_t)room % HUGE_BYTES;
	c->huge = resident(room, end->max_bytes);
	c->copies = copies_start();
}

static void put_memcpy(struct end *end, const void *src, size_t nbytes)
{
	struct copying *c = end->state;

	memcpy(c->shared, src, nbytes);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + now.tv_nsec / 1e9;
}

/* The shortest of some. */
static double time_copy(struct copying *c, void *dst, const void *src,
			size_t nbytes, unsigned int threads,
			enum copies_how how)
{
	double best = 1e9, took;
	int i;

	for (i = 0; i < TRIES; i++) {
		took = seconds();
		copies_run(c->copies, dst, src, nbytes, threads, how);
		took = seconds() - took;
		if (took < best)
			best = took;
	}
	return best;
}

static void consider(struct copying *c, void *dst, const void *src,
		     size_t nbytes, unsigned int threads, double *best)
{
	enum copies_how how;
	double took;

	for (how = 0; how < COPIES_KINDS; how++) {
		took = time_copy(c, dst, src, nbytes, threads, how);
		if (took >= *best)
			continue;
		*best = took;
		c->dst = dst;
		c->threads = threads;
		c->how = how;
	}
}

/* 1, 2, 4... threads, and all of them. */
static void choose(struct copying *c, const void *src, size_t nbytes)
{
	unsigned int max = copies_max(c->copies), threads = 1;
	double best = 1e9;

	while (threads < max) {
		consider(c, c->shared, src, nbytes, threads, &best);
		consider(c, c->huge, src, nbytes, threads, &best);
		threads *= 2;
	}
	consider(c, c->shared, src, nbytes, max, &best);
	consider(c, c->huge, src, nbytes, max, &best);
	c->best_for = nbytes;
}

static void prepare_best(struct end *end, const void *src, size_t nbytes)
{
	static const char *const how[COPIES_KINDS] = {
		[COPIES_LIBC] = "memcpy()",
		[COPIES_ORDINARY] = "ordinary stores",
		[COPIES_STREAMING] = "streaming stores",
		[COPIES_INTERLEAVED] = "streaming stores to 4 pages in turn",
	};
	struct copying *c = end->state;

	if (c->best_for == nbytes)
		return;
	choose(c, src, nbytes);
	snprintf(end->about, sizeof(end->about), "%u thread%s, %s to %s",
		 c->threads, c->threads == 1 ? "" : "s", how[c->how],
		 c->dst == c->huge ? "private memory, huge pages if any" :
				     "shared memory");
}

static void put_best(struct end *end, const void *src, size_t nbytes)
{
	struct copying *c = end->state;

	copies_run(c->copies, c->dst, src, nbytes, c->threads, c->how);
}

const struct contender contender_memcpy = {
	.name = "memcpy",
	.about = "floor: memcpy() by one thread into resident shared memory",
	.floor = true,
	.copies_put = 1,
	.open_writer = open_memcpy,
	.put = put_memcpy,
};

const struct contender contender_best_copy = {
	.name = "best copy",
	.about = "floor: the fastest of memcpy(), ordinary and streaming "
		 "stores, to shared and private memory, by 1 thread to all",
	.floor = true,
	.copies_put = 1,
	.open_writer = open_best,
	.prepare = prepare_best,
	.put = put_best,
};
