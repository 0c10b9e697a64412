// SPDX-License-Identifier: MIT
/* Files for tests; see files.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "files.h"

/* Nothing sensible can be tested without files: give up loudly. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

char *file_path(const char *name)
{
	const char *tmp = getenv("TMPDIR");
	char *path;
	int n;

	n = asprintf(&path, "%s/tarena.XXXXXX", tmp ? tmp : "/tmp");
	must(n > 0 && mkdtemp(path), "mkdtemp");
	path = realloc(path, n + strlen(name) + 2);
	must(path, "realloc");
	path[n] = '/';
	strcpy(path + n + 1, name);
	return path;
}

void file_write(const char *path, const void *data, size_t nbytes)
{
	FILE *f = fopen(path, "w");

	must(f, path);
	must(fwrite(data, 1, nbytes, f) == nbytes, path);
	must(!fclose(f), path);
}

void file_remove(char *path)
{
	unlink(path);
	*strrchr(path, '/') = '\0';
	must(!rmdir(path), path);
	free(path);
}

static void write_rows(struct jpeg_compress_struct *info)
{
	uint32_t channels = info->input_components;
	uint8_t *row = malloc((size_t)info->image_width * channels);
	uint32_t x, c;

	must(row, "malloc");
	while (info->next_scanline < info->image_height) {
		for (x = 0; x < info->image_width; x++)
			for (c = 0; c < channels; c++)
				row[x * channels + c] =
					picture(x, info->next_scanline, c);
		jpeg_write_scanlines(info, &row, 1);
	}
	free(row);
}

uint8_t *jpeg_make(uint32_t width, uint32_t height, enum jpeg_form form,
		   size_t *nbytes)
{
	struct jpeg_compress_struct info;
	struct jpeg_error_mgr error;
	unsigned long size = 0;
	unsigned char *data = NULL;

	info.err = jpeg_std_error(&error);
	jpeg_create_compress(&info);
	jpeg_mem_dest(&info, &data, &size);
	info.image_width = width;
	info.image_height = height;
	info.input_components = form == JPEG_GREY ? 1 :
				form == JPEG_CMYK ? 4 :
						    3;
	info.in_color_space = form == JPEG_GREY ? JCS_GRAYSCALE :
			      form == JPEG_CMYK ? JCS_CMYK :
						  JCS_RGB;
	jpeg_set_defaults(&info);
	if (form == JPEG_PROGRESSIVE)
		jpeg_simple_progression(&info);
	info.arith_code = form == JPEG_ARITHMETIC;
	jpeg_start_compress(&info, TRUE);
	write_rows(&info);
	jpeg_finish_compress(&info);
	jpeg_destroy_compress(&info);
	*nbytes = size;
	return data;
}

uint8_t *jpeg_decode(const uint8_t *data, size_t nbytes)
{
	struct jpeg_decompress_struct info;
	struct jpeg_error_mgr error;
	uint8_t *pixels, *row;

	info.err = jpeg_std_error(&error);
	jpeg_create_decompress(&info);
	jpeg_mem_src(&info, data, nbytes);
	jpeg_read_header(&info, TRUE);
	info.out_color_space = JCS_RGB;
	jpeg_start_decompress(&info);
	pixels = malloc((size_t)info.output_width * info.output_height * 3);
	must(pixels, "malloc");
	while (info.output_scanline < info.output_height) {
		row = pixels +
		      (size_t)info.output_scanline * info.output_width * 3;
		jpeg_read_scanlines(&info, &row, 1);
	}
	jpeg_finish_decompress(&info);
	jpeg_destroy_decompress(&info);
	return pixels;
}
