/* SPDX-License-Identifier: MIT */
/* The loop that all streaming kernels have in common. */
#ifndef TA_COPY_STREAM_H
#define TA_COPY_STREAM_H

#include <stdint.h>
#include <string.h>

#include "copy_kernel.h"

/*
 * Lines are written through four pages at once, one in each in turn.  A
 * prefetcher follows one stream a page and stops at its end, so with one page
 * at a time a core waits for memory more than half of its time.
 */
#define TA_STREAM_PAGE 4096
#define TA_STREAM_BLOCK (4 * TA_STREAM_PAGE)

/*
 * TA_DEFINE_STREAM(NAME, TARGET, LINE) makes a kernel's copy function out of
 * LINE(to, from), which copies one line to where a line begins.
 *
 * It is a macro because vectors must be compiled for their instruction set
 * together with all that they are inlined into: that is what TARGET says.
 */
#define TA_DEFINE_STREAM(name, target, line)                                   \
	target static void name(void *dst, const void *src, size_t n)          \
	{                                                                      \
		size_t head = -(uintptr_t)dst % TA_COPY_LINE;                  \
		const uint8_t *from = src;                                     \
		uint8_t *to = dst;                                             \
		size_t i;                                                      \
                                                                               \
		if (head > n)                                                  \
			head = n;                                              \
		memcpy(to, from, head);                                        \
		to += head;                                                    \
		from += head;                                                  \
		n -= head;                                                     \
		while (n >= TA_STREAM_BLOCK) {                                 \
			for (i = 0; i < TA_STREAM_PAGE; i += TA_COPY_LINE) {   \
				line(to + i, from + i);                        \
				line(to + TA_STREAM_PAGE + i,                  \
				     from + TA_STREAM_PAGE + i);               \
				line(to + 2 * TA_STREAM_PAGE + i,              \
				     from + 2 * TA_STREAM_PAGE + i);           \
				line(to + 3 * TA_STREAM_PAGE + i,              \
				     from + 3 * TA_STREAM_PAGE + i);           \
			}                                                      \
			to += TA_STREAM_BLOCK;                                 \
			from += TA_STREAM_BLOCK;                               \
			n -= TA_STREAM_BLOCK;                                  \
		}                                                              \
		for (; n >= TA_COPY_LINE; n -= TA_COPY_LINE) {                 \
			line(to, from);                                        \
			to += TA_COPY_LINE;                                    \
			from += TA_COPY_LINE;                                  \
		}                                                              \
		memcpy(to, from, n);                                           \
	}

#endif /* TA_COPY_STREAM_H */
