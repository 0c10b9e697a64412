/* SPDX-License-Identifier: MIT */
/*
 * The tensor's bytes: made, marked, read and checked.  Also built as a shared
 * object, for processes in Python, which then do this at the same speed.
 */
#ifndef BENCH_TOUCH_H
#define BENCH_TOUCH_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that no shorter pattern makes; the same for the same seed. */
void touch_fill(void *data, size_t nbytes, uint64_t seed);
/* Marks the first and the last eight bytes; @nbytes is at least eight. */
void touch_stamp(void *data, size_t nbytes, uint64_t stamp);
/* Whether they are marked so. */
int touch_stamped(const void *data, size_t nbytes, uint64_t stamp);
/* Reads every byte once, as fast as one core can. */
uint64_t touch_read(const void *data, size_t nbytes);
/* A checksum. */
uint64_t touch_digest(const void *data, size_t nbytes);

#endif /* BENCH_TOUCH_H */
