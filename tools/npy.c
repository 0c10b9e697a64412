// SPDX-License-Identifier: MIT
/*
 * The header of an NPY file; see npy.h.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "npy.h"

const uint8_t npy_magic[NPY_MAGIC_BYTES] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

/* The text not yet read. */
struct cursor {
	const char *at;
	const char *end;
};

enum {
	SEEN_DESCR = 1 << 0,
	SEEN_ORDER = 1 << 1,
	SEEN_SHAPE = 1 << 2,
	SEEN_ALL = SEEN_DESCR | SEEN_ORDER | SEEN_SHAPE,
};

int npy_prefix(const uint8_t *prefix, size_t nbytes, size_t *start,
	       size_t *length, struct reason *why)
{
	int major, minor;

	if (nbytes < NPY_MAGIC_BYTES + 2)
		return reason_set(why, "NPY file cut short in its header");
	major = prefix[NPY_MAGIC_BYTES];
	minor = prefix[NPY_MAGIC_BYTES + 1];
	if (major < 1 || major > 3 || minor)
		return reason_set(why, "NPY version %d.%d is not known here",
				  major, minor);

	*start = major == 1 ? 10 : 12;
	if (nbytes < *start)
		return reason_set(why, "NPY file cut short in its header");
	*length = prefix[8] | (size_t)prefix[9] << 8;
	if (major > 1)
		*length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
	if (*length > NPY_HEADER_MAX)
		return reason_set(why,
				  "NPY header of %zu bytes; no real one "
				  "is that long",
				  *length);
	return 0;
}

static void skip_space(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
				  *c->at == '\t' || *c->at == '\r'))
		c->at++;
}

/* Takes @text if it comes next, after white space. */
static bool take(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	skip_space(c);
	if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n))
		return false;
	c->at += n;
	return true;
}

/* A quoted string without escapes, which numpy never needs. */
static bool take_string(struct cursor *c, char *buf, size_t size)
{
	const char *from, *to;
	char quote;

	skip_space(c);
	if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
		return false;
	quote = *c->at;
	from = c->at + 1;
	to = memchr(from, quote, c->end - from);
	if (!to || (size_t)(to - from) >= size ||
	    memchr(from, '\\', to - from) || memchr(from, '\0', to - from))
		return false;
	memcpy(buf, from, to - from);
	buf[to - from] = '\0';
	c->at = to + 1;
	return true;
}

static bool is_digit(const struct cursor *c)
{
	return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* A non-negative integer that int64_t holds; Python 2 wrote some with an L. */
static bool take_extent(struct cursor *c, int64_t *value)
{
	const char *start;
	int64_t v = 0;

	skip_space(c);
	start = c->at;
	for (; is_digit(c); c->at++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, *c->at - '0', &v))
			return false;
	}
	if (c->at == start || (*start == '0' && c->at - start > 1))
		return false;
	if (c->at < c->end && *c->at == 'L')
		c->at++;
	*value = v;
	return true;
}

static int parse_shape(struct cursor *c, struct ta_tensor *tensor,
		       struct reason *why)
{
	bool comma = true;

	tensor->ndim = 0;
	if (!take(c, "("))
		return reason_set(why, "NPY header: shape is not a tuple");
	while (!take(c, ")")) {
		if (!comma)
			return reason_set(why, "NPY header: malformed shape");
		if (tensor->ndim == TA_MAX_NDIM)
			return reason_set(why,
					  "NPY array of more than %d "
					  "dimensions",
					  TA_MAX_NDIM);
		if (!take_extent(c, &tensor->shape[tensor->ndim]))
			return reason_set(why, "NPY header: malformed shape");
		tensor->ndim++;
		comma = take(c, ",");
	}
	/* "(3)" is a number in brackets; a tuple of one is "(3,)". */
	if (tensor->ndim == 1 && !comma)
		return reason_set(why, "NPY header: shape is not a tuple");
	return 0;
}

static const struct {
	const char *name;
	uint8_t code;
	uint8_t bits;
} dtypes[] = {
	{ "b1", TA_BOOL, 8 },	  { "i1", TA_INT, 8 },
	{ "i2", TA_INT, 16 },	  { "i4", TA_INT, 32 },
	{ "i8", TA_INT, 64 },	  { "u1", TA_UINT, 8 },
	{ "u2", TA_UINT, 16 },	  { "u4", TA_UINT, 32 },
	{ "u8", TA_UINT, 64 },	  { "f2", TA_FLOAT, 16 },
	{ "f4", TA_FLOAT, 32 },	  { "f8", TA_FLOAT, 64 },
	{ "c8", TA_COMPLEX, 64 }, { "c16", TA_COMPLEX, 128 },
};

static int parse_descr(struct cursor *c, struct ta_tensor *tensor,
		       struct reason *why)
{
	char descr[32];
	size_t i;

	skip_space(c);
	if (c->at < c->end && *c->at == '[')
		return reason_set(why, "NPY array of records; a tensor has one "
				       "type");
	if (!take_string(c, descr, sizeof(descr)))
		return reason_set(why, "NPY header: malformed descr");
	if (descr[0] == '>')
		return reason_set(why,
				  "NPY array is big-endian (%s); save it "
				  "little-endian",
				  descr);
	if (descr[0] && descr[1] == 'O')
		return reason_set(why, "NPY array of Python objects");

	for (i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
		/* '|' says that byte order does not apply. */
		char order = dtypes[i].bits > 8 ? '<' : '|';

		if (descr[0] != order || strcmp(descr + 1, dtypes[i].name))
			continue;
		tensor->code = dtypes[i].code;
		tensor->bits = dtypes[i].bits;
		tensor->lanes = 1;
		return 0;
	}
	return reason_set(why, "NPY dtype '%s' is not a tensor's", descr);
}

static int parse_order(struct cursor *c, bool *fortran, struct reason *why)
{
	*fortran = take(c, "True");
	if (!*fortran && !take(c, "False"))
		return reason_set(why, "NPY header: malformed fortran_order");
	return 0;
}

static int parse_entry(struct cursor *c, struct ta_tensor *tensor,
		       bool *fortran, unsigned int *seen, struct reason *why)
{
	unsigned int what;
	char key[32];

	if (!take_string(c, key, sizeof(key)) || !take(c, ":"))
		return reason_set(why, "NPY header is not a dictionary");
	if (!strcmp(key, "descr"))
		what = SEEN_DESCR;
	else if (!strcmp(key, "fortran_order"))
		what = SEEN_ORDER;
	else if (!strcmp(key, "shape"))
		what = SEEN_SHAPE;
	else
		return reason_set(why, "NPY header: unknown key '%s'", key);
	if (*seen & what)
		return reason_set(why, "NPY header: '%s' given twice", key);
	*seen |= what;

	if (what == SEEN_DESCR)
		return parse_descr(c, tensor, why);
	if (what == SEEN_ORDER)
		return parse_order(c, fortran, why);
	return parse_shape(c, tensor, why);
}

int npy_header(const char *text, size_t length, struct ta_tensor *tensor,
	       struct reason *why)
{
	struct cursor c = { .at = text, .end = text + length };
	unsigned int seen = 0;
	bool fortran = false;
	bool comma = true;

	memset(tensor, 0, sizeof(*tensor));
	if (!take(&c, "{"))
		return reason_set(why, "NPY header is not a dictionary");
	while (!take(&c, "}")) {
		if (!comma)
			return reason_set(why, "NPY header is not a "
					       "dictionary");
		if (parse_entry(&c, tensor, &fortran, &seen, why))
			return -1;
		comma = take(&c, ",");
	}
	skip_space(&c);
	if (c.at != c.end)
		return reason_set(why, "NPY header: text after the dictionary");
	if (seen != SEEN_ALL)
		return reason_set(why, "NPY header lacks descr, fortran_order "
				       "or shape");
	/* With one dimension or none both orders are the same. */
	if (fortran && tensor->ndim > 1)
		return reason_set(why, "NPY array in Fortran order; save "
				       "numpy.ascontiguousarray() of it");
	return 0;
}
