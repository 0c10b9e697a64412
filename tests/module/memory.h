/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel holds, precisely enough to see one page a round go missing. */
#ifndef TESTS_MODULE_MEMORY_H
#define TESTS_MODULE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_CACHES 512
#define CACHE_NAME 64

/**
 * struct memory - what is in use at one moment
 * @free_pages: pages free, those on per-cpu lists included
 * @nr_caches: slab caches
 * @name: a cache
 * @objects: objects allocated from it
 */
struct memory {
	long free_pages;
	size_t nr_caches;
	char name[MAX_CACHES][CACHE_NAME];
	long objects[MAX_CACHES];
};

/*
 * Drops what the kernel merely keeps for later, then counts.  False, with a
 * line on standard output, when something cannot be read.
 */
bool memory_measure(struct memory *memory);

/* Objects of the cache, 0 when there is no such cache. */
long memory_objects(const struct memory *memory, const char *cache);

#endif /* TESTS_MODULE_MEMORY_H */
