// SPDX-License-Identifier: MIT
/*
 * Safetensors headers: what is accepted describes tensors that fill the file
 * without overlap.
 */
#include "fuzz.h"
#include "tools/safetensors.h"

static void check(const struct safetensors *list, uint64_t file_bytes)
{
	uint64_t nbytes, end = 0;
	size_t i;

	for (i = 0; i < list->nr; i++) {
		const struct safetensors_tensor *t = &list->tensor[i];

		MUST(!ta_tensor_nbytes(&t->tensor, &nbytes));
		MUST(nbytes == t->nbytes);
		MUST(!i || t->offset == end);
		MUST(t->offset <= file_bytes &&
		     nbytes <= file_bytes - t->offset);
		end = t->offset + nbytes;
	}
	MUST(!list->nr || end == file_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { .at = data, .left = size };
	/* The file has as many bytes of data behind its header as we say. */
	uint64_t data_bytes = take_u64(&in) % 4096;
	struct reason why = { "" };
	struct safetensors list;
	uint8_t *prefix;
	char *text;
	size_t length;

	prefix = exactly(in.at, in.left < SAFETENSORS_PREFIX_BYTES ?
					in.left :
					SAFETENSORS_PREFIX_BYTES);
	safetensors_prefix(prefix,
			   in.left < SAFETENSORS_PREFIX_BYTES ?
				   in.left :
				   SAFETENSORS_PREFIX_BYTES,
			   in.left, &length, &why);
	free(prefix);

	text = exactly(in.at, in.left);
	if (safetensors_header(text, in.left,
			       SAFETENSORS_PREFIX_BYTES + in.left + data_bytes,
			       &list, &why)) {
		MUST(why.text[0]);
	} else {
		check(&list, SAFETENSORS_PREFIX_BYTES + in.left + data_bytes);
		safetensors_free(&list);
	}
	free(text);
	return 0;
}
