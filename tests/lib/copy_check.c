// SPDX-License-Identifier: MIT
/* Kernels checked byte by byte; see copy_check.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "copy_check.h"

#define PAGE ((size_t)4096)
#define MARGIN 128
#define CANARY 0xa5

static char said[256];

static const char *wrong(const struct ta_copy_kernel *kernel, size_t n,
			 size_t to, size_t from, const char *what, size_t where)
{
	snprintf(said, sizeof(said),
		 "%s: %zu bytes to %zu from %zu: %s at byte %zd", kernel->name,
		 n, to, from, what, (ssize_t)where);
	return said;
}

/* Bytes that differ from their neighbours, from the canary and by page. */
static uint8_t source_byte(size_t i)
{
	uint8_t byte = (uint8_t)(i * 7 + i / 251 + i / PAGE * 13);

	return byte == CANARY ? 0 : byte;
}

struct bench {
	uint8_t *src;
	uint8_t *dst;
	size_t room;
};

/* Both ends of both lie next to pages that are not there. */
static uint8_t *fence_in(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + 2 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + PAGE, bytes, PROT_READ | PROT_WRITE))
		abort();
	return p + PAGE;
}

static void open_bench(struct bench *b, size_t pages)
{
	size_t i;

	b->room = pages * PAGE;
	b->src = fence_in(b->room);
	b->dst = fence_in(b->room);
	for (i = 0; i < b->room; i++)
		b->src[i] = source_byte(i);
	memset(b->dst, CANARY, b->room);
}

static void close_bench(struct bench *b)
{
	munmap(b->src - PAGE, b->room + 2 * PAGE);
	munmap(b->dst - PAGE, b->room + 2 * PAGE);
}

/* The first byte that is not the canary, or @n. */
static size_t canaries(const uint8_t *p, size_t n)
{
	static uint8_t all[MARGIN];
	size_t i = 0;

	if (!all[0])
		memset(all, CANARY, sizeof(all));
	if (!memcmp(p, all, n))
		return n;
	while (p[i] == CANARY)
		i++;
	return i;
}

/* One copy; leaves the destination full of canaries again. */
static const char *check_one(struct bench *b,
			     const struct ta_copy_kernel *kernel, size_t n,
			     size_t to, size_t from)
{
	const uint8_t *dst = b->dst + to, *src = b->src + from;
	size_t low = to < MARGIN ? to : MARGIN;
	size_t high = b->room - to - n;
	const char *text = NULL;
	size_t i;

	if (high > MARGIN)
		high = MARGIN;
	kernel->copy(b->dst + to, src, n);
	kernel->fence();
	if (memcmp(dst, src, n)) {
		for (i = 0; dst[i] == src[i]; i++)
			;
		text = wrong(kernel, n, to, from, "wrong", i);
	}
	i = canaries(dst - low, low);
	if (i < low)
		text = wrong(kernel, n, to, from, "a canary died", i - low);
	i = canaries(dst + n, high);
	if (i < high)
		text = wrong(kernel, n, to, from, "a canary died", n + i);
	memset(b->dst + to, CANARY, n);
	return text;
}

const char *check_short_copies(const struct ta_copy_kernel *kernel)
{
	static const size_t from[] = { 0, 1, 3, 8, 15, 16, 31, 32, 47, 63 };
	const char *text = NULL;
	size_t n, to, f;
	struct bench b;

	open_bench(&b, 1);
	for (n = 0; n <= 2 * TA_COPY_LINE + 1 && !text; n++)
		for (to = 0; to <= TA_COPY_LINE && !text; to++)
			for (f = 0; f < sizeof(from) / sizeof(from[0]) && !text;
			     f++)
				text = check_one(&b, kernel, n, MARGIN + to,
						 from[f]);
	close_bench(&b);
	return text;
}

const char *check_long_copies(const struct ta_copy_kernel *kernel)
{
	/* One more or less than lines, pages, and pages taken together. */
	static const size_t around[] = { 256,	   512,	     PAGE,
					 2 * PAGE, 3 * PAGE, 4 * PAGE,
					 5 * PAGE, 8 * PAGE, 12 * PAGE };
	static const size_t off[] = { 0, 1, 16, 33, 63 };
	const size_t offs = sizeof(off) / sizeof(off[0]);
	const char *text = NULL;
	size_t i, delta, to, from;
	struct bench b;

	open_bench(&b, 16);
	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (delta = 0; delta <= 2 * TA_COPY_LINE; delta++)
			for (to = 0; to < offs; to++)
				for (from = 0; from < offs && !text; from++)
					text = check_one(&b, kernel,
							 around[i] + delta -
								 TA_COPY_LINE,
							 MARGIN + off[to],
							 off[from]);
	close_bench(&b);
	return text;
}

const char *check_page_ends(const struct ta_copy_kernel *kernel)
{
	const char *text = NULL;
	size_t n, pages;
	struct bench b;

	for (pages = 1; pages <= 5; pages++) {
		open_bench(&b, pages);
		for (n = b.room - 130; n <= b.room && !text; n++) {
			text = check_one(&b, kernel, n, 0, 0);
			if (!text)
				text = check_one(&b, kernel, n, b.room - n,
						 b.room - n);
			if (!text)
				text = check_one(&b, kernel, n, 0, b.room - n);
			if (!text)
				text = check_one(&b, kernel, n, b.room - n, 0);
		}
		close_bench(&b);
	}
	return text;
}
