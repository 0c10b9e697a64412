/* SPDX-License-Identifier: MIT */
/* The record of a run, with every sample. */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <jansson.h>

#include "plan.h"

json_t *raw_json(const struct plan *plan, const struct result *result,
		 json_t *machine);

#endif /* BENCH_RAW_H */
