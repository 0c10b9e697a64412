/* SPDX-License-Identifier: MIT */
/* The metrics over HTTP, for Prometheus. */
#ifndef TARENA_METRICS_SERVE_H
#define TARENA_METRICS_SERVE_H

#include "arenas.h"

/*
 * Serves GET /metrics at @where, "[ADDRESS:]PORT", until Ctrl-C; an exit code.
 * Without an address it is the loopback interface's.
 */
int metrics_serve(const struct arenas *arenas, const char *where);

#endif /* TARENA_METRICS_SERVE_H */
