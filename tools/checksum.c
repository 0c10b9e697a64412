// SPDX-License-Identifier: MIT
/*
 * The checksum; see checksum.h.
 */
#include <xxhash.h>

#include "checksum.h"

uint64_t checksum(const void *data, size_t nbytes)
{
	return XXH3_64bits(data, nbytes);
}
