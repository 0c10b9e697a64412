// SPDX-License-Identifier: MIT
/*
 * A safetensors file as the tensors it holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input_kinds.h"

static void safetensors_close(struct input *in)
{
	safetensors_free(&in->list);
}

/* They are not produced, but loaded from where they are. */
static const struct input_ops safetensors_ops = {
	.close = safetensors_close,
};

/*
 * There is no magic, but hardly any other file begins with a number that is small
 * and a brace.
 */
bool input_safetensors_likely(const struct input *in, const uint8_t *head,
			      size_t nbytes)
{
	struct reason why;
	size_t length;

	return nbytes > SAFETENSORS_PREFIX_BYTES &&
	       head[SAFETENSORS_PREFIX_BYTES] == '{' &&
	       !safetensors_prefix(head, nbytes, in->file_bytes, &length, &why);
}

static int read_header(struct input *in, struct reason *why)
{
	uint8_t prefix[SAFETENSORS_PREFIX_BYTES];
	size_t n = sizeof(prefix);
	size_t length;
	char *text;
	int err;

	if (n > in->file_bytes)
		n = in->file_bytes;
	if (input_file_read(in, prefix, 0, n, -1, why) ||
	    safetensors_prefix(prefix, n, in->file_bytes, &length, why))
		return -1;
	text = malloc(length + 1);
	if (!text)
		return reason_set(why, "no memory to read its header");
	err = input_file_read(in, text, sizeof(prefix), length, -1, why);
	if (!err)
		err = safetensors_header(text, length, in->file_bytes,
					 &in->list, why);
	free(text);
	return err;
}

int input_safetensors_open(struct input *in, struct reason *why)
{
	size_t i;

	if (read_header(in, why))
		return -1;
	if (!in->list.nr) {
		safetensors_free(&in->list);
		return reason_set(why, "is a safetensors file without tensors");
	}
	for (i = 0; i < in->list.nr; i++) {
		if (in->list.tensor[i].nbytes > in->nbytes)
			in->nbytes = in->list.tensor[i].nbytes;
	}
	in->ops = &safetensors_ops;
	snprintf(in->about, sizeof(in->about),
		 "a safetensors file of %zu tensor%s", in->list.nr,
		 in->list.nr == 1 ? "" : "s");
	return 0;
}
