/* SPDX-License-Identifier: MIT */
/*
 * The best copy that the machine can make, found by trying: ordinary and
 * cache-bypassing stores, one thread to one for each core.  Independent of the
 * library's own copy, which is judged by it.
 */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H

#include <stddef.h>

struct copies;

enum copies_how {
	COPIES_LIBC, /* memcpy(), which chooses for itself */
	COPIES_ORDINARY, /* vector stores */
	COPIES_STREAMING, /* such that bypass the cache */
	COPIES_INTERLEAVED, /* the same, to four pages in turn */
	COPIES_KINDS
};

/* Threads that wait for work; as many as the process may use cores. */
struct copies *copies_start(void);
/* Copies with @threads of them, this one included. */
void copies_run(struct copies *copies, void *dst, const void *src,
		size_t nbytes, unsigned int threads, enum copies_how how);
unsigned int copies_max(const struct copies *copies);
/* The processor's vectors: "AVX-512", say; NULL: memcpy() is used for all. */
const char *copies_vectors(void);

#endif /* BENCH_COPIES_H */
