/* SPDX-License-Identifier: MIT */
/*
 * The checksum with which writer and readers compare bytes: XXH3, 64 bits, as
 * fast as memory can be read.
 */
#ifndef TARENA_CHECKSUM_H
#define TARENA_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_NAME "XXH3-64"

uint64_t checksum(const void *data, size_t nbytes);

/* The same of bytes that come piece by piece; NULL: no memory. */
struct checksum_state;
struct checksum_state *checksum_begin(void);
void checksum_add(struct checksum_state *state, const void *data,
		  size_t nbytes);
/* Frees @state. */
uint64_t checksum_end(struct checksum_state *state);

#endif /* TARENA_CHECKSUM_H */
