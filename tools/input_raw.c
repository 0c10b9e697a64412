// SPDX-License-Identifier: MIT
/*
 * Any file as bytes.
 */
#include <stdio.h>

#include "input_kinds.h"

static int raw_produce(struct input *in, void *dst, int stop,
		       struct reason *why)
{
	return input_file_read(in, dst, 0, in->nbytes, stop, why);
}

static const struct input_ops raw_ops = {
	.produce = raw_produce,
};

void input_raw_open(struct input *in)
{
	in->ops = &raw_ops;
	in->nbytes = in->file_bytes;
	in->tensor = (struct ta_tensor){
		.code = TA_UINT,
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.shape = { in->file_bytes },
	};
	snprintf(in->about, sizeof(in->about), "a file of raw bytes");
}
