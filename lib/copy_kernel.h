/* SPDX-License-Identifier: MIT */
/*
 * Kernels: the loops that move bytes.
 *
 * A streaming kernel writes whole cache lines with stores that bypass the
 * cache (non-temporal stores), so that a line is not read before it is written.
 * That saves a third of the memory traffic.
 */
#ifndef TA_COPY_KERNEL_H
#define TA_COPY_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* What a streaming kernel writes at a time, aligned to its size. */
#define TA_COPY_LINE 64

/**
 * struct ta_copy_kernel - one way to copy
 * @name: for people, and for tests to pick it
 * @usable: whether this processor, and its operating system, can
 * @copy: copies @n bytes that do not overlap, of any alignment
 * @fence: makes what @copy wrote visible before whatever this thread stores
 *	later.  Once after many @copy, before anyone is told that they are done.
 */
struct ta_copy_kernel {
	const char *name;
	bool (*usable)(void);
	void (*copy)(void *dst, const void *src, size_t n);
	void (*fence)(void);
};

/* The C library's memcpy(), which is everywhere. */
extern const struct ta_copy_kernel ta_copy_plain;

/* This architecture's streaming kernels, best first; ends with a NULL name. */
extern const struct ta_copy_kernel ta_copy_streaming[];

/* The best streaming kernel that is usable here, or &ta_copy_plain. */
const struct ta_copy_kernel *ta_copy_best(void);

#endif /* TA_COPY_KERNEL_H */
