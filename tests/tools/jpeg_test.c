// SPDX-License-Identifier: MIT
/* JPEG files: the tensor of a good one, and no tensor of a bad one. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tools/input.h>
#include <tools/preprocess.h>

#include "files.h"
#include "test.h"

static int open_bytes(const void *data, size_t n, struct input *in,
		      struct reason *why)
{
	static const struct input_options options;
	char *path = file_path("picture.jpg");
	int err;

	file_write(path, data, n);
	err = input_open(in, path, &options, why);
	file_remove(path);
	return err;
}

/* From bytes to the tensor, which is NULL with @why set when refused. */
static void *decode_bytes(const void *data, size_t n, struct input *in,
			  struct reason *why)
{
	void *tensor;

	if (open_bytes(data, n, in, why))
		return NULL;
	tensor = malloc(in->nbytes);
	assert_non_null(tensor);
	if (input_produce(in, tensor, -1, why)) {
		free(tensor);
		tensor = NULL;
	}
	input_close(in);
	return tensor;
}

/* The same from pixels that were decoded without the tool's code. */
static void *expected(const uint8_t *data, size_t n, uint32_t width,
		      uint32_t height)
{
	uint8_t *pixels = jpeg_decode(data, n);
	struct preprocess_plan plan;
	struct preprocess *p;
	struct reason why;
	uint32_t y;
	void *dst;

	assert_int_equal(preprocess_plan(&plan, width, height, 0, &why), 0);
	dst = malloc(preprocess_patches(&plan) * PREPROCESS_ROW_VALUES * 2);
	p = preprocess_start(&plan, false, dst);
	assert_non_null(dst);
	assert_non_null(p);
	for (y = 0; y < height; y++)
		preprocess_row(p, pixels + (size_t)y * width * 3);
	preprocess_free(p);
	free(pixels);
	return dst;
}

static void check_form(enum jpeg_form form)
{
	struct reason why;
	struct input in;
	void *want, *got;
	uint8_t *data;
	size_t n;

	data = jpeg_make(100, 61, form, &n);
	want = expected(data, n, 100, 61);
	got = decode_bytes(data, n, &in, &why);
	assert_non_null(got);

	assert_int_equal(in.tensor.code, TA_BFLOAT);
	assert_int_equal(in.tensor.bits, 16);
	assert_int_equal(in.tensor.ndim, 2);
	assert_int_equal(in.tensor.shape[0], 8 * 4);
	assert_int_equal(in.tensor.shape[1], 1176);
	assert_int_equal(in.grid_thw[0], 1);
	assert_int_equal(in.grid_thw[1], 4);
	assert_int_equal(in.grid_thw[2], 8);
	assert_int_equal(in.nbytes, 8 * 4 * 1176 * 2);
	assert_memory_equal(got, want, in.nbytes);
	free(want);
	free(got);
	free(data);
}

static void baseline_progressive_and_grey_are_decoded(void **state)
{
	(void)state;
	check_form(JPEG_BASELINE);
	check_form(JPEG_PROGRESSIVE);
	check_form(JPEG_GREY);
}

static void the_same_file_can_be_decoded_again(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data, *first, *second;
	size_t n;

	(void)state;
	data = jpeg_make(56, 56, JPEG_PROGRESSIVE, &n);
	assert_int_equal(open_bytes(data, n, &in, &why), 0);
	first = calloc(1, in.nbytes);
	second = calloc(1, in.nbytes);
	assert_int_equal(input_produce(&in, first, -1, &why), 0);
	assert_int_equal(input_produce(&in, second, -1, &why), 0);
	assert_memory_equal(first, second, in.nbytes);
	input_close(&in);
	free(first);
	free(second);
	free(data);
}

static void cut_everywhere(enum jpeg_form form)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n, cut;

	data = jpeg_make(60, 58, form, &n);
	free(decode_bytes(data, n, &in, &why));
	for (cut = 1; cut < n; cut++) {
		why.text[0] = '\0';
		if (decode_bytes(data, cut, &in, &why) || !why.text[0])
			fail_msg("cut to %zu of %zu bytes: accepted", cut, n);
	}
	free(data);
}

static void a_file_cut_short_anywhere_is_an_error(void **state)
{
	(void)state;
	cut_everywhere(JPEG_BASELINE);
	cut_everywhere(JPEG_PROGRESSIVE);
}

/* Damage may go unseen in the pixels, but must never be more than an error. */
static void a_file_with_any_byte_changed_is_survived(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n, i, k;

	(void)state;
	data = jpeg_make(30, 30, JPEG_PROGRESSIVE, &n);
	for (i = 0; i < n; i++) {
		for (k = 0; k < ARRAY_SIZE(flips); k++) {
			data[i] ^= flips[k];
			if (!open_bytes(data, n, &in, &why)) {
				void *tensor;

				/* The size field may be what was hit. */
				if (in.nbytes < 1 << 20) {
					tensor = malloc(in.nbytes);
					input_produce(&in, tensor, -1, &why);
					free(tensor);
				}
				input_close(&in);
			}
			data[i] ^= flips[k];
		}
	}
	free(data);
}

/* Puts other dimensions into the frame header. */
static void claim_size(uint8_t *data, size_t n, uint16_t width, uint16_t height)
{
	size_t i;

	for (i = 0; i + 9 < n; i++) {
		/* Baseline, or arithmetic. */
		if (data[i] != 0xff ||
		    (data[i + 1] != 0xc0 && data[i + 1] != 0xc9))
			continue;
		data[i + 5] = height >> 8;
		data[i + 6] = height;
		data[i + 7] = width >> 8;
		data[i + 8] = width;
		return;
	}
	fail_msg("no frame header");
}

static void an_absurd_size_is_refused_before_decoding(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n;

	(void)state;
	data = jpeg_make(30, 30, JPEG_BASELINE, &n);
	/* 65500 is as much as libjpeg itself goes along with. */
	claim_size(data, n, 65500, 65500);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	assert_non_null(strstr(why.text, "65500 x 65500"));
	claim_size(data, n, 65535, 65535);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	claim_size(data, n, 40000, 20);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	assert_non_null(strstr(why.text, "too oblong"));
	claim_size(data, n, 20000, 10000);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	assert_non_null(strstr(why.text, "bytes can hold"));
	free(data);
}

/* 240 bytes once took ten seconds: nothing that is coded has to be there. */
static void a_small_arithmetic_file_is_no_huge_picture(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n;

	(void)state;
	data = jpeg_make(30, 30, JPEG_ARITHMETIC, &n);
	assert_int_equal(open_bytes(data, n, &in, &why), 0);
	input_close(&in);
	claim_size(data, n, 4000, 4000);
	assert_int_equal(open_bytes(data, n, &in, &why), 0);
	input_close(&in);
	claim_size(data, n, 5000, 4000);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	assert_non_null(strstr(why.text, "more than is believed"));
	free(data);
}

static void a_larger_size_than_the_data_is_an_error(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n;

	(void)state;
	data = jpeg_make(30, 30, JPEG_BASELINE, &n);
	claim_size(data, n, 300, 300);
	assert_null(decode_bytes(data, n, &in, &why));
	assert_non_null(strstr(why.text, "cannot be decoded"));
	free(data);
}

static void cmyk_is_refused(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	size_t n;

	(void)state;
	data = jpeg_make(30, 30, JPEG_CMYK, &n);
	assert_int_equal(open_bytes(data, n, &in, &why), -1);
	assert_non_null(strstr(why.text, "CMYK"));
	free(data);
}

static void bytes_after_the_end_marker_are_ignored(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	void *tensor;
	size_t n;

	(void)state;
	data = jpeg_make(30, 30, JPEG_BASELINE, &n);
	data = realloc(data, n + 4);
	assert_non_null(data);
	memcpy(data + n, "tail", 4);
	tensor = decode_bytes(data, n + 4, &in, &why);
	assert_non_null(tensor);
	free(tensor);
	free(data);
}

static void max_pixels_scales_down(void **state)
{
	const struct input_options options = { .f32 = true,
					       .max_pixels = 20000 };
	char *path = file_path("picture");
	struct reason why;
	struct input in;
	uint8_t *data;
	float *tensor;
	size_t n;

	(void)state;
	data = jpeg_make(400, 300, JPEG_BASELINE, &n);
	file_write(path, data, n);
	assert_int_equal(input_open(&in, path, &options, &why), 0);
	assert_int_equal(in.grid_thw[1], 112 / 14);
	assert_int_equal(in.grid_thw[2], 140 / 14);
	assert_int_equal(in.tensor.code, TA_FLOAT);
	assert_int_equal(in.nbytes, 80 * 1176 * 4);
	tensor = malloc(in.nbytes);
	assert_non_null(tensor);
	assert_int_equal(input_produce(&in, tensor, -1, &why), 0);
	free(tensor);
	input_close(&in);
	file_remove(path);
	free(data);
}

/* A pipe with something in it looks to the decoder as a signal would. */
static void decoding_stops_when_asked_to(void **state)
{
	struct reason why;
	struct input in;
	uint8_t *data;
	void *tensor;
	int pipe_fd[2];
	size_t n;

	(void)state;
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	assert_int_equal(write(pipe_fd[1], "!", 1), 1);
	data = jpeg_make(300, 300, JPEG_PROGRESSIVE, &n);
	assert_int_equal(open_bytes(data, n, &in, &why), 0);
	tensor = malloc(in.nbytes);
	assert_non_null(tensor);
	assert_int_equal(input_produce(&in, tensor, pipe_fd[0], &why), -1);
	assert_string_equal(why.text, "interrupted");
	input_close(&in);
	free(tensor);
	free(data);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(baseline_progressive_and_grey_are_decoded),
		cmocka_unit_test(the_same_file_can_be_decoded_again),
		cmocka_unit_test(a_file_cut_short_anywhere_is_an_error),
		cmocka_unit_test(a_file_with_any_byte_changed_is_survived),
		cmocka_unit_test(an_absurd_size_is_refused_before_decoding),
		cmocka_unit_test(a_small_arithmetic_file_is_no_huge_picture),
		cmocka_unit_test(a_larger_size_than_the_data_is_an_error),
		cmocka_unit_test(cmyk_is_refused),
		cmocka_unit_test(bytes_after_the_end_marker_are_ignored),
		cmocka_unit_test(max_pixels_scales_down),
		cmocka_unit_test(decoding_stops_when_asked_to),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
