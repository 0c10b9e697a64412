/* SPDX-License-Identifier: MIT */
/*
 * Where a copy's bytes come from: parts of one or more rows, back to back.
 *
 * A destination is cut into ranges that threads take in ascending order.  So
 * each of them finds its place in the source with a cursor that only moves
 * forward: nothing is allocated, and all parts are looked at once a thread.
 */
#ifndef TA_COPY_GATHER_H
#define TA_COPY_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#include "copy_kernel.h"

/* @part: the part in which it stands.  @start: bytes of all parts before. */
struct ta_cursor {
	const struct ta_part *part;
	size_t start;
};

/*
 * Copies the source's bytes from @from up to @to, which are not before those of
 * the cursor's last call, to @dst.  There are that many.
 */
void ta_gather(struct ta_cursor *cursor, void *dst, size_t from, size_t to,
	       const struct ta_copy_kernel *kernel);

/*
 * 0 and how many bytes @parts are; -EINVAL: a NULL where there should be bytes;
 * -EOVERFLOW: more than can be addressed.
 */
int ta_parts_nbytes(const struct ta_part *parts, uint32_t nr, size_t *nbytes);

#endif /* TA_COPY_GATHER_H */
