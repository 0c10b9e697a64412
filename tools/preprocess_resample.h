/* SPDX-License-Identifier: MIT */
/*
 * Scaling an RGB image, row by row: antialiased bicubic (a = -0.5) with 8 bits
 * between the two passes, the same values as Pillow's BICUBIC.
 */
#ifndef TARENA_PREPROCESS_RESAMPLE_H
#define TARENA_PREPROCESS_RESAMPLE_H

#include <stdint.h>

struct resample;

/* Takes rows of the result, from the top: out_width RGB triples. */
typedef void resample_sink(void *context, uint32_t y, const uint8_t *rgb);

struct resample *resample_start(uint32_t in_width, uint32_t in_height,
				uint32_t out_width, uint32_t out_height,
				resample_sink *sink, void *context);
/* The next row of the image; calls the sink for every row this completes. */
void resample_row(struct resample *r, const uint8_t *rgb);
void resample_free(struct resample *r);

#endif /* TARENA_PREPROCESS_RESAMPLE_H */
