/* SPDX-License-Identifier: MIT */
/*
 * Tells the process that made an object from a forked child that inherited it.
 *
 * A process id cannot do that: a child in a new pid namespace, or a grandchild
 * after the id has been reused, may have the same one.  So each object owns a
 * page with a non-zero word that the kernel hands to forked children as zeros.
 * A child that shares the address space (vfork, threads) shares the page too
 * and counts, rightly, as the same process.
 */
#ifndef TA_ALIVE_H
#define TA_ALIVE_H

#include <stdbool.h>

struct ta_alive {
	unsigned int *word;
};

/* 0 or -errno: without the kernel's help an object cannot be had. */
int ta_alive_init(struct ta_alive *alive);
void ta_alive_destroy(struct ta_alive *alive);

/*
 * False in a forked child.  Relaxed: only the kernel ever clears the word, in a
 * process that has no other thread yet.
 */
static inline bool ta_is_alive(const struct ta_alive *alive)
{
	return __atomic_load_n(alive->word, __ATOMIC_RELAXED) != 0;
}

#endif /* TA_ALIVE_H */
