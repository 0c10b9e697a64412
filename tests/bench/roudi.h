/* SPDX-License-Identifier: MIT */
/* RouDi, the daemon that owns iceoryx's memory. */
#ifndef BENCH_ROUDI_H
#define BENCH_ROUDI_H

#include <stddef.h>
#include <stdint.h>

#include "tools/complain.h"

/*
 * Starts it with a pool of @chunks chunks for tensors of @max_bytes; its
 * configuration goes into @dir.  -1 with @why: it does not run here.  There is
 * at most one on a machine.
 */
int roudi_start(const char *dir, size_t max_bytes, uint32_t chunks,
		struct reason *why);
/* Ends it, if it runs. */
void roudi_stop(void);

#endif /* BENCH_ROUDI_H */
