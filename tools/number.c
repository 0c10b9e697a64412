// SPDX-License-Identifier: MIT
/*
 * Numbers on the command line; see number.h.
 */
#include "number.h"

int number_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t v = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' ||
		    __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, *text - '0', &v))
			return -1;
	}
	if (v < min || v > max)
		return -1;
	*value = v;
	return 0;
}

int number_u32(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t v;

	if (number_u64(text, min, max, &v))
		return -1;
	*value = v;
	return 0;
}
