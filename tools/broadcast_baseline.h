/* SPDX-License-Identifier: MIT */
/*
 * The yardstick: what the unavoidable work takes on this machine without
 * tensorarena.
 */
#ifndef TARENA_BROADCAST_BASELINE_H
#define TARENA_BROADCAST_BASELINE_H

#include <stddef.h>
#include <stdint.h>

#include "complain.h"

/**
 * struct baseline - one sample
 * @memcpy_ms: memcpy() into a mapping that is resident
 * @checksum_ms: one checksum pass
 * @passes_ms: one pass for each reader, all started at the same time
 */
struct baseline {
	double memcpy_ms;
	double checksum_ms;
	double passes_ms;
};

/* Memory for a tensor, resident: NULL when there is not enough. */
void *baseline_buffer(size_t nbytes);
void baseline_buffer_free(void *buffer, size_t nbytes);

/* @dst, from baseline_buffer(), receives the copy. */
int baseline_sample(struct baseline *baseline, void *dst, const void *src,
		    size_t nbytes, uint32_t readers, struct reason *why);

#endif /* TARENA_BROADCAST_BASELINE_H */
