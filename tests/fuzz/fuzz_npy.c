// SPDX-License-Identifier: MIT
/* NPY files: the header's two parts alone, then the file as the tool opens it. */
#include <inttypes.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "tools/input_kinds.h"
#include "tools/npy.h"

/* The dictionary without a file around it, where the parser's limits are. */
static void parse(const uint8_t *data, size_t size)
{
	struct ta_tensor tensor;
	struct reason why = { "" };
	size_t start, length;
	uint8_t *prefix;
	char *text;

	prefix = exactly(data,
			 size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES);
	if (size >= NPY_MAGIC_BYTES)
		npy_prefix(prefix,
			   size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES,
			   &start, &length, &why);
	free(prefix);

	text = exactly(data, size);
	if (npy_header(text, size, &tensor, &why))
		MUST(why.text[0]);
	else
		MUST(tensor.ndim <= TA_MAX_NDIM);
	free(text);
}

static void produce(struct input *in)
{
	struct reason why = { "" };
	uint64_t nbytes;
	void *data;

	MUST(!ta_tensor_nbytes(&in->tensor, &nbytes) && nbytes == in->nbytes);
	MUST(in->data_offset + nbytes == in->file_bytes);
	data = malloc(nbytes + 1);
	MUST(data && !input_produce(in, data, -1, &why));
	free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reason why = { "" };
	struct input in = { .file_bytes = size };

	parse(data, size);
	if (!size)
		return 0;
	in.fd = memfd_create("npy", MFD_CLOEXEC);
	MUST(in.fd >= 0 && write(in.fd, data, size) == (ssize_t)size);
	if (input_npy_open(&in, &why))
		MUST(why.text[0]);
	else
		produce(&in);
	close(in.fd);
	return 0;
}
