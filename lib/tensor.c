// SPDX-License-Identifier: MIT
/* Tensor descriptors: sizes, names, and their form in a publication. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tensor.h"

/* What the version word of a descriptor must be; another layout gets another. */
#define TENSOR_VERSION 0x31544154u /* "TAT1" on little-endian machines */

/*
 * A descriptor: this, then @ndim extents (int64_t each), then @tag_bytes of
 * tag, in the byte order of the node, since it never leaves it.
 */
struct wire_head {
	uint32_t version;
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
	uint8_t ndim;
	uint8_t tag_bytes;
	uint8_t reserved[6];
};

_Static_assert(sizeof(struct wire_head) == 16, "no holes");
_Static_assert(sizeof(struct wire_head) + TA_MAX_NDIM * sizeof(int64_t) +
			       TA_MAX_TAG <=
		       TENSORARENA_META_BYTES,
	       "the largest descriptor must fit a publication");
_Static_assert(TA_MAX_TAG <= UINT8_MAX && TA_MAX_NDIM <= UINT8_MAX,
	       "wire_head counts in bytes");

static const struct {
	const char *name; /* with %u for the bits where there are several */
	uint8_t bits; /* the only width there is, or 0 */
} dtype[] = {
	[TA_INT] = { "i%u", 0 },
	[TA_UINT] = { "u%u", 0 },
	[TA_FLOAT] = { "f%u", 0 },
	[TA_OPAQUE] = { "opaque%u", 0 },
	[TA_BFLOAT] = { "bf16", 16 },
	[TA_COMPLEX] = { "c%u", 0 },
	[TA_BOOL] = { "bool", 8 },
	[TA_FLOAT8_E3M4] = { "f8_e3m4", 8 },
	[TA_FLOAT8_E4M3] = { "f8_e4m3", 8 },
	[TA_FLOAT8_E4M3B11FNUZ] = { "f8_e4m3b11fnuz", 8 },
	[TA_FLOAT8_E4M3FN] = { "f8_e4m3fn", 8 },
	[TA_FLOAT8_E4M3FNUZ] = { "f8_e4m3fnuz", 8 },
	[TA_FLOAT8_E5M2] = { "f8_e5m2", 8 },
	[TA_FLOAT8_E5M2FNUZ] = { "f8_e5m2fnuz", 8 },
	[TA_FLOAT8_E8M0FNU] = { "f8_e8m0fnu", 8 },
	[TA_FLOAT6_E2M3FN] = { "f6_e2m3fn", 6 },
	[TA_FLOAT6_E3M2FN] = { "f6_e3m2fn", 6 },
	[TA_FLOAT4_E2M1FN] = { "f4_e2m1fn", 4 },
};

#define NR_DTYPES (sizeof(dtype) / sizeof(dtype[0]))

static bool is_power_of_two(unsigned int n)
{
	return n && !(n & (n - 1));
}

static bool dtype_valid(unsigned int code, unsigned int bits)
{
	if (code >= NR_DTYPES || !bits)
		return false;
	if (dtype[code].bits)
		return bits == dtype[code].bits;
	switch (code) {
	case TA_FLOAT:
		return is_power_of_two(bits) && bits >= 16;
	case TA_COMPLEX:
		return is_power_of_two(bits) && bits >= 32;
	case TA_OPAQUE:
		return bits % 8 == 0;
	default:
		return is_power_of_two(bits);
	}
}

static bool tensor_valid(const struct ta_tensor *t)
{
	uint32_t i;

	if (!dtype_valid(t->code, t->bits) || !t->lanes || t->reserved)
		return false;
	if (t->ndim > TA_MAX_NDIM || t->tag_bytes > TA_MAX_TAG)
		return false;
	for (i = 0; i < t->ndim; i++)
		if (t->shape[i] < 0)
			return false;
	return true;
}

int ta_tensor_nbytes(const struct ta_tensor *tensor, uint64_t *nbytes)
{
	uint64_t bits = (uint64_t)tensor->bits * tensor->lanes;
	bool empty = false;
	uint32_t i;

	if (!tensor_valid(tensor))
		return -EINVAL;
	/* Nothing times however much is nothing, in any order. */
	for (i = 0; i < tensor->ndim; i++)
		empty |= !tensor->shape[i];
	for (i = 0; i < tensor->ndim && !empty; i++)
		if (__builtin_mul_overflow(bits, (uint64_t)tensor->shape[i],
					   &bits))
			return -EOVERFLOW;
	*nbytes = empty ? 0 : bits / 8 + (bits % 8 != 0);
	return 0;
}

void ta_dtype_name(const struct ta_tensor *tensor, char *buf, size_t size)
{
	char name[32];

	if (!dtype_valid(tensor->code, tensor->bits)) {
		snprintf(buf, size, "invalid(%u,%u)", tensor->code,
			 tensor->bits);
		return;
	}
	if (dtype[tensor->code].bits)
		snprintf(name, sizeof(name), "%s", dtype[tensor->code].name);
	else
		snprintf(name, sizeof(name), "%.*s%u",
			 (int)strcspn(dtype[tensor->code].name, "%"),
			 dtype[tensor->code].name, tensor->bits);
	if (tensor->lanes == 1)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%sx%u", name, tensor->lanes);
}

int ta_tensor_encode(const struct ta_tensor *tensor, uint64_t nbytes,
		     uint8_t meta[static TENSORARENA_META_BYTES])
{
	/* No slot is so large that the cut could ever be published. */
	const struct ta_tensor bytes = {
		.code = TA_UINT,
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.shape = { nbytes > INT64_MAX ? INT64_MAX : (int64_t)nbytes },
	};
	struct wire_head head = { .version = TENSOR_VERSION };
	uint64_t described;
	size_t shape_bytes;

	if (!tensor)
		tensor = &bytes;
	else if (ta_tensor_nbytes(tensor, &described) || described != nbytes)
		return -EINVAL;
	head.code = tensor->code;
	head.bits = tensor->bits;
	head.lanes = tensor->lanes;
	head.ndim = (uint8_t)tensor->ndim;
	head.tag_bytes = (uint8_t)tensor->tag_bytes;
	shape_bytes = tensor->ndim * sizeof(tensor->shape[0]);
	memcpy(meta, &head, sizeof(head));
	memcpy(meta + sizeof(head), tensor->shape, shape_bytes);
	memcpy(meta + sizeof(head) + shape_bytes, tensor->tag,
	       tensor->tag_bytes);
	return (int)(sizeof(head) + shape_bytes + tensor->tag_bytes);
}

int ta_tensor_decode(const uint8_t meta[static TENSORARENA_META_BYTES],
		     uint32_t meta_bytes, uint64_t nbytes,
		     struct ta_tensor *tensor)
{
	static const uint8_t zero[sizeof(((struct wire_head *)0)->reserved)];
	struct ta_tensor t = { 0 };
	struct wire_head head;
	uint64_t described;
	size_t shape_bytes;

	if (meta_bytes < sizeof(head) || meta_bytes > TENSORARENA_META_BYTES)
		return -EPROTO;
	memcpy(&head, meta, sizeof(head));
	if (head.version != TENSOR_VERSION ||
	    memcmp(head.reserved, zero, sizeof(zero)) ||
	    head.ndim > TA_MAX_NDIM || head.tag_bytes > TA_MAX_TAG)
		return -EPROTO;
	shape_bytes = head.ndim * sizeof(t.shape[0]);
	if (meta_bytes != sizeof(head) + shape_bytes + head.tag_bytes)
		return -EPROTO;
	t.code = head.code;
	t.bits = head.bits;
	t.lanes = head.lanes;
	t.ndim = head.ndim;
	t.tag_bytes = head.tag_bytes;
	memcpy(t.shape, meta + sizeof(head), shape_bytes);
	memcpy(t.tag, meta + sizeof(head) + shape_bytes, t.tag_bytes);
	if (ta_tensor_nbytes(&t, &described) || described != nbytes)
		return -EPROTO;
	*tensor = t;
	return 0;
}
