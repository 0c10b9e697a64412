/* SPDX-License-Identifier: MIT */
/* Of tests/lib/pattern.c, without the test library that it is written for. */
#ifndef TA_KILL_PATTERN_H
#define TA_KILL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

void fill_pattern(void *data, size_t nbytes, uint64_t seed);
bool is_pattern(const void *data, size_t nbytes, uint64_t seed);
/* ta_put() of a pattern; the seed is also the tag. */
int put_pattern(struct ta_writer *writer, size_t nbytes, uint64_t seed,
		struct ta_ticket *ticket);

#endif /* TA_KILL_PATTERN_H */
