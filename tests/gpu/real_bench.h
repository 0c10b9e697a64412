/* SPDX-License-Identifier: MIT */
/* The parts of the GPU bench; each prints members of one JSON object. */
#ifndef TA_REAL_BENCH_H
#define TA_REAL_BENCH_H

#include "real_cuda.h"

void bench_idle(void);

#endif /* TA_REAL_BENCH_H */
