/* SPDX-License-Identifier: MIT */
/*
 * What input.c and the kinds of input share: each kind's way to open, and
 * reading a file exactly.
 */
#ifndef TARENA_INPUT_KINDS_H
#define TARENA_INPUT_KINDS_H

#include "input.h"

/* Each fills @in from its open descriptor, or leaves nothing to close. */
void input_raw_open(struct input *in);
int input_npy_open(struct input *in, struct reason *why);
int input_jpeg_open(struct input *in, const struct input_options *options,
		    struct reason *why);
int input_safetensors_open(struct input *in, struct reason *why);
/* Whether a file that begins like this is one of them; @head: its first bytes. */
bool input_safetensors_likely(const struct input *in, const uint8_t *head,
			      size_t nbytes);

/* Opens a regular file that is not empty; sets @in's fd and file_bytes. */
int input_file_open(struct input *in, const char *path, struct reason *why);
/*
 * Reads exactly @nbytes at @offset.  A file that has become shorter is an
 * error, and so is a stop that is asked for meanwhile.
 */
int input_file_read(const struct input *in, void *dst, uint64_t offset,
		    uint64_t nbytes, int stop, struct reason *why);
/* The checksum of as many bytes there; errors are the same. */
int input_file_checksum(const struct input *in, uint64_t offset,
			uint64_t nbytes, int stop, uint64_t *digest,
			struct reason *why);

#endif /* TARENA_INPUT_KINDS_H */
