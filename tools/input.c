// SPDX-License-Identifier: MIT
/*
 * What a file is; see input.h.
 */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "input_kinds.h"
#include "npy.h"

/* Enough to tell all kinds apart. */
#define HEAD_BYTES 16

_Static_assert(HEAD_BYTES > SAFETENSORS_PREFIX_BYTES &&
		       HEAD_BYTES >= NPY_MAGIC_BYTES,
	       "every kind is known by its first bytes");

static const uint8_t jpeg_magic[] = { 0xff, 0xd8, 0xff };

static bool named(const char *path, const char *extension)
{
	size_t n = strlen(path);
	size_t m = strlen(extension);

	return n > m && !strcasecmp(path + n - m, extension);
}

static bool starts_with(const uint8_t *head, size_t n, const void *magic,
			size_t magic_bytes)
{
	return n >= magic_bytes && !memcmp(head, magic, magic_bytes);
}

static int open_kind(struct input *in, const char *path,
		     const struct input_options *options, struct reason *why)
{
	uint8_t head[HEAD_BYTES];
	size_t n = sizeof(head);

	if (n > in->file_bytes)
		n = in->file_bytes;
	if (input_file_read(in, head, 0, n, -1, why))
		return -1;

	if (starts_with(head, n, npy_magic, sizeof(npy_magic)))
		return input_npy_open(in, why);
	if (starts_with(head, n, jpeg_magic, sizeof(jpeg_magic)))
		return input_jpeg_open(in, options, why);
	if (named(path, ".safetensors") ||
	    input_safetensors_likely(in, head, n))
		return input_safetensors_open(in, why);

	if (named(path, ".npy"))
		return reason_set(why, "is named .npy but does not start as an "
				       "NPY file does");
	if (named(path, ".jpg") || named(path, ".jpeg"))
		return reason_set(why, "is named as a JPEG but does not start "
				       "as one does");
	input_raw_open(in);
	return 0;
}

int input_open(struct input *in, const char *path,
	       const struct input_options *options, struct reason *why)
{
	memset(in, 0, sizeof(*in));
	if (input_file_open(in, path, why))
		return -1;
	if (open_kind(in, path, options, why)) {
		close(in->fd);
		return -1;
	}
	return 0;
}

int input_produce(struct input *in, void *dst, int stop, struct reason *why)
{
	return in->ops->produce(in, dst, stop, why);
}

void input_close(struct input *in)
{
	if (in->ops->close)
		in->ops->close(in);
	close(in->fd);
}
