// SPDX-License-Identifier: MIT
/*
 * Writes a safetensors file to standard output: make-safetensors TENSOR...
 *
 * TENSOR is NAME:DTYPE:BITS:SHAPE, such as w:BF16:16:64x32, or with an empty
 * SHAPE a scalar.  The bytes look random and are the same every time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "make-safetensors: %s\n", what);
	exit(2);
}

/* Adds a tensor to the header; returns where it ends. */
static uint64_t describe(json_t *header, char *arg, uint64_t at)
{
	json_t *shape = json_array();
	char *save, *name, *dtype, *text, *extent;
	uint64_t bits, n;

	name = strtok_r(arg, ":", &save);
	dtype = strtok_r(NULL, ":", &save);
	text = strtok_r(NULL, ":", &save);
	must(name && dtype && text, "NAME:DTYPE:BITS:SHAPE");
	bits = strtoull(text, NULL, 10);
	text = strtok_r(NULL, ":", &save);
	for (extent = strtok_r(text ? text : "", "x", &save); extent;
	     extent = strtok_r(NULL, "x", &save)) {
		n = strtoull(extent, NULL, 10);
		bits *= n;
		json_array_append_new(shape, json_integer((json_int_t)n));
	}
	must(bits % 8 == 0, "a tensor has whole bytes");
	must(!json_object_set_new(header, name,
				  json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype,
					    "shape", shape, "data_offsets",
					    (json_int_t)at,
					    (json_int_t)(at + bits / 8))),
	     "no header");
	return at + bits / 8;
}

static void write_bytes(const void *data, size_t n)
{
	must(fwrite(data, 1, n, stdout) == n, "cannot write");
}

/* As the format's own library does: 8 bytes of length, padded to 8 bytes. */
static void write_header(const json_t *header)
{
	char *text = json_dumps(header, JSON_COMPACT);
	uint8_t prefix[8];
	uint64_t length;
	int i;

	must(text != NULL, "no header");
	length = (strlen(text) + 7) / 8 * 8;
	for (i = 0; i < 8; i++)
		prefix[i] = (uint8_t)(length >> 8 * i);
	write_bytes(prefix, sizeof(prefix));
	must(printf("%-*s", (int)length, text) == (int)length, "cannot write");
	free(text);
}

int main(int argc, char **argv)
{
	json_t *header = json_object();
	uint64_t at = 0, x = 1;
	int i;

	for (i = 1; i < argc; i++)
		at = describe(header, argv[i], at);
	write_header(header);
	for (; at; at--) {
		uint8_t byte;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		byte = (uint8_t)(x >> 56);
		write_bytes(&byte, 1);
	}
	must(!fflush(stdout), "cannot write");
	return 0;
}
