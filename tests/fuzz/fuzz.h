/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share.  A target is one LLVMFuzzerTestOneInput(): it
 * gives the bytes to what it is about and aborts when a promise is broken that
 * no sanitizer can see.  A refusal is no failure.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, \
				#condition);                                   \
			abort();                                               \
		}                                                              \
	} while (0)

/* The input, to be taken from the front; what is not there is zero. */
struct bytes {
	const uint8_t *at;
	size_t left;
};

static inline void take(struct bytes *b, void *dst, size_t size)
{
	size_t n = size < b->left ? size : b->left;

	memset(dst, 0, size);
	if (n)
		memcpy(dst, b->at, n);
	b->at += n;
	b->left -= n;
}

static inline uint8_t take_u8(struct bytes *b)
{
	uint8_t value;

	take(b, &value, sizeof(value));
	return value;
}

static inline uint64_t take_u64(struct bytes *b)
{
	uint64_t value;

	take(b, &value, sizeof(value));
	return value;
}

/*
 * A copy of exactly these bytes, so that the sanitizer sees who reads on; to be
 * freed.
 */
static inline void *exactly(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	MUST(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/*
 * The lowest descriptor that is free: the same before and after, or there is a
 * leak.
 */
static inline int next_fd(void)
{
	int fd = dup(0);

	MUST(fd >= 0);
	close(fd);
	return fd;
}

#endif /* TESTS_FUZZ_H */
