/* SPDX-License-Identifier: MIT */
/*
 * The header of an NPY file (numpy.lib.format, versions 1.0, 2.0 and 3.0).
 *
 * The header is a Python dictionary written by numpy's own hand; this parser
 * accepts what numpy writes and the spellings its documentation allows, and
 * nothing else.  It never reads beyond the bytes it is given.
 */
#ifndef TARENA_NPY_H
#define TARENA_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#include "complain.h"

#define NPY_MAGIC_BYTES 6
/* Magic, version and the longest length field. */
#define NPY_PREFIX_BYTES 12
/* Far more than 8 dimensions need; numpy itself stops at 10,000. */
#define NPY_HEADER_MAX 65536

extern const uint8_t npy_magic[NPY_MAGIC_BYTES];

/*
 * From the first bytes of the file: where the dictionary starts and how long it
 * is.  @nbytes: how much of the file @prefix holds, up to NPY_PREFIX_BYTES.
 */
int npy_prefix(const uint8_t *prefix, size_t nbytes, size_t *start,
	       size_t *length, struct reason *why);
/* From the dictionary: the tensor. */
int npy_header(const char *text, size_t length, struct ta_tensor *tensor,
	       struct reason *why);

#endif /* TARENA_NPY_H */
