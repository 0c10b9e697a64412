/* SPDX-License-Identifier: MIT */
/*
 * The header of a safetensors file: eight bytes that say how long it is, then
 * JSON that says what tensors there are and where.
 *
 * What the format forbids is refused, with the name of the tensor concerned:
 * tensors that overlap, holes between them, bytes after the last, a size that is
 * not that of type and shape, anything given twice.  So is what a tensor of ours
 * cannot be: more than TA_MAX_NDIM dimensions, a name longer than TA_MAX_TAG
 * bytes.
 *
 * These functions look at nothing but the bytes they are given.
 */
#ifndef TARENA_SAFETENSORS_H
#define TARENA_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#include "complain.h"

#define SAFETENSORS_PREFIX_BYTES 8
/* The longest header that the format's own library takes. */
#define SAFETENSORS_HEADER_MAX 100000000

/**
 * struct safetensors_tensor - a tensor in a file
 * @tensor: type and shape; the tag is its name
 * @offset: where in the file its bytes are
 * @nbytes: how many
 */
struct safetensors_tensor {
	struct ta_tensor tensor;
	uint64_t offset;
	uint64_t nbytes;
};

/**
 * struct safetensors - a file's tensors
 * @tensor: each, in the order of the file
 * @nr: how many
 */
struct safetensors {
	struct safetensors_tensor *tensor;
	size_t nr;
};

/*
 * From the first bytes of a file, SAFETENSORS_PREFIX_BYTES or all there are: how
 * long the header is.
 */
int safetensors_prefix(const uint8_t *prefix, size_t nbytes,
		       uint64_t file_bytes, size_t *length, struct reason *why);
/*
 * From the header: the tensors, of which there may be none.  To be freed, unless
 * it fails.
 */
int safetensors_header(const char *text, size_t length, uint64_t file_bytes,
		       struct safetensors *list, struct reason *why);
void safetensors_free(struct safetensors *list);

#endif /* TARENA_SAFETENSORS_H */
