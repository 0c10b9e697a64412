// SPDX-License-Identifier: MIT
/*
 * The header of a safetensors file; see safetensors.h.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "safetensors.h"

/* As much of a name as an error line has room for. */
#define NAME "'%.100s'"

/* All types of the format, which says nothing about the order of their bits. */
static const struct {
	const char *name;
	uint8_t code;
	uint8_t bits;
} dtypes[] = {
	{ "BOOL", TA_BOOL, 8 },
	{ "F4", TA_FLOAT4_E2M1FN, 4 },
	{ "F6_E2M3", TA_FLOAT6_E2M3FN, 6 },
	{ "F6_E3M2", TA_FLOAT6_E3M2FN, 6 },
	{ "U8", TA_UINT, 8 },
	{ "I8", TA_INT, 8 },
	{ "F8_E5M2", TA_FLOAT8_E5M2, 8 },
	{ "F8_E4M3", TA_FLOAT8_E4M3FN, 8 },
	{ "F8_E8M0", TA_FLOAT8_E8M0FNU, 8 },
	{ "F8_E4M3FNUZ", TA_FLOAT8_E4M3FNUZ, 8 },
	{ "F8_E5M2FNUZ", TA_FLOAT8_E5M2FNUZ, 8 },
	{ "I16", TA_INT, 16 },
	{ "U16", TA_UINT, 16 },
	{ "F16", TA_FLOAT, 16 },
	{ "BF16", TA_BFLOAT, 16 },
	{ "I32", TA_INT, 32 },
	{ "U32", TA_UINT, 32 },
	{ "F32", TA_FLOAT, 32 },
	{ "C64", TA_COMPLEX, 64 },
	{ "F64", TA_FLOAT, 64 },
	{ "I64", TA_INT, 64 },
	{ "U64", TA_UINT, 64 },
};

int safetensors_prefix(const uint8_t *prefix, size_t nbytes,
		       uint64_t file_bytes, size_t *length, struct reason *why)
{
	uint64_t value = 0;
	int i;

	if (nbytes < SAFETENSORS_PREFIX_BYTES ||
	    file_bytes < SAFETENSORS_PREFIX_BYTES)
		return reason_set(why, "safetensors file cut short in its "
				       "first eight bytes");
	for (i = SAFETENSORS_PREFIX_BYTES - 1; i >= 0; i--)
		value = value << 8 | prefix[i];
	if (value > SAFETENSORS_HEADER_MAX)
		return reason_set(why,
				  "safetensors header of %" PRIu64
				  " bytes; at most %d are possible",
				  value, SAFETENSORS_HEADER_MAX);
	if (value > file_bytes - SAFETENSORS_PREFIX_BYTES)
		return reason_set(why,
				  "safetensors header of %" PRIu64
				  " bytes is longer than the file",
				  value);
	*length = value;
	return 0;
}

static int parse_dtype(const char *name, const json_t *value,
		       struct ta_tensor *tensor, struct reason *why)
{
	const char *dtype = json_string_value(value);
	size_t i;

	if (!dtype)
		return reason_set(why, "tensor " NAME " has no dtype", name);
	for (i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
		if (strcmp(dtype, dtypes[i].name))
			continue;
		tensor->code = dtypes[i].code;
		tensor->bits = dtypes[i].bits;
		tensor->lanes = 1;
		return 0;
	}
	return reason_set(why, "tensor " NAME ": dtype '%.40s' is not known",
			  name, dtype);
}

static int parse_shape(const char *name, const json_t *value,
		       struct ta_tensor *tensor, struct reason *why)
{
	size_t i, nr = json_array_size(value);

	if (!json_is_array(value))
		return reason_set(why, "tensor " NAME " has no shape", name);
	if (nr > TA_MAX_NDIM)
		return reason_set(why,
				  "tensor " NAME " has %zu dimensions; %d are "
				  "possible",
				  name, nr, TA_MAX_NDIM);
	for (i = 0; i < nr; i++) {
		const json_t *extent = json_array_get(value, i);

		if (!json_is_integer(extent) || json_integer_value(extent) < 0)
			return reason_set(why,
					  "tensor " NAME ": an extent of its "
					  "shape is no natural number",
					  name);
		tensor->shape[i] = json_integer_value(extent);
	}
	tensor->ndim = (uint32_t)nr;
	return 0;
}

/* Whole bytes: elements of less are packed, but tensors are not. */
static int parse_size(const char *name, struct safetensors_tensor *t,
		      struct reason *why)
{
	uint64_t bits = t->tensor.bits;
	uint32_t i;

	if (ta_tensor_nbytes(&t->tensor, &t->nbytes))
		return reason_set(why, "tensor " NAME " is of absurd size",
				  name);
	for (i = 0; i < t->tensor.ndim; i++)
		bits = bits * (uint64_t)t->tensor.shape[i] % 8;
	if (bits % 8)
		return reason_set(
			why, "tensor " NAME " does not end with a byte", name);
	return 0;
}

/* @data: where in the file offsets count from; @left: bytes from there. */
static int parse_offsets(const char *name, const json_t *value, uint64_t data,
			 uint64_t left, struct safetensors_tensor *t,
			 struct reason *why)
{
	const json_t *from = json_array_get(value, 0);
	const json_t *to = json_array_get(value, 1);
	json_int_t start = json_integer_value(from);
	json_int_t end = json_integer_value(to);

	if (json_array_size(value) != 2 || !json_is_integer(from) ||
	    !json_is_integer(to) || start < 0 || end < start)
		return reason_set(why,
				  "tensor " NAME " has no data_offsets that a "
				  "tensor can have",
				  name);
	if ((uint64_t)end > left)
		return reason_set(why,
				  "tensor " NAME " ends at %" PRId64
				  " of %" PRIu64 " bytes of data",
				  name, (int64_t)end, left);
	if ((uint64_t)(end - start) != t->nbytes)
		return reason_set(why,
				  "tensor " NAME
				  ": type and shape take %" PRIu64
				  " bytes, data_offsets %" PRId64,
				  name, t->nbytes, (int64_t)(end - start));
	t->offset = data + (uint64_t)start;
	return 0;
}

static int parse_name(const char *name, struct ta_tensor *tensor,
		      struct reason *why)
{
	size_t length = strlen(name);

	if (length > TA_MAX_TAG)
		return reason_set(why,
				  "tensor " NAME "... has a name of %zu bytes; "
				  "%d are possible",
				  name, length, TA_MAX_TAG);
	memcpy(tensor->tag, name, length);
	tensor->tag_bytes = (uint32_t)length;
	return 0;
}

static int parse_tensor(const char *name, const json_t *value, uint64_t data,
			uint64_t left, struct safetensors_tensor *t,
			struct reason *why)
{
	memset(t, 0, sizeof(*t));
	if (!json_is_object(value))
		return reason_set(why, "tensor " NAME " is no JSON object",
				  name);
	/* What is said of a tensor and not understood could change its bytes. */
	if (json_object_size(value) != 3)
		return reason_set(why,
				  "tensor " NAME " has not just dtype, shape "
				  "and data_offsets",
				  name);
	if (parse_name(name, &t->tensor, why) ||
	    parse_dtype(name, json_object_get(value, "dtype"), &t->tensor,
			why) ||
	    parse_shape(name, json_object_get(value, "shape"), &t->tensor,
			why) ||
	    parse_size(name, t, why))
		return -1;
	return parse_offsets(name, json_object_get(value, "data_offsets"), data,
			     left, t, why);
}

/* The user's own remarks, which are of no use here. */
static int check_metadata(json_t *value, struct reason *why)
{
	const char *key;
	json_t *text;

	if (!json_is_object(value))
		return reason_set(why, "safetensors header: __metadata__ is no "
				       "JSON object");
	json_object_foreach(value, key, text)
	{
		if (!json_is_string(text))
			return reason_set(
				why,
				"safetensors header: __metadata__ " NAME
				" is no string",
				key);
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct safetensors_tensor *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	/* Those without bytes come before what is in the same place. */
	if (x->nbytes != y->nbytes)
		return x->nbytes < y->nbytes ? -1 : 1;
	return memcmp(x->tensor.tag, y->tensor.tag, sizeof(x->tensor.tag));
}

/* Every byte of the data belongs to one tensor. */
static int check_places(const struct safetensors *list, uint64_t data,
			uint64_t file_bytes, struct reason *why)
{
	uint64_t at = data;
	size_t i;

	for (i = 0; i < list->nr; i++) {
		const struct safetensors_tensor *t = &list->tensor[i];
		int length = (int)t->tensor.tag_bytes;

		if (t->offset < at)
			return reason_set(why, "tensor '%.*s' overlaps another",
					  length, t->tensor.tag);
		if (t->offset > at)
			return reason_set(why,
					  "there is a hole of %" PRIu64
					  " bytes before tensor '%.*s'",
					  t->offset - at, length,
					  t->tensor.tag);
		at += t->nbytes;
	}
	if (at != file_bytes)
		return reason_set(why,
				  "%" PRIu64 " bytes belong to no tensor at "
				  "the end of the file",
				  file_bytes - at);
	return 0;
}

static int parse_all(json_t *root, uint64_t data, uint64_t file_bytes,
		     struct safetensors *list, struct reason *why)
{
	const char *name;
	json_t *value;

	list->tensor =
		calloc(json_object_size(root) + 1, sizeof(*list->tensor));
	if (!list->tensor)
		return reason_set(why, "no memory for its list of tensors");
	json_object_foreach(root, name, value)
	{
		if (!strcmp(name, "__metadata__")) {
			if (check_metadata(value, why))
				return -1;
			continue;
		}
		if (parse_tensor(name, value, data, file_bytes - data,
				 &list->tensor[list->nr], why))
			return -1;
		list->nr++;
	}
	qsort(list->tensor, list->nr, sizeof(*list->tensor), by_place);
	return check_places(list, data, file_bytes, why);
}

int safetensors_header(const char *text, size_t length, uint64_t file_bytes,
		       struct safetensors *list, struct reason *why)
{
	json_error_t error;
	json_t *root;
	int err;

	memset(list, 0, sizeof(*list));
	if (length + SAFETENSORS_PREFIX_BYTES > file_bytes)
		return reason_set(why, "safetensors header is longer than the "
				       "file");
	if (!length || *text != '{')
		return reason_set(why, "safetensors header is no JSON object");
	root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return reason_set(why, "safetensors header: %s", error.text);
	err = parse_all(root, SAFETENSORS_PREFIX_BYTES + length, file_bytes,
			list, why);
	json_decref(root);
	if (err)
		safetensors_free(list);
	return err;
}

void safetensors_free(struct safetensors *list)
{
	free(list->tensor);
	memset(list, 0, sizeof(*list));
}
