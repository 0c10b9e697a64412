// SPDX-License-Identifier: MIT
/* Parts are read as documented, whatever their shape and however they are cut. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lib/copy_gather.h>

#include "test.h"

#define KIB ((size_t)1 << 10)
#define ROUNDS 300
#define SOURCE (256 * KIB)
#define MAX_PARTS 12

/* A generator of our own, so that a seed means the same everywhere. */
static uint32_t seed = 20250711;

static uint32_t some(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

static uint8_t *make_source(void)
{
	uint8_t *source = malloc(SOURCE);
	size_t i;

	assert_non_null(source);
	for (i = 0; i < SOURCE; i++)
		source[i] = (uint8_t)(i * 31 + i / 256 * 7 + i / 65521);
	return source;
}

/* A part that lies inside the source. */
static struct ta_part random_part(const uint8_t *source)
{
	static const uint32_t bytes[] = { 1, 2, 3, 64, 100, 1024, 5000, 20000 };
	struct ta_part part;
	size_t room = SOURCE;

	part.row_bytes = some(8) ? some(bytes[some(8)]) + 1 : 0;
	part.rows = some(8) ? 1 + some(9) : some(2);
	switch (some(4)) {
	case 0:
		part.stride = part.row_bytes;
		break;
	case 1:
		part.stride = some((uint32_t)part.row_bytes + 1);
		break;
	default:
		part.stride = part.row_bytes + some(3000);
	}
	if (part.rows)
		room -= (part.rows - 1) * part.stride + part.row_bytes;
	part.data = source + some((uint32_t)room);
	/* Neither is looked at then. */
	if (!part.rows || !part.row_bytes)
		part.data = NULL;
	if (part.rows == 1)
		part.stride = SIZE_MAX;
	return part;
}

static size_t reference(const struct ta_part *parts, uint32_t nr, uint8_t *out)
{
	const uint8_t *data;
	size_t n = 0, row;
	uint32_t i;

	for (i = 0; i < nr; i++)
		for (row = 0; row < parts[i].rows && parts[i].row_bytes;
		     row++) {
			data = parts[i].data;
			memcpy(out + n, data + row * parts[i].stride,
			       parts[i].row_bytes);
			n += parts[i].row_bytes;
		}
	return n;
}

static void random_parts_in_random_ranges_are_as_the_reference(void **state)
{
	const struct ta_copy_kernel *kernel[] = { &ta_copy_plain,
						  ta_copy_best() };
	uint8_t *source = make_source();
	struct ta_part parts[MAX_PARTS];
	uint8_t *want = malloc(MAX_PARTS * SOURCE);
	uint8_t *got = malloc(MAX_PARTS * SOURCE);
	struct ta_cursor cursor;
	size_t n, nbytes, from, to;
	uint32_t nr, i, round;

	(void)state;
	assert_non_null(want);
	assert_non_null(got);
	print_message("# seed %u\n", seed);
	for (round = 0; round < ROUNDS; round++) {
		nr = some(MAX_PARTS + 1);
		for (i = 0; i < nr; i++)
			parts[i] = random_part(source);
		n = reference(parts, nr, want);
		assert_ok(ta_parts_nbytes(parts, nr, &nbytes));
		assert_int_equal(nbytes, n);
		memset(got, 0xa5, n + 1);
		cursor = (struct ta_cursor){ .part = parts };
		/* Ranges as one of several threads takes them: with gaps. */
		for (from = 0; from < n; from = to) {
			to = from + 1 + some(1 + some(30000));
			if (to > n)
				to = n;
			if (some(3))
				ta_gather(&cursor, got + from, from, to,
					  kernel[round % 2]);
			else
				memcpy(got + from, want + from, to - from);
		}
		kernel[round % 2]->fence();
		assert_memory_equal(got, want, n);
		assert_int_equal(got[n], 0xa5);
	}
	free(source);
	free(want);
	free(got);
}

static void nothing_is_zero_bytes(void **state)
{
	const struct ta_part nothing[] = {
		{ NULL, 0, 0, 0 },
		{ NULL, 0, SIZE_MAX, SIZE_MAX },
		{ NULL, SIZE_MAX, 0, SIZE_MAX },
		{ NULL, 1, 0, 0 },
	};
	size_t nbytes = 17;

	(void)state;
	assert_ok(ta_parts_nbytes(NULL, 0, &nbytes));
	assert_int_equal(nbytes, 0);
	nbytes = 17;
	assert_ok(ta_parts_nbytes(nothing, ARRAY_SIZE(nothing), &nbytes));
	assert_int_equal(nbytes, 0);
}

static void bytes_at_null_are_refused(void **state)
{
	const struct ta_part parts[] = { { "x", 1, 1, 0 }, { NULL, 1, 1, 0 } };
	size_t nbytes;

	(void)state;
	assert_err(ta_parts_nbytes(NULL, 1, &nbytes), -EINVAL);
	assert_err(ta_parts_nbytes(parts, 2, &nbytes), -EINVAL);
	assert_ok(ta_parts_nbytes(parts, 1, &nbytes));
}

static void what_cannot_be_addressed_is_refused(void **state)
{
	char byte[2] = { 0 };
	const size_t most = SIZE_MAX - (uintptr_t)byte;
	const struct ta_part over[] = {
		/* rows * row_bytes */
		{ byte, SIZE_MAX, 2, 0 },
		{ byte, (size_t)1 << 40, (size_t)1 << 40, 0 },
		/* where the last row begins, and where it ends */
		{ byte, 3, 1, SIZE_MAX },
		{ byte, 3, 1, SIZE_MAX / 2 + 1 },
		{ byte, 2, 1, SIZE_MAX },
		{ byte, 2, 1, most },
		{ byte, 1, most + 1, 0 },
	};
	const struct ta_part under[] = {
		{ byte, 2, 1, most - 1 },
		{ byte, 1, most, 0 },
		/* Each of many rows, at one place. */
		{ byte, SIZE_MAX, 1, 0 },
		/* One row has no stride. */
		{ byte, 1, 1, SIZE_MAX },
	};
	struct ta_part two[2];
	size_t nbytes, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(over); i++)
		assert_err(ta_parts_nbytes(&over[i], 1, &nbytes), -EOVERFLOW);
	for (i = 0; i < ARRAY_SIZE(under); i++) {
		assert_ok(ta_parts_nbytes(&under[i], 1, &nbytes));
		assert_int_equal(nbytes, under[i].rows * under[i].row_bytes);
	}
	/* The sum. */
	two[0] = under[2];
	two[1] = (struct ta_part){ byte, 1, 1, 0 };
	assert_err(ta_parts_nbytes(two, 2, &nbytes), -EOVERFLOW);
	two[0].rows--;
	assert_ok(ta_parts_nbytes(two, 2, &nbytes));
	assert_int_equal(nbytes, SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			random_parts_in_random_ranges_are_as_the_reference),
		cmocka_unit_test(nothing_is_zero_bytes),
		cmocka_unit_test(bytes_at_null_are_refused),
		cmocka_unit_test(what_cannot_be_addressed_is_refused),
	};

	return run_all(tests, NULL, NULL);
}
