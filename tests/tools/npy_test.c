// SPDX-License-Identifier: MIT
/* NPY files: what is accepted, and every way in which a header can lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tools/input.h>
#include <tools/npy.h>

#include "files.h"
#include "test.h"

/* The dictionary in a buffer of exactly its size, so that sanitizers watch. */
static int parse(const char *text, size_t n, struct ta_tensor *tensor,
		 struct reason *why)
{
	char *exact = malloc(n ? n : 1);
	int err;

	assert_non_null(exact);
	memcpy(exact, text, n);
	err = npy_header(exact, n, tensor, why);
	free(exact);
	return err;
}

static void headers_numpy_writes_are_understood(void **state)
{
	static const struct {
		const char *text;
		uint8_t code, bits;
		uint32_t ndim;
		int64_t shape[TA_MAX_NDIM];
	} good[] = {
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
		  "            \n",
		  TA_FLOAT,
		  32,
		  2,
		  { 3, 4 } },
		{ "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }\n",
		  TA_FLOAT,
		  16,
		  1,
		  { 7 } },
		{ "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n",
		  TA_FLOAT,
		  64,
		  0,
		  { 0 } },
		{ "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 5), }",
		  TA_BOOL,
		  8,
		  2,
		  { 0, 5 } },
		{ "{'descr': '|i1', 'fortran_order': False, 'shape': (1,)}",
		  TA_INT,
		  8,
		  1,
		  { 1 } },
		{ "{'descr':'<u2','fortran_order':False,'shape':(2,2)}",
		  TA_UINT,
		  16,
		  2,
		  { 2, 2 } },
		{ "{\"shape\": (2L, 3L), \"descr\": \"<i8\", "
		  "\"fortran_order\": False}",
		  TA_INT,
		  64,
		  2,
		  { 2, 3 } },
		{ "{'descr': '<c16', 'fortran_order': True, 'shape': (9,), }",
		  TA_COMPLEX,
		  128,
		  1,
		  { 9 } },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': "
		  "(1, 2, 3, 4, 5, 6, 7, 8), }",
		  TA_FLOAT,
		  32,
		  8,
		  { 1, 2, 3, 4, 5, 6, 7, 8 } },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': "
		  "(9223372036854775807,), }",
		  TA_FLOAT,
		  32,
		  1,
		  { INT64_MAX } },
	};
	struct ta_tensor t;
	struct reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(
			parse(good[i].text, strlen(good[i].text), &t, &why), 0);
		assert_int_equal(t.code, good[i].code);
		assert_int_equal(t.bits, good[i].bits);
		assert_int_equal(t.lanes, 1);
		assert_int_equal(t.ndim, good[i].ndim);
		assert_memory_equal(t.shape, good[i].shape, sizeof(t.shape));
	}
}

static void hostile_headers_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} bad[] = {
#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
		{ "", "dictionary" },
		{ " ", "dictionary" },
		{ "{", "dictionary" },
		{ "[]", "dictionary" },
		{ "{}", "lacks" },
		{ "{'descr'", "dictionary" },
		{ "{'descr': ", "malformed descr" },
		{ "{'descr': '<f4", "malformed descr" },
		{ "{'descr': <f4", "malformed descr" },
		{ "{'descr': '<f4'}", "lacks" },
		{ "{'descr': '', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '<', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '>f4', 'fortran_order': False, 'shape': ()}",
		  "big-endian" },
		{ "{'descr': '=f4', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '|f4', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '<b1', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '<f3', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '<f40', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '|O', 'fortran_order': False, 'shape': ()}",
		  "Python objects" },
		{ "{'descr': '<U5', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '|V2', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': ()}",
		  "dtype" },
		{ "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': ()}",
		  "malformed descr" },
		{ "{'descr': '<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4', ",
		  "malformed descr" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, "
		  "'shape': ()}",
		  "records" },
		{ "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
		  "Fortran order" },
		{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
		  "malformed fortran_order" },
		{ "{'descr': '<f4', 'fortran_order': Falsey, 'shape': (2, 3)}",
		  "dictionary" },
		{ "{'descr': '<f4', 'descr': '<f4', 'shape': ()}", "twice" },
		{ "{'descr': '<f4', 'evil': 1}", "unknown key" },
		{ "{'descr': '<f4' 'shape': ()}", "dictionary" },
		{ "{, 'descr': '<f4'}", "dictionary" },
		{ HEAD "()} x", "text after" },
		{ HEAD "()}{}", "text after" },
		{ HEAD "(3)}", "not a tuple" },
		{ HEAD "3}", "not a tuple" },
		{ HEAD "[3]}", "not a tuple" },
		{ HEAD "(3", "malformed shape" },
		{ HEAD "(3,", "malformed shape" },
		{ HEAD "(,)}", "malformed shape" },
		{ HEAD "(3,,)}", "malformed shape" },
		{ HEAD "(3 4)}", "malformed shape" },
		{ HEAD "(-1,)}", "malformed shape" },
		{ HEAD "(+1,)}", "malformed shape" },
		{ HEAD "(1.0,)}", "malformed shape" },
		{ HEAD "(0x10,)}", "malformed shape" },
		{ HEAD "(010,)}", "malformed shape" },
		{ HEAD "(1e3,)}", "malformed shape" },
		{ HEAD "(None,)}", "malformed shape" },
		{ HEAD "(L,)}", "malformed shape" },
		{ HEAD "(9223372036854775808,)}", "malformed shape" },
		{ HEAD "(99999999999999999999999999,)}", "malformed shape" },
		{ HEAD "(1,1,1,1,1,1,1,1,1)}", "more than 8" },
#undef HEAD
	};
	struct ta_tensor t;
	struct reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&why, 0, sizeof(why));
		if (!parse(bad[i].text, strlen(bad[i].text), &t, &why) ||
		    !strstr(why.text, bad[i].why))
			fail_msg("%s: \"%s\"", bad[i].text, why.text);
	}
}

static void a_nul_in_a_string_is_refused(void **state)
{
	static const char text[] = "{'descr': '<f4\0', 'fortran_order': False, "
				   "'shape': (), }";
	struct ta_tensor t;
	struct reason why;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &t, &why), -1);
	assert_non_null(strstr(why.text, "malformed descr"));
}

/* Cut anywhere, a good header is no header: no read beyond, no success. */
static void a_header_cut_anywhere_is_refused(void **state)
{
	static const char text[] = "{'descr': '<f4', 'fortran_order': False, "
				   "'shape': (3, 4), }";
	struct ta_tensor t;
	struct reason why;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(text) - 1; n++)
		assert_int_equal(parse(text, n, &t, &why), -1);
}

/* One wrong byte: the parser may accept or refuse, but must stay inside. */
static void a_header_with_any_byte_changed_is_survived(void **state)
{
	char text[] = "{'descr': '<f4', 'fortran_order': False, "
		      "'shape': (3, 4), }";
	struct ta_tensor t;
	struct reason why;
	size_t i;
	int c;

	(void)state;
	for (i = 0; i < sizeof(text) - 1; i++) {
		char kept = text[i];

		for (c = 0; c < 256; c++) {
			text[i] = c;
			if (!parse(text, sizeof(text) - 1, &t, &why))
				assert_true(t.ndim <= TA_MAX_NDIM);
		}
		text[i] = kept;
	}
}

static void prefixes_are_checked(void **state)
{
	static const struct {
		uint8_t bytes[NPY_PREFIX_BYTES];
		size_t n;
		size_t start, length; /* start 0: refused */
	} prefix[] = {
		{ "\x93NUMPY\1\0\x76\0", 10, 10, 0x76 },
		{ "\x93NUMPY\2\0\x76\0\0\0", 12, 12, 0x76 },
		{ "\x93NUMPY\3\0\x34\x12\0\0", 12, 12, 0x1234 },
		{ "\x93NUMPY\1\0\x76\0", 9, 0, 0 },
		{ "\x93NUMPY\2\0\x76\0\0\0", 11, 0, 0 },
		{ "\x93NUMPY\1", 7, 0, 0 },
		{ "\x93NUMPY", 6, 0, 0 },
		{ "\x93NUMPY\0\0\x76\0", 12, 0, 0 },
		{ "\x93NUMPY\4\0\x76\0", 12, 0, 0 },
		{ "\x93NUMPY\1\1\x76\0", 12, 0, 0 },
		{ "\x93NUMPY\2\0\xff\xff\xff\xff", 12, 0, 0 },
		{ "\x93NUMPY\2\0\0\0\0\x80", 12, 0, 0 },
	};
	size_t start, length, i;
	struct reason why;
	int err;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(prefix); i++) {
		err = npy_prefix(prefix[i].bytes, prefix[i].n, &start, &length,
				 &why);
		assert_int_equal(err, prefix[i].start ? 0 : -1);
		if (err)
			continue;
		assert_int_equal(start, prefix[i].start);
		assert_int_equal(length, prefix[i].length);
	}
}

#define SMALL_HEADER                                                           \
	"\x93NUMPY\1\0\x38\0"                                                  \
	"{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}\n"
#define SMALL_HEADER_BYTES (sizeof(SMALL_HEADER) - 1)

static int open_file(const void *data, size_t n, struct input *in,
		     struct reason *why)
{
	static const struct input_options options;
	char *path = file_path("array.npy");
	int err;

	file_write(path, data, n);
	err = input_open(in, path, &options, why);
	file_remove(path);
	return err;
}

static void a_file_delivers_its_data(void **state)
{
	static const char file[] = SMALL_HEADER "abcdef";
	struct reason why;
	struct input in;
	char data[6];

	(void)state;
	assert_int_equal(open_file(file, sizeof(file) - 1, &in, &why), 0);
	assert_int_equal(in.nbytes, 6);
	assert_int_equal(in.tensor.code, TA_UINT);
	assert_int_equal(in.tensor.bits, 16);
	assert_int_equal(in.tensor.shape[0], 3);
	assert_int_equal(input_produce(&in, data, -1, &why), 0);
	assert_memory_equal(data, "abcdef", 6);
	input_close(&in);
}

static void a_file_of_any_other_size_than_promised_is_refused(void **state)
{
	static const char file[] = SMALL_HEADER "abcdefg";
	struct reason why;
	struct input in;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(file); n++) {
		if (n == SMALL_HEADER_BYTES + 6)
			continue;
		assert_int_equal(open_file(file, n, &in, &why), -1);
	}
	assert_int_equal(open_file(file, SMALL_HEADER_BYTES + 5, &in, &why),
			 -1);
	assert_string_equal(why.text, "NPY header promises 6 bytes of data, "
				      "the file has 5");
}

static void a_product_beyond_64_bits_is_refused(void **state)
{
	static const char file[] =
		"\x93NUMPY\1\0\x5d\0"
		"{'descr': '<f8', 'fortran_order': False, 'shape': "
		"(4611686018427387904, 4611686018427387904)}";
	struct reason why;
	struct input in;

	(void)state;
	assert_int_equal(open_file(file, sizeof(file) - 1, &in, &why), -1);
	assert_non_null(strstr(why.text, "absurd size"));
}

static void a_file_that_shrinks_while_open_is_an_error(void **state)
{
	static const char file[] = SMALL_HEADER "abcdef";
	static const struct input_options options;
	char *path = file_path("array.npy");
	struct reason why;
	struct input in;
	char data[6];

	(void)state;
	file_write(path, file, sizeof(file) - 1);
	assert_int_equal(input_open(&in, path, &options, &why), 0);
	file_write(path, file, sizeof(file) - 3);
	assert_int_equal(input_produce(&in, data, -1, &why), -1);
	assert_non_null(strstr(why.text, "became shorter"));
	input_close(&in);
	file_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_numpy_writes_are_understood),
		cmocka_unit_test(hostile_headers_are_refused_with_a_reason),
		cmocka_unit_test(a_nul_in_a_string_is_refused),
		cmocka_unit_test(a_header_cut_anywhere_is_refused),
		cmocka_unit_test(a_header_with_any_byte_changed_is_survived),
		cmocka_unit_test(prefixes_are_checked),
		cmocka_unit_test(a_file_delivers_its_data),
		cmocka_unit_test(
			a_file_of_any_other_size_than_promised_is_refused),
		cmocka_unit_test(a_product_beyond_64_bits_is_refused),
		cmocka_unit_test(a_file_that_shrinks_while_open_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
