/* SPDX-License-Identifier: MIT */
/* How a copy is done, by its size. */
#ifndef TA_COPY_PLAN_H
#define TA_COPY_PLAN_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct ta_copy_plan - how copies of some sizes are done
 * @from: the least of these sizes, bytes
 * @threads: how many take part, the caller's included.  1: with memcpy().  More:
 *	each with streaming stores, unless only one can be had.
 * @chunk: bytes that a thread takes at a time, a power of two
 */
struct ta_copy_plan {
	size_t from;
	uint32_t threads;
	size_t chunk;
};

/* The plan for @n bytes. */
const struct ta_copy_plan *ta_copy_plan_for(size_t n);

#endif /* TA_COPY_PLAN_H */
