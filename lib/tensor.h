/* SPDX-License-Identifier: MIT */
/* How a tensor descriptor travels in a publication's opaque bytes. */
#ifndef TA_TENSOR_H
#define TA_TENSOR_H

#include <stdint.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

/*
 * Describes @nbytes bytes with @tensor, or as plain bytes when that is NULL.
 * Returns the bytes of @meta used, or -EINVAL when @tensor is malformed or
 * describes another size.
 */
int ta_tensor_encode(const struct ta_tensor *tensor, uint64_t nbytes,
		     uint8_t meta[static TENSORARENA_META_BYTES]);

/*
 * The reverse, trusting nothing: 0, or -EPROTO unless the first @meta_bytes of
 * @meta are exactly one valid descriptor of exactly @nbytes bytes.
 */
int ta_tensor_decode(const uint8_t meta[static TENSORARENA_META_BYTES],
		     uint32_t meta_bytes, uint64_t nbytes,
		     struct ta_tensor *tensor);

#endif /* TA_TENSOR_H */
