// SPDX-License-Identifier: MIT
/*
 * Scaling, row by row; see preprocess_resample.h.
 *
 * The columns of each arriving row are scaled at once; the rows wait in a ring
 * that is as deep as the vertical filter is tall, and each row of the result is
 * made as soon as the last row that it needs has come.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "preprocess_resample.h"

#define CHANNELS 3
/* How far the filter reaches at scale 1, in pixels. */
#define SUPPORT 2.0
/* Weights are fixed-point; 8 bits of pixel and 2 of overshoot fit beside. */
#define WEIGHT_BITS 22

/**
 * struct axis - the filter along one axis
 * @out: pixels of the result
 * @taps: most source pixels that one result pixel needs
 * @first: for each result pixel the first source pixel
 * @count: for each result pixel how many source pixels
 * @weight: @taps of them for each result pixel
 */
struct axis {
	uint32_t out;
	uint32_t taps;
	uint32_t *first;
	uint32_t *count;
	int32_t *weight;
};

/**
 * struct resample - a scaling in progress
 * @columns: horizontal filter; out is 0 when the width stays
 * @rows: vertical filter; out is 0 when the height stays
 * @row_bytes: of a row of the result
 * @ring: the newest rows.taps rows, scaled horizontally
 * @sum: accumulators of one row of the result
 * @row: one row of the result
 * @in_y: rows taken
 * @out_y: rows given
 */
struct resample {
	struct axis columns;
	struct axis rows;
	size_t row_bytes;
	uint8_t *ring;
	int32_t *sum;
	uint8_t *row;
	uint32_t in_y;
	uint32_t out_y;
	resample_sink *sink;
	void *context;
};

/* Keys' cubic convolution kernel with a = -1/2. */
static double bicubic(double x)
{
	x = fabs(x);
	if (x < 1)
		return (1.5 * x - 2.5) * x * x + 1;
	if (x < 2)
		return ((-0.5 * x + 2.5) * x - 4) * x + 2;
	return 0;
}

static int32_t fixed_point(double weight)
{
	double scaled = weight * (1 << WEIGHT_BITS);

	return (int32_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
}

static uint8_t to_pixel(int32_t sum)
{
	sum >>= WEIGHT_BITS;
	return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

/* The filter for result pixel @i: where it starts and its weights. */
static void axis_tap(struct axis *axis, uint32_t i, uint32_t in, double scale,
		     double stretch, double *weight)
{
	double center = (i + 0.5) * scale;
	double total = 0;
	int64_t from = (int64_t)(center - SUPPORT * stretch + 0.5);
	int64_t to = (int64_t)(center + SUPPORT * stretch + 0.5);
	uint32_t k;

	if (from < 0)
		from = 0;
	if (to > in)
		to = in;
	axis->first[i] = from;
	axis->count[i] = to - from;

	for (k = 0; k < axis->count[i]; k++) {
		weight[k] = bicubic((k + from - center + 0.5) * (1 / stretch));
		total += weight[k];
	}
	for (k = 0; k < axis->count[i]; k++)
		axis->weight[(size_t)i * axis->taps + k] =
			fixed_point(total ? weight[k] / total : weight[k]);
}

static bool axis_init(struct axis *axis, uint32_t in, uint32_t out)
{
	double scale = (double)in / out;
	double stretch = scale < 1 ? 1 : scale;
	double *weight;
	uint32_t i;

	axis->taps = (uint32_t)ceil(SUPPORT * stretch) * 2 + 1;
	axis->first = calloc(out, sizeof(*axis->first));
	axis->count = calloc(out, sizeof(*axis->count));
	axis->weight = calloc((size_t)out * axis->taps, sizeof(*axis->weight));
	weight = calloc(axis->taps, sizeof(*weight));
	if (axis->first && axis->count && axis->weight && weight) {
		axis->out = out;
		for (i = 0; i < out; i++)
			axis_tap(axis, i, in, scale, stretch, weight);
	}
	free(weight);
	return axis->out;
}

static void axis_free(struct axis *axis)
{
	free(axis->first);
	free(axis->count);
	free(axis->weight);
}

void resample_free(struct resample *r)
{
	if (!r)
		return;
	axis_free(&r->columns);
	axis_free(&r->rows);
	free(r->ring);
	free(r->sum);
	free(r->row);
	free(r);
}

struct resample *resample_start(uint32_t in_width, uint32_t in_height,
				uint32_t out_width, uint32_t out_height,
				resample_sink *sink, void *context)
{
	struct resample *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->sink = sink;
	r->context = context;
	r->row_bytes = (size_t)out_width * CHANNELS;
	if (in_width != out_width &&
	    !axis_init(&r->columns, in_width, out_width))
		goto err_free;
	if (in_height != out_height &&
	    !axis_init(&r->rows, in_height, out_height))
		goto err_free;

	/* Without a vertical filter the ring is one row deep. */
	if (!r->rows.out)
		r->rows.taps = 1;
	r->ring = malloc(r->rows.taps * r->row_bytes);
	r->sum = calloc(r->row_bytes, sizeof(*r->sum));
	r->row = malloc(r->row_bytes);
	if (r->ring && r->sum && r->row)
		return r;

err_free:
	resample_free(r);
	return NULL;
}

static void scale_columns(const struct axis *axis, const uint8_t *in,
			  uint8_t *out)
{
	uint32_t i, k;

	for (i = 0; i < axis->out; i++, out += CHANNELS) {
		const uint8_t *from = in + (size_t)axis->first[i] * CHANNELS;
		const int32_t *weight = axis->weight + (size_t)i * axis->taps;
		int32_t r = 1 << (WEIGHT_BITS - 1), g = r, b = r;

		for (k = 0; k < axis->count[i]; k++, from += CHANNELS) {
			r += from[0] * weight[k];
			g += from[1] * weight[k];
			b += from[2] * weight[k];
		}
		out[0] = to_pixel(r);
		out[1] = to_pixel(g);
		out[2] = to_pixel(b);
	}
}

static uint8_t *ring_row(const struct resample *r, uint32_t y)
{
	return r->ring + y % r->rows.taps * r->row_bytes;
}

/* Adds one source row to the sums: the loop that vector units like. */
static void add_weighted(int32_t *restrict sum, const uint8_t *restrict row,
			 int32_t weight, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sum[i] += row[i] * weight;
}

static void scale_rows(struct resample *r, uint32_t y)
{
	const int32_t *weight = r->rows.weight + (size_t)y * r->rows.taps;
	uint32_t k;
	size_t i;

	for (i = 0; i < r->row_bytes; i++)
		r->sum[i] = 1 << (WEIGHT_BITS - 1);
	for (k = 0; k < r->rows.count[y]; k++)
		add_weighted(r->sum, ring_row(r, r->rows.first[y] + k),
			     weight[k], r->row_bytes);
	for (i = 0; i < r->row_bytes; i++)
		r->row[i] = to_pixel(r->sum[i]);
}

void resample_row(struct resample *r, const uint8_t *rgb)
{
	const struct axis *rows = &r->rows;
	uint8_t *newest = ring_row(r, r->in_y);

	if (r->columns.out)
		scale_columns(&r->columns, rgb, newest);
	else
		memcpy(newest, rgb, r->row_bytes);
	r->in_y++;

	if (!rows->out) {
		r->sink(r->context, r->out_y++, newest);
		return;
	}
	while (r->out_y < rows->out &&
	       rows->first[r->out_y] + rows->count[r->out_y] <= r->in_y) {
		scale_rows(r, r->out_y);
		r->sink(r->context, r->out_y++, r->row);
	}
}
