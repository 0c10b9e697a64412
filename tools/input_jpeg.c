// SPDX-License-Identifier: MIT
/*
 * A JPEG as the pixel_values that a vision-language model takes.
 *
 * libjpeg-turbo decodes; anything it would only warn about (a file cut short,
 * damaged data) is an error here, because the pixels would be made up.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "input_kinds.h"
#include "preprocess.h"
#include "stop.h"

/*
 * A small file can claim to be a huge picture, whose decoder alone would take
 * gigabytes.  The largest that are photographed or stitched are well below.
 */
#define PIXELS_MAX (1ULL << 29)
/* Huffman coding spends a bit at least on each block of 64. */
#define PIXELS_PER_BYTE (64 * 8)
/*
 * Arithmetic coding may spend next to nothing, so its files say nothing of the
 * work they make: what a camera takes is believed, and no more without bytes.
 */
#define PIXELS_UNPROVEN (1ULL << 24)
#define FILE_BYTES_MAX (1ULL << 30)
/* Real progressive files have about ten; each costs a pass over the image. */
#define SCANS_MAX 500
/* Rows asked of the decoder at a time; it may give fewer. */
#define ROWS 16

/* What the model calls the tensor. */
static const char tensor_name[] = "pixel_values";

/**
 * struct decoder - what is kept from opening to producing
 * @error: libjpeg's, whose exit jumps to @bail
 * @progress: calls that come now and then while decoding
 * @info: libjpeg's state
 * @plan: sizes
 * @f32: as in the options
 * @file: the compressed file
 * @stop: see stop.h
 * @why: where to say what went wrong
 */
struct decoder {
	struct jpeg_error_mgr error;
	struct jpeg_progress_mgr progress;
	struct jpeg_decompress_struct info;
	struct preprocess_plan plan;
	bool f32;
	uint8_t *file;
	int stop;
	struct reason *why;
	jmp_buf bail;
};

static struct decoder *decoder_of(j_common_ptr info)
{
	return info->client_data;
}

static void on_error(j_common_ptr info)
{
	struct decoder *d = decoder_of(info);
	char text[JMSG_LENGTH_MAX];

	info->err->format_message(info, text);
	reason_set(d->why, "JPEG cannot be decoded: %s", text);
	longjmp(d->bail, 1);
}

/* Warnings come with level -1.  Two are about labels, not about pixels. */
static void on_message(j_common_ptr info, int level)
{
	int code = info->err->msg_code;

	if (level < 0 && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
		on_error(info);
}

static void on_progress(j_common_ptr info)
{
	struct decoder *d = decoder_of(info);

	if (d->info.input_scan_number > SCANS_MAX)
		reason_set(d->why, "JPEG of more than %d scans", SCANS_MAX);
	else if (stop_requested(d->stop))
		reason_set(d->why, "interrupted");
	else
		return;
	longjmp(d->bail, 1);
}

/* From the start of the file to just before the first pixel. */
static void read_header(struct input *in, struct decoder *d)
{
	jpeg_mem_src(&d->info, d->file, in->file_bytes);
	jpeg_read_header(&d->info, TRUE);
	d->info.out_color_space = JCS_RGB;
}

static void decode(struct decoder *d, struct preprocess *p)
{
	JSAMPARRAY rows;
	JDIMENSION got, i;

	jpeg_start_decompress(&d->info);
	rows = d->info.mem->alloc_sarray(
		(j_common_ptr)&d->info, JPOOL_IMAGE,
		d->info.output_width * PREPROCESS_CHANNELS, ROWS);
	while (d->info.output_scanline < d->info.output_height) {
		got = jpeg_read_scanlines(&d->info, rows, ROWS);
		for (i = 0; i < got; i++)
			preprocess_row(p, rows[i]);
	}
	/* Reads on to the end marker, which a file cut short lacks. */
	jpeg_finish_decompress(&d->info);
}

static int jpeg_produce(struct input *in, void *dst, int stop,
			struct reason *why)
{
	struct decoder *d = in->decoder;
	struct preprocess *p = preprocess_start(&d->plan, d->f32, dst);
	int err = -1;

	if (!p)
		return reason_set(why, "no memory to decode it");
	d->why = why;
	d->stop = stop;
	if (!setjmp(d->bail)) {
		read_header(in, d);
		decode(d, p);
		err = 0;
	}
	jpeg_abort_decompress(&d->info);
	preprocess_free(p);
	return err;
}

static void jpeg_close(struct input *in)
{
	struct decoder *d = in->decoder;

	jpeg_destroy_decompress(&d->info);
	free(d->file);
	free(d);
}

static const struct input_ops jpeg_ops = {
	.produce = jpeg_produce,
	.close = jpeg_close,
};

static int check_header(const struct decoder *d, struct reason *why)
{
	uint64_t w = d->info.image_width, h = d->info.image_height;

	if (w * h > PIXELS_MAX)
		return reason_set(why,
				  "JPEG claims %" PRIu64 " x %" PRIu64
				  " pixels; more than %llu million are "
				  "not believed",
				  w, h, PIXELS_MAX / 1000000);
	if (d->info.jpeg_color_space == JCS_CMYK ||
	    d->info.jpeg_color_space == JCS_YCCK)
		return reason_set(why, "JPEG in CMYK colours; the model takes "
				       "RGB or grey");
	return 0;
}

/* Before the decoder takes memory for what is not there. */
static int check_pixels(const struct input *in, const struct decoder *d,
			struct reason *why)
{
	uint64_t w = d->info.image_width, h = d->info.image_height;

	if (w * h / PIXELS_PER_BYTE <= in->file_bytes)
		return 0;
	if (d->info.arith_code && w * h <= PIXELS_UNPROVEN)
		return 0;
	if (d->info.arith_code)
		return reason_set(
			why,
			"JPEG claims %" PRIu64 " x %" PRIu64
			" pixels, more than is believed of its %" PRIu64
			" bytes",
			w, h, in->file_bytes);
	return reason_set(why,
			  "JPEG claims %" PRIu64 " x %" PRIu64
			  " pixels, more than its %" PRIu64 " bytes can hold",
			  w, h, in->file_bytes);
}

static void describe(struct input *in, const struct decoder *d)
{
	uint64_t patches = preprocess_patches(&d->plan);

	in->ops = &jpeg_ops;
	in->decoded = true;
	in->tensor = (struct ta_tensor){
		.code = d->f32 ? TA_FLOAT : TA_BFLOAT,
		.bits = d->f32 ? 32 : 16,
		.lanes = 1,
		.ndim = 2,
		.tag_bytes = sizeof(tensor_name) - 1,
		.shape = { patches, PREPROCESS_ROW_VALUES },
	};
	memcpy(in->tensor.tag, tensor_name, sizeof(tensor_name) - 1);
	in->nbytes = patches * PREPROCESS_ROW_VALUES * (d->f32 ? 4 : 2);
	in->grid_thw[0] = 1;
	in->grid_thw[1] = d->plan.height / PREPROCESS_PATCH;
	in->grid_thw[2] = d->plan.width / PREPROCESS_PATCH;
	snprintf(in->about, sizeof(in->about),
		 "a JPEG of %u x %u pixels, decoded to the pixel_values of a "
		 "Qwen2-VL model at %u x %u",
		 d->plan.in_width, d->plan.in_height, d->plan.width,
		 d->plan.height);
}

static int open_decoder(struct input *in, struct decoder *d,
			const struct input_options *options, struct reason *why)
{
	d->f32 = options->f32;
	d->stop = -1;
	d->why = why;
	d->info.err = jpeg_std_error(&d->error);
	d->error.error_exit = on_error;
	d->error.emit_message = on_message;
	d->info.client_data = d;
	if (setjmp(d->bail))
		return -1;
	jpeg_create_decompress(&d->info);
	d->progress.progress_monitor = on_progress;
	d->info.progress = &d->progress;
	read_header(in, d);
	if (check_header(d, why) ||
	    preprocess_plan(&d->plan, d->info.image_width, d->info.image_height,
			    options->max_pixels, why))
		return -1;
	return check_pixels(in, d, why);
}

int input_jpeg_open(struct input *in, const struct input_options *options,
		    struct reason *why)
{
	struct decoder *d;

	if (in->file_bytes > FILE_BYTES_MAX)
		return reason_set(why,
				  "JPEG file of %" PRIu64 " bytes; no "
				  "real one is that large",
				  in->file_bytes);
	d = calloc(1, sizeof(*d));
	in->decoder = d;
	if (d)
		d->file = malloc(in->file_bytes);
	if (!d || !d->file) {
		free(d);
		return reason_set(why, "no memory to read it");
	}

	if (input_file_read(in, d->file, 0, in->file_bytes, -1, why) ||
	    open_decoder(in, d, options, why)) {
		jpeg_close(in);
		return -1;
	}
	describe(in, d);
	jpeg_abort_decompress(&d->info);
	return 0;
}
