/* SPDX-License-Identifier: MIT */
/*
 * Time as the tool reports it: milliseconds on the monotonic clock, which all
 * processes of a machine share.
 */
#ifndef TARENA_CLOCK_H
#define TARENA_CLOCK_H

#include <time.h>

static inline double clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

#endif /* TARENA_CLOCK_H */
