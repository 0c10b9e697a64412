// SPDX-License-Identifier: MIT
/* See copies.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "contender.h"
#include "copies.h"

#define PAGE 4096
/* Shares are whole groups of pages, so that no two threads write to one. */
#define SHARE_ALIGN (4 * PAGE)

/**
 * struct copies - the threads
 * @max: how many, with the caller
 * @start, @end: where all meet, before and after
 * @dst, @src, @nbytes, @threads, @how: the copy under way
 */
struct copies {
	unsigned int max;
	pthread_barrier_t start;
	pthread_barrier_t end;
	char *dst;
	const char *src;
	size_t nbytes;
	unsigned int threads;
	enum copies_how how;
};

struct helper {
	struct copies *copies;
	unsigned int number;
};

#ifdef __x86_64__
/*
 * Loads and stores of one vector, over and over.  One stream of a thread keeps
 * fewer of memory's banks busy than four do; see COPIES_INTERLEAVED.
 */
#define COPY_LOOP(name, set, vector, load, store)                              \
	__attribute__((target(set))) static void name(                         \
		char *dst, const char *src, size_t nbytes)                     \
	{                                                                      \
		size_t i;                                                      \
                                                                               \
		for (i = 0; i < nbytes; i += sizeof(vector))                   \
			store((vector *)(dst + i),                             \
			      load((const vector *)(src + i)));                \
		_mm_sfence();                                                  \
	}

#define INTERLEAVED_LOOP(name, set, vector, load, store)                       \
	__attribute__((target(set))) static void name(                         \
		char *dst, const char *src, size_t nbytes)                     \
	{                                                                      \
		size_t page, i, at;                                            \
                                                                               \
		for (at = 0; at < nbytes; at += 4 * PAGE)                      \
			for (i = at; i < at + PAGE; i += sizeof(vector))       \
				for (page = i; page < i + 4 * PAGE;            \
				     page += PAGE)                             \
					store((vector *)(dst + page),          \
					      load((const vector *)(src +      \
								    page)));   \
		_mm_sfence();                                                  \
	}

INTERLEAVED_LOOP(interleave_512, "avx512f", __m512i, _mm512_loadu_si512,
		 _mm512_stream_si512)
INTERLEAVED_LOOP(interleave_256, "avx2", __m256i, _mm256_loadu_si256,
		 _mm256_stream_si256)
INTERLEAVED_LOOP(interleave_128, "sse2", __m128i, _mm_loadu_si128,
		 _mm_stream_si128)
COPY_LOOP(stream_512, "avx512f", __m512i, _mm512_loadu_si512,
	  _mm512_stream_si512)
COPY_LOOP(stream_256, "avx2", __m256i, _mm256_loadu_si256, _mm256_stream_si256)
COPY_LOOP(stream_128, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128)
COPY_LOOP(store_512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_store_si512)
COPY_LOOP(store_256, "avx2", __m256i, _mm256_loadu_si256, _mm256_store_si256)
COPY_LOOP(store_128, "sse2", __m128i, _mm_loadu_si128, _mm_store_si128)

const char *copies_vectors(void)
{
	return __builtin_cpu_supports("avx512f") ? "AVX-512" :
	       __builtin_cpu_supports("avx2")	 ? "AVX2" :
						   "SSE2";
}

typedef void copy_loop(char *dst, const char *src, size_t nbytes);

/* @dst and @nbytes are multiples of 64, or of four pages if interleaved. */
static void vectors(char *dst, const char *src, size_t nbytes,
		    enum copies_how how)
{
	static copy_loop *const loop[COPIES_KINDS][3] = {
		[COPIES_ORDINARY] = { store_512, store_256, store_128 },
		[COPIES_STREAMING] = { stream_512, stream_256, stream_128 },
		[COPIES_INTERLEAVED] = { interleave_512, interleave_256,
					 interleave_128 },
	};
	size_t width = __builtin_cpu_supports("avx512f") ? 0 :
		       __builtin_cpu_supports("avx2")	 ? 1 :
							   2;

	loop[how][width](dst, src, nbytes);
}
#else
const char *copies_vectors(void)
{
	return NULL;
}

static void vectors(char *dst, const char *src, size_t nbytes,
		    enum copies_how how)
{
	(void)how;
	memcpy(dst, src, nbytes);
}
#endif

static void copy_part(char *dst, const char *src, size_t nbytes,
		      enum copies_how how)
{
	static const size_t unit[COPIES_KINDS] = {
		[COPIES_ORDINARY] = 64,
		[COPIES_STREAMING] = 64,
		[COPIES_INTERLEAVED] = SHARE_ALIGN,
	};
	size_t whole = unit[how] ? nbytes / unit[how] * unit[how] : 0;

	if (whole)
		vectors(dst, src, whole, how);
	memcpy(dst + whole, src + whole, nbytes - whole);
}

static void do_share(const struct copies *c, unsigned int number)
{
	size_t share = (c->nbytes / c->threads + SHARE_ALIGN - 1) /
		       SHARE_ALIGN * SHARE_ALIGN;
	size_t from = number * share;

	if (number >= c->threads || from >= c->nbytes)
		return;
	if (share > c->nbytes - from || number == c->threads - 1)
		share = c->nbytes - from;
	copy_part(c->dst + from, c->src + from, share, c->how);
}

static void *help(void *arg)
{
	struct helper *h = arg;

	for (;;) {
		pthread_barrier_wait(&h->copies->start);
		do_share(h->copies, h->number);
		pthread_barrier_wait(&h->copies->end);
	}
	return NULL;
}

static unsigned int cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

struct copies *copies_start(void)
{
	struct copies *c = calloc(1, sizeof(*c));
	struct helper *h;
	pthread_t thread;
	unsigned int i;

	if (!c)
		die("copies", ENOMEM);
	c->max = cores();
	pthread_barrier_init(&c->start, NULL, c->max);
	pthread_barrier_init(&c->end, NULL, c->max);
	for (i = 1; i < c->max; i++) {
		h = calloc(1, sizeof(*h));
		if (!h)
			die("copies", ENOMEM);
		h->copies = c;
		h->number = i;
		if (pthread_create(&thread, NULL, help, h))
			die("copies: no thread", 0);
	}
	return c;
}

void copies_run(struct copies *c, void *dst, const void *src, size_t nbytes,
		unsigned int threads, enum copies_how how)
{
	c->dst = dst;
	c->src = src;
	c->nbytes = nbytes;
	c->threads = threads;
	c->how = how;
	/* One is no reason to wake the others. */
	if (threads == 1) {
		do_share(c, 0);
		return;
	}
	pthread_barrier_wait(&c->start);
	do_share(c, 0);
	pthread_barrier_wait(&c->end);
}

unsigned int copies_max(const struct copies *c)
{
	return c->max;
}
