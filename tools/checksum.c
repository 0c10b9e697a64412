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

static XXH3_state_t *to_xxh(struct checksum_state *state)
{
	return (XXH3_state_t *)state;
}

struct checksum_state *checksum_begin(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state)
		XXH3_64bits_reset(state);
	return (struct checksum_state *)state;
}

void checksum_add(struct checksum_state *state, const void *data, size_t nbytes)
{
	XXH3_64bits_update(to_xxh(state), data, nbytes);
}

uint64_t checksum_end(struct checksum_state *state)
{
	uint64_t digest = XXH3_64bits_digest(to_xxh(state));

	XXH3_freeState(to_xxh(state));
	return digest;
}
