/* SPDX-License-Identifier: MIT */
/* Files for tests: temporary ones, and pictures. */
#ifndef TESTS_TOOLS_FILES_H
#define TESTS_TOOLS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name in a fresh directory, with this ending; free with file_remove(). */
char *file_path(const char *name);
void file_write(const char *path, const void *data, size_t nbytes);
void file_remove(char *path);

/* The test picture: the value of channel @c at (@x, @y). */
static inline uint8_t picture(uint32_t x, uint32_t y, uint32_t c)
{
	return x * 7 + y * 13 + c * 29 + x * y % 31 * 5 +
	       (x / 9 + y / 11) % 2 * 120;
}

enum jpeg_form {
	JPEG_BASELINE,
	JPEG_PROGRESSIVE,
	JPEG_GREY,
	JPEG_CMYK,
	JPEG_ARITHMETIC,
};

/* A JPEG of the test picture, as malloc()ed bytes. */
uint8_t *jpeg_make(uint32_t width, uint32_t height, enum jpeg_form form,
		   size_t *nbytes);
/* Decodes a good JPEG to malloc()ed RGB rows, independently of the tool. */
uint8_t *jpeg_decode(const uint8_t *data, size_t nbytes);

#endif /* TESTS_TOOLS_FILES_H */
