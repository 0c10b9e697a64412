/* SPDX-License-Identifier: MIT */
/* How a copy is done, by its size. */
#ifndef TA_COPY_PLAN_H
#define TA_COPY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct ta_copy_plan - how copies of some sizes are done
 * @from: the least of these sizes, bytes
 * @threads: how many take part at most, the caller's included
 * @chunk: bytes that each takes at a time, a power of two; 0 where one thread
 *	takes all
 * @stream: with stores that bypass the cache, else with memcpy()
 */
struct ta_copy_plan {
	size_t from;
	uint32_t threads;
	size_t chunk;
	bool stream;
};

/* The plan for @n bytes. */
const struct ta_copy_plan *ta_copy_plan_for(size_t n);

#endif /* TA_COPY_PLAN_H */
