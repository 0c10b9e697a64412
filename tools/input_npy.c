// SPDX-License-Identifier: MIT
/*
 * An NPY file as the tensor it holds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "input_kinds.h"
#include "npy.h"

static int npy_produce(struct input *in, void *dst, int stop,
		       struct reason *why)
{
	return input_file_read(in, dst, in->data_offset, in->nbytes, stop, why);
}

static const struct input_ops npy_ops = {
	.produce = npy_produce,
};

/* Reads and parses the dictionary; sets @in's tensor and data_offset. */
static int read_header(struct input *in, struct reason *why)
{
	uint8_t prefix[NPY_PREFIX_BYTES];
	size_t n = sizeof(prefix);
	size_t start, length;
	char *text;
	int err;

	if (n > in->file_bytes)
		n = in->file_bytes;
	if (input_file_read(in, prefix, 0, n, -1, why) ||
	    npy_prefix(prefix, n, &start, &length, why))
		return -1;
	if (start + length > in->file_bytes)
		return reason_set(why, "NPY file cut short in its header");

	text = malloc(length + 1);
	if (!text)
		return reason_set(why, "no memory to read its header");
	err = input_file_read(in, text, start, length, -1, why);
	if (!err)
		err = npy_header(text, length, &in->tensor, why);
	free(text);
	in->data_offset = start + length;
	return err;
}

/* The header says how much data there is; the file must agree exactly. */
static int check_size(const struct input *in, struct reason *why)
{
	uint64_t there = in->file_bytes - in->data_offset;

	if (there == in->nbytes)
		return 0;
	return reason_set(why,
			  "NPY header promises %" PRIu64 " bytes of data, "
			  "the file has %" PRIu64,
			  in->nbytes, there);
}

int input_npy_open(struct input *in, struct reason *why)
{
	if (read_header(in, why))
		return -1;
	if (ta_tensor_nbytes(&in->tensor, &in->nbytes))
		return reason_set(why, "NPY header describes an array of "
				       "absurd size");
	if (check_size(in, why))
		return -1;
	in->ops = &npy_ops;
	snprintf(in->about, sizeof(in->about), "an NPY array");
	return 0;
}
