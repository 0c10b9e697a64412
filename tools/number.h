/* SPDX-License-Identifier: MIT */
/*
 * Numbers on the command line: decimal, nothing before or after, in range.
 */
#ifndef TARENA_NUMBER_H
#define TARENA_NUMBER_H

#include <stdint.h>

/* 0, or -1 for anything else than a number from @min to @max. */
int number_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
int number_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value);

#endif /* TARENA_NUMBER_H */
