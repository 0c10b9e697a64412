/* SPDX-License-Identifier: MIT */
/*
 * DLPack's structures, from its specification: how arrays are handed from one
 * library to another.  Layout and numbers are the protocol's.
 */
#ifndef TENSORARENA_DLPACK_H
#define TENSORARENA_DLPACK_H

#include <stdint.h>

/* The version that the structures below are. */
#define DLPACK_MAJOR 1
#define DLPACK_MINOR 0

#define DLPACK_CPU 1
#define DLPACK_READ_ONLY 1u

/* Names of capsules; a consumer renames what it takes over. */
#define DLPACK_NAME "dltensor"
#define DLPACK_VERSIONED_NAME "dltensor_versioned"

struct dlpack_device {
	int32_t type;
	int32_t id;
};

struct dlpack_dtype {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
};

/* @strides: in elements */
struct dlpack_tensor {
	void *data;
	struct dlpack_device device;
	int32_t ndim;
	struct dlpack_dtype dtype;
	int64_t *shape;
	int64_t *strides;
	uint64_t byte_offset;
};

/* @deleter: called once by whoever has taken it over, in any thread */
struct dlpack_managed {
	struct dlpack_tensor tensor;
	void *context;
	void (*deleter)(struct dlpack_managed *self);
};

struct dlpack_versioned {
	uint32_t major;
	uint32_t minor;
	void *context;
	void (*deleter)(struct dlpack_versioned *self);
	uint64_t flags;
	struct dlpack_tensor tensor;
};

#endif /* TENSORARENA_DLPACK_H */
