/* SPDX-License-Identifier: MIT */
/*
 * Files as tensors.
 *
 * Content decides what a file is (its magic bytes); a name that promises
 * something else is an error rather than a guess:
 *
 *	NPY		keeps dtype and shape
 *	JPEG		decoded to the pixel_values of a Qwen2-VL model
 *	safetensors	many tensors, each with its name, dtype and shape
 *	other		bytes: u8 of shape [file size]
 *
 * Opening reads no more than the header, so that the size of the tensor is
 * known, and absurd files are turned away, before memory is taken for it.
 */
#ifndef TARENA_INPUT_H
#define TARENA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>

#include "complain.h"
#include "safetensors.h"

/**
 * struct input_options - what the user may choose
 * @f32: JPEG: f32 values instead of bf16
 * @max_pixels: JPEG: scale down to at most this many, 0: no limit
 */
struct input_options {
	bool f32;
	uint64_t max_pixels;
};

struct input;

/**
 * struct input_ops - one kind of file
 * @produce: writes the tensor's bytes to @dst; gives up when @stop (see
 *	stop.h) says so.  Not of files with a list
 * @close: frees what the kind holds
 */
struct input_ops {
	int (*produce)(struct input *in, void *dst, int stop,
		       struct reason *why);
	void (*close)(struct input *in);
};

/**
 * struct input - an open file
 * @ops: its kind
 * @fd: descriptor of a regular file
 * @file_bytes: its size when it was opened
 * @list: safetensors: the tensors in it; else none
 * @tensor: what the bytes will be
 * @nbytes: how many; with a list, of the largest
 * @decoded: producing is work (a decoder) rather than a read, and is therefore
 *	best done right into a slot
 * @grid_thw: patches per axis when the tensor is pixel_values, else zeros
 * @about: for people: "an NPY array"
 * @data_offset: NPY: where the data starts
 * @decoder: JPEG: the decoder's own state
 */
struct input {
	const struct input_ops *ops;
	int fd;
	uint64_t file_bytes;
	struct safetensors list;
	struct ta_tensor tensor;
	uint64_t nbytes;
	bool decoded;
	uint32_t grid_thw[3];
	char about[160];
	uint64_t data_offset;
	void *decoder;
};

/* -1 with @why set when the file is not something to send. */
int input_open(struct input *in, const char *path,
	       const struct input_options *options, struct reason *why);
int input_produce(struct input *in, void *dst, int stop, struct reason *why);
void input_close(struct input *in);

#endif /* TARENA_INPUT_H */
