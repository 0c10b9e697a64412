/* SPDX-License-Identifier: MIT */
/* The machine that figures were measured on. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <jansson.h>

#include "gpu.h"

json_t *machine_json(const struct gpu_about *gpu);

#endif /* BENCH_MACHINE_H */
