// SPDX-License-Identifier: MIT
/*
 * Tensor descriptors: as they come with a publication, and as a caller may make
 * them up.  What decodes encodes to the same bytes.
 */
#include "fuzz.h"
#include "lib/tensor.h"

static void use(const struct ta_tensor *tensor)
{
	uint8_t meta[TENSORARENA_META_BYTES];
	struct ta_tensor again;
	uint64_t nbytes;
	char name[8];
	int n;

	ta_dtype_name(tensor, name, sizeof(name));
	if (ta_tensor_nbytes(tensor, &nbytes))
		return;
	n = ta_tensor_encode(tensor, nbytes, meta);
	MUST(n > 0 && n <= TENSORARENA_META_BYTES);
	MUST(!ta_tensor_decode(meta, (uint32_t)n, nbytes, &again));
	MUST(ta_tensor_decode(meta, (uint32_t)n, nbytes + 1, &again));
}

static void decode(struct bytes *in)
{
	uint64_t nbytes = take_u64(in);
	uint32_t meta_bytes = (uint32_t)in->left;
	uint8_t meta[TENSORARENA_META_BYTES], again[TENSORARENA_META_BYTES];
	struct ta_tensor tensor;

	take(in, meta, sizeof(meta));
	if (ta_tensor_decode(meta, meta_bytes, nbytes, &tensor))
		return;
	MUST(ta_tensor_encode(&tensor, nbytes, again) == (int)meta_bytes);
	MUST(!memcmp(meta, again, meta_bytes));
	use(&tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { .at = data, .left = size };
	struct ta_tensor tensor;

	if (take_u8(&in) & 1) {
		decode(&in);
	} else {
		take(&in, &tensor, sizeof(tensor));
		use(&tensor);
	}
	return 0;
}
