/* SPDX-License-Identifier: MIT */
/*
 * The figures of arenas in the OpenMetrics text format, version 1.0.0.
 *
 * tensorarena_arena_* are of one arena each, labelled with its name and engine,
 * and go with it; tensorarena_module_* are the kernel module's totals.  Units are
 * bytes and seconds.
 */
#ifndef TARENA_METRICS_FORMAT_H
#define TARENA_METRICS_FORMAT_H

#include <stdio.h>

#include <jansson.h>

#define OPENMETRICS_TYPE                                                       \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* @seen is what arenas_read() returns. */
void metrics_format(FILE *out, const json_t *seen);

#endif /* TARENA_METRICS_FORMAT_H */
