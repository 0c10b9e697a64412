// SPDX-License-Identifier: MIT
/* See json_parts.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "json_parts.h"

/* As printed, digits; without it 0.1 is 0.10000000000000001. */
#define REAL_DIGITS 12

/* The string with what is not ASCII replaced. */
static json_t *ascii_json(const char *value)
{
	char *ascii = strdup(value);
	json_t *string;
	char *c;

	if (!ascii)
		return NULL;
	for (c = ascii; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	string = json_string(ascii);
	free(ascii);
	return string;
}

void set_integer(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_real(round(value * 1e6) / 1e6));
}

void set_string(json_t *object, const char *key, const char *value)
{
	json_t *string = json_string(value);

	json_object_set_new(object, key, string ? string : ascii_json(value));
}

void set_boolean(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

void set_integers(json_t *object, const char *key, const int64_t *value,
		  size_t n)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(array, json_integer(value[i]));
	json_object_set_new(object, key, array);
}

void set_digest(json_t *object, uint64_t digest)
{
	char text[32];

	snprintf(text, sizeof(text), "%016" PRIx64, digest);
	set_string(object, CHECKSUM_NAME, text);
}

void set_tensor(json_t *object, const struct ta_tensor *tensor, uint64_t nbytes)
{
	char dtype[32];

	ta_dtype_name(tensor, dtype, sizeof(dtype));
	set_integer(object, "bytes", nbytes);
	set_string(object, "dtype", dtype);
	set_integers(object, "shape", tensor->shape, tensor->ndim);
}

int json_report(json_t *object, struct reason *why)
{
	int err = json_dumpf(object, stdout,
			     JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));

	json_decref(object);
	if (err)
		return reason_set(why, "cannot write the report");
	putchar('\n');
	return 0;
}
