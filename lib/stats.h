/* SPDX-License-Identifier: MIT */
/* Figures on their way from an engine to the caller. */
#ifndef TA_STATS_H
#define TA_STATS_H

#include <tensorarena.h>
#include <uapi/tensorarena.h>

/* Rows need no change: both structures are the same. */
void ta_stats_take(struct ta_stats *stats, const struct tensorarena_stats *st);

#endif /* TA_STATS_H */
