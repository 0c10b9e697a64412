// SPDX-License-Identifier: MIT
/*
 * From rows of pixels to patches; see preprocess.h.
 */
#include <stdlib.h>
#include <string.h>

#include "preprocess.h"
#include "preprocess_resample.h"

/* CLIP's, which Qwen2-VL uses. */
static const float mean[PREPROCESS_CHANNELS] = { 0.48145466f, 0.4578275f,
						 0.40821073f };
static const float deviation[PREPROCESS_CHANNELS] = { 0.26862954f, 0.26130258f,
						      0.27577711f };

/**
 * struct preprocess - an image on its way
 * @plan: sizes
 * @resample: what scales it
 * @dst: the patches
 * @value_bytes: 4 for f32, 2 for bf16
 * @value: the normalised value of each pixel value in each channel, as the
 *	bytes that go into the tensor
 */
struct preprocess {
	struct preprocess_plan plan;
	struct resample *resample;
	uint8_t *dst;
	size_t value_bytes;
	union {
		float f32[PREPROCESS_CHANNELS][256];
		uint16_t bf16[PREPROCESS_CHANNELS][256];
	} value;
};

/* Rounds to the nearest, halves to even; there is no NaN among pixels. */
static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	bits += 0x7fff + (bits >> 16 & 1);
	return bits >> 16;
}

static void fill_values(struct preprocess *p, bool f32)
{
	int c, i;

	for (c = 0; c < PREPROCESS_CHANNELS; c++) {
		for (i = 0; i < 256; i++) {
			float unit = (float)(i * (1 / 255.0));
			float value = (unit - mean[c]) / deviation[c];

			if (f32)
				p->value.f32[c][i] = value;
			else
				p->value.bf16[c][i] = to_bf16(value);
		}
	}
}

/* Where patch (@gx, @gy) is among the rows of the tensor. */
static size_t patch_index(const struct preprocess *p, size_t gx, size_t gy)
{
	size_t blocks = p->plan.width / PREPROCESS_FACTOR;
	size_t block = gy / PREPROCESS_MERGE * blocks + gx / PREPROCESS_MERGE;

	return (block * PREPROCESS_MERGE + gy % PREPROCESS_MERGE) *
		       PREPROCESS_MERGE +
	       gx % PREPROCESS_MERGE;
}

static void put_f32(const struct preprocess *p, const uint8_t *rgb, int c,
		    uint8_t *to)
{
	float line[PREPROCESS_PATCH];
	int x;

	for (x = 0; x < PREPROCESS_PATCH; x++)
		line[x] = p->value.f32[c][rgb[x * PREPROCESS_CHANNELS + c]];
	memcpy(to, line, sizeof(line));
}

static void put_bf16(const struct preprocess *p, const uint8_t *rgb, int c,
		     uint8_t *to)
{
	uint16_t line[PREPROCESS_PATCH];
	int x;

	for (x = 0; x < PREPROCESS_PATCH; x++)
		line[x] = p->value.bf16[c][rgb[x * PREPROCESS_CHANNELS + c]];
	memcpy(to, line, sizeof(line));
}

/* One line of 14 pixels of one patch, into its six places. */
static void put_line(const struct preprocess *p, const uint8_t *rgb, int y,
		     uint8_t *patch)
{
	size_t line = PREPROCESS_PATCH * p->value_bytes;
	size_t plane = PREPROCESS_PATCH * line;
	uint8_t *to = patch + y * line;
	int c, t;

	for (c = 0; c < PREPROCESS_CHANNELS; c++) {
		for (t = 0; t < PREPROCESS_TIME; t++, to += plane) {
			if (p->value_bytes == sizeof(float))
				put_f32(p, rgb, c, to);
			else
				put_bf16(p, rgb, c, to);
		}
	}
}

static void take_scaled_row(void *context, uint32_t y, const uint8_t *rgb)
{
	const struct preprocess *p = context;
	size_t patch_bytes = PREPROCESS_ROW_VALUES * p->value_bytes;
	uint32_t gy = y / PREPROCESS_PATCH;
	uint32_t gx;

	for (gx = 0; gx < p->plan.width / PREPROCESS_PATCH; gx++) {
		put_line(p, rgb, y % PREPROCESS_PATCH,
			 p->dst + patch_index(p, gx, gy) * patch_bytes);
		rgb += PREPROCESS_PATCH * PREPROCESS_CHANNELS;
	}
}

struct preprocess *preprocess_start(const struct preprocess_plan *plan,
				    bool f32, void *dst)
{
	struct preprocess *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->plan = *plan;
	p->dst = dst;
	p->value_bytes = f32 ? sizeof(float) : sizeof(uint16_t);
	fill_values(p, f32);
	p->resample = resample_start(plan->in_width, plan->in_height,
				     plan->width, plan->height, take_scaled_row,
				     p);
	if (!p->resample) {
		free(p);
		return NULL;
	}
	return p;
}

void preprocess_row(struct preprocess *p, const uint8_t *rgb)
{
	resample_row(p->resample, rgb);
}

void preprocess_free(struct preprocess *p)
{
	if (!p)
		return;
	resample_free(p->resample);
	free(p);
}
