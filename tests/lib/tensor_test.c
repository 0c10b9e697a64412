// SPDX-License-Identifier: MIT
/* Tensor descriptors: their size, their name, their form in a publication. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <lib/tensor.h>

#include "test.h"

static struct ta_tensor tensor(unsigned int code, unsigned int bits,
			       uint32_t ndim, const int64_t *shape)
{
	struct ta_tensor t = {
		.code = (uint8_t)code,
		.bits = (uint8_t)bits,
		.lanes = 1,
		.ndim = ndim,
	};

	if (ndim)
		memcpy(t.shape, shape, ndim * sizeof(*shape));
	return t;
}

static const struct {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
	const char *name;
	uint64_t bytes_of_seven; /* of a tensor of seven elements */
} types[] = {
	{ TA_INT, 8, 1, "i8", 7 },
	{ TA_INT, 4, 1, "i4", 4 },
	{ TA_INT, 64, 1, "i64", 56 },
	{ TA_UINT, 8, 1, "u8", 7 },
	{ TA_UINT, 1, 1, "u1", 1 },
	{ TA_UINT, 16, 1, "u16", 14 },
	{ TA_FLOAT, 16, 1, "f16", 14 },
	{ TA_FLOAT, 32, 1, "f32", 28 },
	{ TA_FLOAT, 64, 1, "f64", 56 },
	{ TA_FLOAT, 32, 4, "f32x4", 112 },
	{ TA_OPAQUE, 24, 1, "opaque24", 21 },
	{ TA_BFLOAT, 16, 1, "bf16", 14 },
	{ TA_COMPLEX, 64, 1, "c64", 56 },
	{ TA_COMPLEX, 128, 1, "c128", 112 },
	{ TA_BOOL, 8, 1, "bool", 7 },
	{ TA_FLOAT8_E3M4, 8, 1, "f8_e3m4", 7 },
	{ TA_FLOAT8_E4M3, 8, 1, "f8_e4m3", 7 },
	{ TA_FLOAT8_E4M3B11FNUZ, 8, 1, "f8_e4m3b11fnuz", 7 },
	{ TA_FLOAT8_E4M3FN, 8, 1, "f8_e4m3fn", 7 },
	{ TA_FLOAT8_E4M3FNUZ, 8, 1, "f8_e4m3fnuz", 7 },
	{ TA_FLOAT8_E5M2, 8, 1, "f8_e5m2", 7 },
	{ TA_FLOAT8_E5M2FNUZ, 8, 1, "f8_e5m2fnuz", 7 },
	{ TA_FLOAT8_E8M0FNU, 8, 1, "f8_e8m0fnu", 7 },
	{ TA_FLOAT6_E2M3FN, 6, 1, "f6_e2m3fn", 6 },
	{ TA_FLOAT6_E3M2FN, 6, 1, "f6_e3m2fn", 6 },
	{ TA_FLOAT4_E2M1FN, 4, 1, "f4_e2m1fn", 4 },
	{ TA_FLOAT4_E2M1FN, 4, 2, "f4_e2m1fnx2", 7 },
};

static void every_type_has_its_name_and_size(void **state)
{
	const int64_t seven = 7;
	char name[64];
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct ta_tensor t =
			tensor(types[i].code, types[i].bits, 1, &seven);

		t.lanes = types[i].lanes;
		ta_dtype_name(&t, name, sizeof(name));
		assert_string_equal(name, types[i].name);
		assert_ok(ta_tensor_nbytes(&t, &bytes));
		assert_int_equal(bytes, types[i].bytes_of_seven);
	}
}

static void names_are_cut_to_the_buffer(void **state)
{
	struct ta_tensor t = tensor(TA_FLOAT8_E4M3FN, 8, 0, NULL);
	char name[4] = "xxx";

	(void)state;
	ta_dtype_name(&t, name, sizeof(name));
	assert_string_equal(name, "f8_");
	ta_dtype_name(&t, NULL, 0);
	t.code = 99;
	ta_dtype_name(&t, name, sizeof(name));
	assert_string_equal(name, "inv");
}

static void impossible_types_are_malformed(void **state)
{
	static const struct {
		uint8_t code, bits;
	} bad[] = {
		{ TA_INT, 0 },
		{ TA_INT, 7 },
		{ TA_INT, 24 },
		{ TA_FLOAT, 8 },
		{ TA_FLOAT, 80 },
		{ TA_FLOAT, 0 },
		{ TA_OPAQUE, 12 },
		{ TA_OPAQUE, 0 },
		{ TA_BFLOAT, 32 },
		{ TA_COMPLEX, 16 },
		{ TA_COMPLEX, 96 },
		{ TA_BOOL, 1 },
		{ TA_FLOAT8_E5M2, 16 },
		{ TA_FLOAT6_E2M3FN, 8 },
		{ TA_FLOAT4_E2M1FN, 8 },
		{ TA_FLOAT4_E2M1FN + 1, 4 },
		{ 255, 8 },
	};
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ta_tensor t = tensor(bad[i].code, bad[i].bits, 0, NULL);

		if (ta_tensor_nbytes(&t, &bytes) != -EINVAL)
			fail_msg("code %u of %u bits", bad[i].code,
				 bad[i].bits);
	}
}

static void malformed_descriptors_are_refused(void **state)
{
	const int64_t two = 2;
	const struct ta_tensor good = tensor(TA_FLOAT, 32, 1, &two);
	struct ta_tensor t;
	uint64_t bytes;

	(void)state;
	assert_ok(ta_tensor_nbytes(&good, &bytes));
	t = good;
	t.lanes = 0;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t = good;
	t.reserved = 1;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t = good;
	t.ndim = TA_MAX_NDIM + 1;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t.ndim = UINT32_MAX;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t = good;
	t.tag_bytes = TA_MAX_TAG + 1;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t = good;
	t.shape[0] = -1;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
	t.shape[0] = INT64_MIN;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EINVAL);
}

static void scalars_and_empty_tensors_have_sizes(void **state)
{
	const int64_t empty[] = { INT64_MAX, 0, INT64_MAX };
	struct ta_tensor t = tensor(TA_FLOAT, 64, 0, NULL);
	uint64_t bytes;

	(void)state;
	assert_ok(ta_tensor_nbytes(&t, &bytes));
	assert_int_equal(bytes, 8);
	t = tensor(TA_FLOAT, 64, 3, empty);
	assert_ok(ta_tensor_nbytes(&t, &bytes));
	assert_int_equal(bytes, 0);
}

static void absurd_sizes_overflow_instead_of_wrapping(void **state)
{
	const int64_t wraps_to_zero[] = { 1LL << 32, 1LL << 32 };
	const int64_t wraps_in_bits[] = { 1LL << 61 };
	const int64_t largest[] = { (1LL << 61) - 1 };
	struct ta_tensor t = tensor(TA_UINT, 8, 2, wraps_to_zero);
	uint64_t bytes;

	(void)state;
	assert_err(ta_tensor_nbytes(&t, &bytes), -EOVERFLOW);
	t = tensor(TA_UINT, 8, 1, wraps_in_bits);
	assert_err(ta_tensor_nbytes(&t, &bytes), -EOVERFLOW);
	t = tensor(TA_UINT, 8, 1, largest);
	assert_ok(ta_tensor_nbytes(&t, &bytes));
	assert_int_equal(bytes, largest[0]);
}

static void descriptors_survive_the_trip(void **state)
{
	const int64_t shape[TA_MAX_NDIM] = { 1, 2, 3, 1, 2, 1, 1, 5 };
	uint8_t meta[TENSORARENA_META_BYTES];
	struct ta_tensor back;
	uint64_t bytes;
	uint32_t ndim, tag;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (ndim = 0; ndim <= TA_MAX_NDIM; ndim++) {
			struct ta_tensor t = tensor(types[i].code,
						    types[i].bits, ndim, shape);
			int used;

			t.lanes = types[i].lanes;
			tag = ndim * TA_MAX_TAG / TA_MAX_NDIM;
			t.tag_bytes = tag;
			for (k = 0; k < tag; k++)
				t.tag[k] = (uint8_t)(k * 7);
			assert_ok(ta_tensor_nbytes(&t, &bytes));
			memset(meta, 0xee, sizeof(meta));
			used = ta_tensor_encode(&t, bytes, meta);
			assert_in_range(used, 1, TENSORARENA_META_BYTES);
			assert_ok(ta_tensor_decode(meta, (uint32_t)used, bytes,
						   &back));
			assert_memory_equal(&back, &t, sizeof(t));
		}
	}
}

static void no_descriptor_means_bytes(void **state)
{
	uint8_t meta[TENSORARENA_META_BYTES];
	struct ta_tensor t;
	int used;

	(void)state;
	used = ta_tensor_encode(NULL, 12345, meta);
	assert_true(used > 0);
	assert_ok(ta_tensor_decode(meta, (uint32_t)used, 12345, &t));
	assert_int_equal(t.code, TA_UINT);
	assert_int_equal(t.bits, 8);
	assert_int_equal(t.lanes, 1);
	assert_int_equal(t.ndim, 1);
	assert_int_equal(t.shape[0], 12345);
	assert_int_equal(t.tag_bytes, 0);
}

static void descriptor_of_another_size_is_not_encoded(void **state)
{
	const int64_t wraps[] = { 1LL << 32, 1LL << 32 };
	uint8_t meta[TENSORARENA_META_BYTES];
	struct ta_tensor t = tensor(TA_FLOAT, 32, 0, NULL);

	(void)state;
	assert_err(ta_tensor_encode(&t, 3, meta), -EINVAL);
	assert_err(ta_tensor_encode(&t, 5, meta), -EINVAL);
	t.lanes = 0;
	assert_err(ta_tensor_encode(&t, 0, meta), -EINVAL);
	t = tensor(TA_UINT, 8, 2, wraps);
	assert_err(ta_tensor_encode(&t, 0, meta), -EINVAL);
}

/* All descriptors that differ from a good one in one byte, or in length. */
static void hostile_publications_are_refused_or_consistent(void **state)
{
	const int64_t shape[] = { 3, 5 };
	struct ta_tensor t = tensor(TA_FLOAT, 32, 2, shape);
	uint8_t good[TENSORARENA_META_BYTES] = { 0 };
	uint8_t meta[TENSORARENA_META_BYTES];
	struct ta_tensor got;
	uint64_t described;
	uint32_t i, used;
	unsigned int accepted = 0;
	int c;

	(void)state;
	memcpy(t.tag, "tag", 3);
	t.tag_bytes = 3;
	used = (uint32_t)ta_tensor_encode(&t, 60, good);
	for (i = 0; i <= UINT8_MAX + 2; i++)
		if (i != used)
			assert_err(ta_tensor_decode(good, i, 60, &got),
				   -EPROTO);
	assert_err(ta_tensor_decode(good, UINT32_MAX, 60, &got), -EPROTO);
	assert_err(ta_tensor_decode(good, used, 61, &got), -EPROTO);
	assert_err(ta_tensor_decode(good, used, 0, &got), -EPROTO);
	for (i = 0; i < used; i++) {
		for (c = 0; c < 256; c++) {
			memcpy(meta, good, sizeof(meta));
			if (meta[i] == c)
				continue;
			meta[i] = (uint8_t)c;
			if (ta_tensor_decode(meta, used, 60, &got))
				continue;
			/* Another type of the same width, or another tag. */
			accepted++;
			assert_ok(ta_tensor_nbytes(&got, &described));
			assert_int_equal(described, 60);
		}
	}
	assert_true(accepted >= 3 * 255);
	assert_true(accepted < 5 * 256);
}

static void empty_and_foreign_publications_are_refused(void **state)
{
	uint8_t meta[TENSORARENA_META_BYTES] = { 0 };
	struct ta_tensor t;

	(void)state;
	assert_err(ta_tensor_decode(meta, 0, 0, &t), -EPROTO);
	assert_err(ta_tensor_decode(meta, sizeof(meta), 0, &t), -EPROTO);
	memset(meta, 0xff, sizeof(meta));
	assert_err(ta_tensor_decode(meta, sizeof(meta), 0, &t), -EPROTO);
	memcpy(meta, "hello", 6);
	assert_err(ta_tensor_decode(meta, 6, 0, &t), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_its_name_and_size),
		cmocka_unit_test(names_are_cut_to_the_buffer),
		cmocka_unit_test(impossible_types_are_malformed),
		cmocka_unit_test(malformed_descriptors_are_refused),
		cmocka_unit_test(scalars_and_empty_tensors_have_sizes),
		cmocka_unit_test(absurd_sizes_overflow_instead_of_wrapping),
		cmocka_unit_test(descriptors_survive_the_trip),
		cmocka_unit_test(no_descriptor_means_bytes),
		cmocka_unit_test(descriptor_of_another_size_is_not_encoded),
		cmocka_unit_test(
			hostile_publications_are_refused_or_consistent),
		cmocka_unit_test(empty_and_foreign_publications_are_refused),
	};

	return run_all(tests, NULL, NULL);
}
