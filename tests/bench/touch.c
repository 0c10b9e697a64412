// SPDX-License-Identifier: MIT
/* See touch.h. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "touch.h"

#define MULTIPLIER 0x9e3779b97f4a7c15u
/* Sums at a time: as many as hide the latency of memory. */
#define LANES 32

void touch_fill(void *data, size_t nbytes, uint64_t seed)
{
	uint64_t x = seed * MULTIPLIER + MULTIPLIER, word;
	size_t i, n;

	for (i = 0; i < nbytes; i += n) {
		x += MULTIPLIER;
		word = (x ^ x >> 29) * MULTIPLIER;
		n = nbytes - i < sizeof(word) ? nbytes - i : sizeof(word);
		memcpy((char *)data + i, &word, n);
	}
}

void touch_stamp(void *data, size_t nbytes, uint64_t stamp)
{
	memcpy(data, &stamp, sizeof(stamp));
	memcpy((char *)data + nbytes - sizeof(stamp), &stamp, sizeof(stamp));
}

int touch_stamped(const void *data, size_t nbytes, uint64_t stamp)
{
	return !memcmp(data, &stamp, sizeof(stamp)) &&
	       !memcmp((const char *)data + nbytes - sizeof(stamp), &stamp,
		       sizeof(stamp));
}

uint64_t touch_read(const void *data, size_t nbytes)
{
	uint64_t sum[LANES] = { 0 }, word, all = 0;
	const char *at = data, *end = at + nbytes;
	size_t i;

	for (; (size_t)(end - at) >= sizeof(sum); at += sizeof(sum)) {
		for (i = 0; i < LANES; i++) {
			memcpy(&word, at + i * sizeof(word), sizeof(word));
			sum[i] += word;
		}
	}
	for (; at < end; at++)
		all += (unsigned char)*at;
	for (i = 0; i < LANES; i++)
		all += sum[i];
	return all;
}

uint64_t touch_digest(const void *data, size_t nbytes)
{
	return XXH3_64bits(data, nbytes);
}
