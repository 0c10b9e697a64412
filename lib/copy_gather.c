// SPDX-License-Identifier: MIT
/* Reading from parts; see copy_gather.h. */
#include <errno.h>
#include <string.h>

#include "copy_gather.h"

/* Shorter pieces are not streamed: too few of their lines are whole. */
#define STREAM_MIN 512

static void copy_piece(uint8_t *dst, const uint8_t *src, size_t n,
		       const struct ta_copy_kernel *kernel)
{
	if (n < STREAM_MIN)
		memcpy(dst, src, n);
	else
		kernel->copy(dst, src, n);
}

/* @n bytes from @offset of a part that has them. */
static void copy_rows(const struct ta_part *part, uint8_t *dst, size_t offset,
		      size_t n, const struct ta_copy_kernel *kernel)
{
	const uint8_t *row = part->data;
	size_t piece;

	if (part->rows == 1 || part->stride == part->row_bytes) {
		copy_piece(dst, row + offset, n, kernel);
		return;
	}
	row += offset / part->row_bytes * part->stride;
	offset %= part->row_bytes;
	for (;;) {
		piece = part->row_bytes - offset;
		if (piece > n)
			piece = n;
		copy_piece(dst, row + offset, piece, kernel);
		dst += piece;
		n -= piece;
		if (!n)
			break;
		/* Not sooner: there may be no row after the last. */
		row += part->stride;
		offset = 0;
	}
}

void ta_gather(struct ta_cursor *cursor, void *dst, size_t from, size_t to,
	       const struct ta_copy_kernel *kernel)
{
	uint8_t *out = dst;
	size_t offset, left, n;

	while (from < to) {
		offset = from - cursor->start;
		left = cursor->part->rows * cursor->part->row_bytes;
		if (offset >= left) {
			cursor->start += left;
			cursor->part++;
			continue;
		}
		left -= offset;
		n = to - from < left ? to - from : left;
		copy_rows(cursor->part, out, offset, n, kernel);
		out += n;
		from += n;
	}
}

/* The bytes of a part, and that its last row ends inside the address space. */
static int part_nbytes(const struct ta_part *part, size_t *nbytes)
{
	size_t extent;

	if (__builtin_mul_overflow(part->rows, part->row_bytes, nbytes))
		return -EOVERFLOW;
	if (!*nbytes)
		return 0;
	if (!part->data)
		return -EINVAL;
	if (part->rows == 1)
		extent = 0;
	else if (__builtin_mul_overflow(part->rows - 1, part->stride, &extent))
		return -EOVERFLOW;
	if (__builtin_add_overflow(extent, part->row_bytes, &extent) ||
	    __builtin_add_overflow(extent, (uintptr_t)part->data, &extent))
		return -EOVERFLOW;
	return 0;
}

int ta_parts_nbytes(const struct ta_part *parts, uint32_t nr, size_t *nbytes)
{
	size_t part;
	uint32_t i;
	int err;

	if (!parts && nr)
		return -EINVAL;
	*nbytes = 0;
	for (i = 0; i < nr; i++) {
		err = part_nbytes(&parts[i], &part);
		if (err)
			return err;
		if (__builtin_add_overflow(*nbytes, part, nbytes))
			return -EOVERFLOW;
	}
	return 0;
}
