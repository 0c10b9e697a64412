/* SPDX-License-Identifier: MIT */
/* The parts of the GPU bench; each prints members of one JSON object. */
#ifndef TA_REAL_BENCH_H
#define TA_REAL_BENCH_H

#include "real_cuda.h"

/* How late a slot is free, and what a view of @nbytes costs the caller. */
void bench_free(size_t nbytes, const char *name);
void bench_idle(void);

#endif /* TA_REAL_BENCH_H */
