/* SPDX-License-Identifier: MIT */
/* What the tool's reports in JSON are made of. */
#ifndef TARENA_JSON_PARTS_H
#define TARENA_JSON_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <tensorarena.h>

#include "complain.h"

void set_integer(json_t *object, const char *key, uint64_t value);
/* To the nanosecond, which is what the clock gives, or a millionth. */
void set_real(json_t *object, const char *key, double value);
/* JSON is UTF-8; the bytes of a string that is not are shown as '?'. */
void set_string(json_t *object, const char *key, const char *value);
void set_boolean(json_t *object, const char *key, bool value);
void set_integers(json_t *object, const char *key, const int64_t *value,
		  size_t n);
/* A checksum, under its own name. */
void set_digest(json_t *object, uint64_t digest);
/* Its size, dtype and shape. */
void set_tensor(json_t *object, const struct ta_tensor *tensor,
		uint64_t nbytes);
/* Prints and frees a report. */
int json_report(json_t *object, struct reason *why);

#endif /* TARENA_JSON_PARTS_H */
