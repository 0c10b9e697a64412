/* SPDX-License-Identifier: MIT */
/*
 * An RGB image as the pixel_values of a Qwen2-VL model.
 *
 * What Hugging Face's Qwen2VLImageProcessor computes, value for value, as long
 * as the image is within the pixel limits: both sides scaled to multiples of 28
 * (bicubic, as Pillow resamples 8-bit images), rescaled by 1/255, normalised
 * by CLIP's mean and deviation, cut into patches of 14 x 14, the patches of
 * each 2 x 2 block together, each patch one row of
 *
 *	[channel 3][time 2][y 14][x 14]		1176 values
 *
 * with the still image repeated in time.  The processor's pixel limit
 * (max_pixels) applies only when it is asked for; its orientation is that of
 * the stored rows: EXIF is not looked at, neither there nor here.
 *
 * The image passes through row by row and is never held whole.
 */
#ifndef TARENA_PREPROCESS_H
#define TARENA_PREPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complain.h"

#define PREPROCESS_PATCH 14
#define PREPROCESS_MERGE 2
#define PREPROCESS_TIME 2
#define PREPROCESS_CHANNELS 3
#define PREPROCESS_FACTOR (PREPROCESS_PATCH * PREPROCESS_MERGE)
#define PREPROCESS_ROW_VALUES                                                  \
	(PREPROCESS_CHANNELS * PREPROCESS_TIME * PREPROCESS_PATCH *            \
	 PREPROCESS_PATCH)

/**
 * struct preprocess_plan - sizes, known before a pixel is
 * @in_width: of the image
 * @in_height: of the image
 * @width: after scaling, a multiple of 28
 * @height: after scaling, a multiple of 28
 */
struct preprocess_plan {
	uint32_t in_width;
	uint32_t in_height;
	uint32_t width;
	uint32_t height;
};

/* @max_pixels: 0 for no limit.  -1 for images that are far too oblong. */
int preprocess_plan(struct preprocess_plan *plan, uint32_t in_width,
		    uint32_t in_height, uint64_t max_pixels,
		    struct reason *why);

/* Rows of the tensor. */
static inline uint64_t preprocess_patches(const struct preprocess_plan *plan)
{
	return (uint64_t)(plan->width / PREPROCESS_PATCH) *
	       (plan->height / PREPROCESS_PATCH);
}

struct preprocess;

/*
 * Starts filling @dst, which has room for all the patches of @plan in f32 or
 * bf16.  NULL when there is no memory.
 */
struct preprocess *preprocess_start(const struct preprocess_plan *plan,
				    bool f32, void *dst);
/* The next row of the image, from the top: in_width RGB triples. */
void preprocess_row(struct preprocess *p, const uint8_t *rgb);
/* After in_height rows @dst is complete; fewer leave it incomplete. */
void preprocess_free(struct preprocess *p);

#endif /* TARENA_PREPROCESS_H */
