// SPDX-License-Identifier: MIT
/* Element types: the library's names, and the struct module's codes. */
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define MAX_NAME 24

/* Filled from the library, which alone knows what there is. */
static struct {
	char name[MAX_NAME];
	uint8_t code;
	uint8_t bits;
} known[96];

static size_t nr_known;

static const struct {
	const char *format;
	uint8_t code;
	uint8_t bits;
} formats[] = {
	{ "?", TA_BOOL, 8 },	  { "b", TA_INT, 8 },
	{ "h", TA_INT, 16 },	  { "i", TA_INT, 32 },
	{ "q", TA_INT, 64 },	  { "B", TA_UINT, 8 },
	{ "H", TA_UINT, 16 },	  { "I", TA_UINT, 32 },
	{ "Q", TA_UINT, 64 },	  { "e", TA_FLOAT, 16 },
	{ "f", TA_FLOAT, 32 },	  { "d", TA_FLOAT, 64 },
	{ "Zf", TA_COMPLEX, 64 }, { "Zd", TA_COMPLEX, 128 },
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

void dtype_init(void)
{
	static const uint8_t widths[] = { 1, 2, 4, 6, 8, 16, 32, 64, 128 };
	struct ta_tensor t = { .lanes = 1 };
	unsigned int code;
	size_t i;

	for (code = TA_INT; code <= TA_FLOAT4_E2M1FN; code++) {
		for (i = 0; i < sizeof(widths); i++) {
			uint64_t nbytes;

			t.code = (uint8_t)code;
			t.bits = widths[i];
			if (ta_tensor_nbytes(&t, &nbytes))
				continue;
			ta_dtype_name(&t, known[nr_known].name, MAX_NAME);
			known[nr_known].code = t.code;
			known[nr_known++].bits = t.bits;
		}
	}
}

/* The lanes after the "x" of a name; 0: not a count. */
static unsigned long lanes_of(const char *x)
{
	char *end;
	unsigned long lanes;

	if (!*x)
		return 1;
	lanes = x[1] >= '1' && x[1] <= '9' ? strtoul(x + 1, &end, 10) : 0;
	return lanes && !*end && lanes <= UINT16_MAX ? lanes : 0;
}

int dtype_parse(const char *name, struct ta_tensor *tensor)
{
	size_t length = strcspn(name, "x");
	unsigned long lanes = lanes_of(name + length);
	size_t i;

	for (i = 0; i < nr_known && lanes; i++) {
		if (strlen(known[i].name) != length ||
		    memcmp(known[i].name, name, length))
			continue;
		tensor->code = known[i].code;
		tensor->bits = known[i].bits;
		tensor->lanes = (uint16_t)lanes;
		return 0;
	}
	PyErr_Format(PyExc_ValueError, "there is no element type '%.100s'",
		     name);
	return -1;
}

PyObject *dtype_name(const struct ta_tensor *tensor)
{
	char name[64];

	ta_dtype_name(tensor, name, sizeof(name));
	return PyUnicode_FromString(name);
}

const char *dtype_format(const struct ta_tensor *tensor)
{
	size_t i;

	for (i = 0; i < NR_FORMATS && tensor->lanes == 1; i++)
		if (formats[i].code == tensor->code &&
		    formats[i].bits == tensor->bits)
			return formats[i].format;
	return NULL;
}

/* The kind of a code whose width is the buffer's. */
static int code_of(const char *format)
{
	if (!strcmp(format, "?"))
		return TA_BOOL;
	if (!strcmp(format, "Zf") || !strcmp(format, "Zd"))
		return TA_COMPLEX;
	if (!*format || format[1])
		return -1;
	if (strchr("bhilqn", *format))
		return TA_INT;
	if (strchr("cBHILQN", *format))
		return TA_UINT;
	return strchr("efd", *format) ? TA_FLOAT : -1;
}

bool dtype_of_format(const Py_buffer *buffer, struct ta_tensor *tensor)
{
	const char *format = buffer->format ? buffer->format : "B";
	bool foreign = strchr(">!", *format) && *format;
	int code;

	if (*format && strchr("@=<>!", *format))
		format++;
	code = code_of(format);
	/* The other byte order has no name here. */
	if (code < 0 || (foreign && buffer->itemsize > 1))
		return false;
	tensor->code = (uint8_t)code;
	tensor->bits = (uint8_t)(buffer->itemsize * 8);
	tensor->lanes = 1;
	return true;
}

PyObject *dtype_bits(PyObject *module, PyObject *name)
{
	struct ta_tensor t = { 0 };
	const char *text;

	(void)module;
	text = PyUnicode_AsUTF8AndSize(name, NULL);
	if (!text || dtype_parse(text, &t))
		return NULL;
	return PyLong_FromUnsignedLong((unsigned long)t.bits * t.lanes);
}
