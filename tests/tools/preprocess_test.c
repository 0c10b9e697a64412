// SPDX-License-Identifier: MIT
/*
 * Preprocessing against independent references: sizes and scaled pixels from
 * Python and Pillow 9.4, patches from the formula written out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/preprocess.h>
#include <tools/preprocess_resample.h>

#include "files.h"
#include "test.h"

static void sizes_are_those_of_the_published_processor(void **state)
{
	static const struct {
		uint32_t in_width, in_height;
		uint64_t max_pixels;
		uint32_t width, height;
	} size[] = {
		{ 5640, 3172, 0, 5628, 3164 },
		{ 1280, 1024, 0, 1288, 1036 },
		{ 28, 28, 0, 56, 56 },
		{ 70, 42, 0, 56, 56 },
		{ 42, 70, 0, 56, 56 },
		{ 14, 14, 0, 56, 56 },
		{ 1, 1, 0, 56, 56 },
		{ 43, 41, 0, 84, 56 },
		{ 100, 100, 0, 112, 112 },
		{ 1999, 10, 0, 812, 28 },
		{ 4000, 20, 0, 4004, 28 },
		{ 5640, 3172, 12845056, 4760, 2660 },
		{ 5640, 3172, 1003520, 1316, 728 },
		{ 640, 480, 100, 28, 28 },
	};
	struct preprocess_plan plan;
	struct reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		assert_int_equal(preprocess_plan(&plan, size[i].in_width,
						 size[i].in_height,
						 size[i].max_pixels, &why),
				 0);
		assert_int_equal(plan.width, size[i].width);
		assert_int_equal(plan.height, size[i].height);
	}
}

static void images_too_oblong_or_empty_are_refused(void **state)
{
	struct preprocess_plan plan;
	struct reason why;

	(void)state;
	assert_int_equal(preprocess_plan(&plan, 2000, 10, 0, &why), 0);
	assert_int_equal(preprocess_plan(&plan, 2001, 10, 0, &why), -1);
	assert_non_null(strstr(why.text, "too oblong"));
	assert_int_equal(preprocess_plan(&plan, 1, 65535, 0, &why), -1);
	assert_int_equal(preprocess_plan(&plan, 0, 5, 0, &why), -1);
	assert_int_equal(preprocess_plan(&plan, 5, 0, 0, &why), -1);
}

static uint8_t *picture_row(uint32_t width, uint32_t y)
{
	uint8_t *row = malloc((size_t)width * 3);
	uint32_t x, c;

	assert_non_null(row);
	for (x = 0; x < width; x++)
		for (c = 0; c < 3; c++)
			row[x * 3 + c] = picture(x, y, c);
	return row;
}

/* FNV-1a over the rows in the order they come, which must be from the top. */
struct hashed {
	uint64_t hash;
	uint32_t rows;
	size_t row_bytes;
};

static void hash_row(void *context, uint32_t y, const uint8_t *rgb)
{
	struct hashed *h = context;
	size_t i;

	assert_int_equal(y, h->rows++);
	for (i = 0; i < h->row_bytes; i++)
		h->hash = (h->hash ^ rgb[i]) * 0x100000001b3;
}

static void scaled_pixels_are_pillows(void **state)
{
	static const struct {
		uint32_t in_width, in_height, width, height;
		uint64_t hash;
	} known[] = {
		{ 37, 53, 56, 56, 0xca2683776a51cc60 },
		{ 53, 37, 28, 28, 0xc28e0a96ec8c524e },
		{ 29, 28, 28, 28, 0xfb3165bf019ce149 },
		{ 28, 45, 28, 56, 0x7a12a32390a2e952 },
		{ 56, 56, 56, 56, 0x333a759ffea19f37 },
		{ 500, 333, 84, 56, 0xfa53b7a8e1c12d0a },
		{ 3, 2, 84, 56, 0x9bafbb6d42c68078 },
		{ 1, 1, 56, 56, 0x7578a61057e309e5 },
		{ 640, 480, 644, 476, 0xcb50fc39b4e78e5c },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		struct hashed h = {
			.hash = 0xcbf29ce484222325,
			.row_bytes = (size_t)known[i].width * 3,
		};
		struct resample *r;
		uint32_t y;

		r = resample_start(known[i].in_width, known[i].in_height,
				   known[i].width, known[i].height, hash_row,
				   &h);
		assert_non_null(r);
		for (y = 0; y < known[i].in_height; y++) {
			uint8_t *row = picture_row(known[i].in_width, y);

			resample_row(r, row);
			free(row);
		}
		resample_free(r);
		assert_int_equal(h.rows, known[i].height);
		assert_int_equal(h.hash, known[i].hash);
	}
}

/* The tensor of an image that needs no scaling, in f32 or bf16. */
static void *patches_of(uint32_t width, uint32_t height, bool f32)
{
	struct preprocess_plan plan = { width, height, width, height };
	size_t n = preprocess_patches(&plan) * PREPROCESS_ROW_VALUES;
	void *dst = calloc(n, f32 ? 4 : 2);
	struct preprocess *p = preprocess_start(&plan, f32, dst);
	uint32_t y;

	assert_non_null(dst);
	assert_non_null(p);
	for (y = 0; y < height; y++) {
		uint8_t *row = picture_row(width, y);

		preprocess_row(p, row);
		free(row);
	}
	preprocess_free(p);
	return dst;
}

/*
 * The published reshape and transpose, index by index: value number @i of a
 * height x width image comes from channel, y and x.
 */
static void source_of(size_t i, uint32_t width, uint32_t *c, uint32_t *y,
		      uint32_t *x)
{
	uint32_t px = i % 14, py = i / 14 % 14;
	uint32_t channel = i / (14 * 14 * 2) % 3;
	size_t patch = i / 1176;
	uint32_t merge_x = patch % 2, merge_y = patch / 2 % 2;
	uint32_t block_x = patch / 4 % (width / 28);
	uint32_t block_y = patch / 4 / (width / 28);

	*c = channel;
	*y = (block_y * 2 + merge_y) * 14 + py;
	*x = (block_x * 2 + merge_x) * 14 + px;
}

static const double means[] = { 0.48145466, 0.4578275, 0.40821073 };
static const double deviations[] = { 0.26862954, 0.26130258, 0.27577711 };

static double normalised(uint32_t x, uint32_t y, uint32_t c)
{
	return (picture(x, y, c) / 255.0 - means[c]) / deviations[c];
}

static void every_value_is_where_the_model_expects_it(void **state)
{
	const uint32_t width = 84, height = 56;
	float *got = patches_of(width, height, true);
	size_t n = (size_t)width * height * 3 * 2, i;
	uint32_t c, y, x;

	(void)state;
	for (i = 0; i < n; i++) {
		source_of(i, width, &c, &y, &x);
		assert_true(fabs(got[i] - normalised(x, y, c)) < 1e-6);
	}
	free(got);
}

/* Nearest bf16, halves to even, by looking at the two candidates. */
static uint16_t nearest_bf16(float f)
{
	uint32_t bits, low;

	memcpy(&bits, &f, sizeof(bits));
	low = bits & 0xffff;
	bits >>= 16;
	if (low > 0x8000 || (low == 0x8000 && bits % 2))
		bits++;
	return bits;
}

static void bf16_is_the_f32_tensor_rounded(void **state)
{
	const uint32_t width = 56, height = 84;
	float *f32 = patches_of(width, height, true);
	uint16_t *bf16 = patches_of(width, height, false);
	size_t n = (size_t)width * height * 3 * 2, i;

	(void)state;
	for (i = 0; i < n; i++)
		assert_int_equal(bf16[i], nearest_bf16(f32[i]));
	free(f32);
	free(bf16);
}

/* What numpy computes in f32 for the darkest and brightest pixel. */
static void extreme_values_are_known(void **state)
{
	struct preprocess_plan plan = { 28, 28, 28, 28 };
	float *dst = calloc(4 * 1176, sizeof(*dst));
	struct preprocess *p = preprocess_start(&plan, true, dst);
	uint8_t row[28 * 3];
	int y;

	(void)state;
	assert_non_null(p);
	for (y = 0; y < 28; y++) {
		memset(row, y ? 255 : 0, sizeof(row));
		preprocess_row(p, row);
	}
	preprocess_free(p);
	assert_true(dst[0] == -1.7922626f);
	assert_true(dst[392] == -1.7520971f);
	assert_true(dst[784] == -1.4802198f);
	assert_true(dst[14] == 1.9303361f);
	assert_true(dst[406] == 2.0748837f);
	assert_true(dst[798] == 2.145897f);
	free(dst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_of_the_published_processor),
		cmocka_unit_test(images_too_oblong_or_empty_are_refused),
		cmocka_unit_test(scaled_pixels_are_pillows),
		cmocka_unit_test(every_value_is_where_the_model_expects_it),
		cmocka_unit_test(bf16_is_the_f32_tensor_rounded),
		cmocka_unit_test(extreme_values_are_known),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
