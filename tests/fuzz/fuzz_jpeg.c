// SPDX-License-Identifier: MIT
/*
 * JPEG files.  The decoder is not the target: what we let it do is.  A file can
 * cost no more than what its bytes can hold, plus a constant.
 */
#include <sys/mman.h>

#include "fuzz.h"
#include "tools/input_kinds.h"
#include "tools/preprocess.h"

/* Larger tensors are only planned: filling them takes seconds. */
#define PRODUCE_MAX (16UL << 20)

static void produce(struct input *in)
{
	struct reason why = { "" };
	uint64_t nbytes;
	void *data;

	MUST(!ta_tensor_nbytes(&in->tensor, &nbytes) && nbytes == in->nbytes);
	MUST(in->decoded && nbytes);
	if (nbytes > PRODUCE_MAX)
		return;
	data = malloc(nbytes);
	MUST(data);
	if (input_produce(in, data, -1, &why))
		MUST(why.text[0]);
	free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { .at = data, .left = size };
	uint8_t how = take_u8(&bytes);
	const struct input_options options = {
		.f32 = how & 1,
		.max_pixels = how & 2 ? 10000 : 0,
	};
	struct input in = { .file_bytes = bytes.left };
	struct reason why = { "" };

	if (!bytes.left)
		return 0;
	in.fd = memfd_create("jpeg", MFD_CLOEXEC);
	MUST(in.fd >= 0 &&
	     write(in.fd, bytes.at, bytes.left) == (ssize_t)bytes.left);
	if (input_jpeg_open(&in, &options, &why)) {
		MUST(why.text[0]);
		close(in.fd);
		return 0;
	}
	produce(&in);
	input_close(&in);
	return 0;
}
