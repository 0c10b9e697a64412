// SPDX-License-Identifier: MIT
/* Headers of safetensors files: what is understood, and what is refused. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tools/input.h>
#include <tools/safetensors.h>

#include "files.h"
#include "test.h"

static int parse(const char *text, size_t length, uint64_t data,
		 struct safetensors *list, struct reason *why)
{
	/* On the heap, so that a byte too far is noticed. */
	char *copy = malloc(length);
	int err;

	memcpy(copy, text, length);
	err = safetensors_header(copy, length, 8 + length + data, list, why);
	free(copy);
	return err;
}

static void every_dtype_is_understood(void **state)
{
	static const struct {
		const char *name;
		uint8_t code, bits;
		unsigned int bytes; /* of eight elements */
	} dtype[] = {
		{ "BOOL", TA_BOOL, 8, 8 },
		{ "F4", TA_FLOAT4_E2M1FN, 4, 4 },
		{ "F6_E2M3", TA_FLOAT6_E2M3FN, 6, 6 },
		{ "F6_E3M2", TA_FLOAT6_E3M2FN, 6, 6 },
		{ "U8", TA_UINT, 8, 8 },
		{ "I8", TA_INT, 8, 8 },
		{ "F8_E5M2", TA_FLOAT8_E5M2, 8, 8 },
		{ "F8_E4M3", TA_FLOAT8_E4M3FN, 8, 8 },
		{ "F8_E8M0", TA_FLOAT8_E8M0FNU, 8, 8 },
		{ "F8_E4M3FNUZ", TA_FLOAT8_E4M3FNUZ, 8, 8 },
		{ "F8_E5M2FNUZ", TA_FLOAT8_E5M2FNUZ, 8, 8 },
		{ "I16", TA_INT, 16, 16 },
		{ "U16", TA_UINT, 16, 16 },
		{ "F16", TA_FLOAT, 16, 16 },
		{ "BF16", TA_BFLOAT, 16, 16 },
		{ "I32", TA_INT, 32, 32 },
		{ "U32", TA_UINT, 32, 32 },
		{ "F32", TA_FLOAT, 32, 32 },
		{ "C64", TA_COMPLEX, 64, 64 },
		{ "F64", TA_FLOAT, 64, 64 },
		{ "I64", TA_INT, 64, 64 },
		{ "U64", TA_UINT, 64, 64 },
	};
	struct safetensors list;
	struct reason why;
	char text[256];
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(dtype); i++) {
		n = snprintf(text, sizeof(text),
			     "{\"x\":{\"dtype\":\"%s\",\"shape\":[2,4],"
			     "\"data_offsets\":[0,%u]}}  ",
			     dtype[i].name, dtype[i].bytes);
		if (parse(text, (size_t)n, dtype[i].bytes, &list, &why))
			fail_msg("%s: %s", dtype[i].name, why.text);
		assert_int_equal(list.nr, 1);
		assert_int_equal(list.tensor[0].tensor.code, dtype[i].code);
		assert_int_equal(list.tensor[0].tensor.bits, dtype[i].bits);
		assert_int_equal(list.tensor[0].tensor.lanes, 1);
		assert_int_equal(list.tensor[0].tensor.ndim, 2);
		assert_int_equal(list.tensor[0].tensor.shape[1], 4);
		assert_int_equal(list.tensor[0].nbytes, dtype[i].bytes);
		assert_int_equal(list.tensor[0].offset, 8 + n);
		safetensors_free(&list);
	}
}

#define T(name, dtype, shape, from, to)                                        \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape               \
	",\"data_offsets\":[" #from "," #to "]}"

static void assert_name(const struct safetensors_tensor *t, const char *name)
{
	assert_int_equal(t->tensor.tag_bytes, strlen(name));
	assert_memory_equal(t->tensor.tag, name, strlen(name));
}

static void tensors_come_in_the_order_of_the_file(void **state)
{
	static const char text[] =
		"{\"__metadata__\":{\"format\":\"pt\",\"\":\"\"}," T(
			"z", "F32", "[2]", 4,
			12) "," T("none", "U8", "[3,0]", 4,
				  4) "," T("scalar", "I16", "[]", 12,
					   14) "," T("\303\274ber.\\u00fc\\n",
						     "U8", "[1,2,2,1]", 0,
						     4) "," T("", "U8", "[0]",
							      14, 14) "}";
	struct safetensors list;
	struct reason why;

	(void)state;
	if (parse(text, sizeof(text) - 1, 14, &list, &why))
		fail_msg("%s", why.text);
	assert_int_equal(list.nr, 5);
	assert_name(&list.tensor[0], "\303\274ber.\303\274\n");
	assert_name(&list.tensor[1], "none");
	assert_name(&list.tensor[2], "z");
	assert_name(&list.tensor[3], "scalar");
	assert_name(&list.tensor[4], "");
	assert_int_equal(list.tensor[0].offset, 8 + sizeof(text) - 1);
	assert_int_equal(list.tensor[3].offset, 8 + sizeof(text) - 1 + 12);
	assert_int_equal(list.tensor[3].tensor.ndim, 0);
	assert_int_equal(list.tensor[1].nbytes, 0);
	safetensors_free(&list);
}

static void a_file_may_be_without_tensors(void **state)
{
	struct safetensors list;
	struct reason why;

	(void)state;
	assert_int_equal(parse("{}", 2, 0, &list, &why), 0);
	assert_int_equal(list.nr, 0);
	safetensors_free(&list);
}

static void hostile_headers_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text;
		uint64_t data;
		const char *why;
	} bad[] = {
		{ "", 0, "no JSON object" },
		{ " {}", 0, "no JSON object" },
		{ "[]", 0, "no JSON object" },
		{ "null", 0, "no JSON object" },
		{ "{", 0, "safetensors header: " },
		{ "{}x", 0, "safetensors header: " },
		{ "{}{}", 0, "safetensors header: " },
		{ "{'a':1}", 0, "safetensors header: " },
		{ "{\"a\":1,}", 0, "safetensors header: " },
		{ "{\"a\":1}", 0, "'a' is no JSON object" },
		{ "{\"a\":[]}", 0, "'a' is no JSON object" },
		{ "{\"a\":{}}", 0, "not just dtype" },
		{ "{\"\\u0000\":{}}", 0, "safetensors header: " },
		{ "{\"\377\":{}}", 0, "safetensors header: " },
		{ "{\"\303\":{}}", 0, "safetensors header: " },
		{ "{\"\355\240\200\":{}}", 0, "safetensors header: " },
		{ "{\"\\ud800\":{}}", 0, "safetensors header: " },
		{ "{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1,
						      2) "}",
		  2, "duplicate" },
		{ "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
		  "\"data_offsets\":[0,1]}}",
		  1, "duplicate" },
		{ "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1,
		  "has no dtype" },
		{ "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}",
		  1, "has no dtype" },
		{ "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"x\":0}}",
		  1, "has no shape" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"x\":[0,1]}}", 1,
		  "no data_offsets" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
		  "\"data_offsets\":[0,1],\"codec\":\"zip\"}}",
		  1, "not just dtype" },
		{ "{" T("a", "U9", "[1]", 0, 1) "}", 1, "'U9' is not known" },
		{ "{" T("a", "u8", "[1]", 0, 1) "}", 1, "'u8' is not known" },
		{ "{" T("a", "", "[1]", 0, 1) "}", 1, "'' is not known" },
		{ "{" T("a", "U8", "1", 0, 1) "}", 1, "has no shape" },
		{ "{" T("a", "U8", "{}", 0, 1) "}", 1, "has no shape" },
		{ "{" T("a", "U8", "[-1]", 0, 1) "}", 1, "natural number" },
		{ "{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "natural number" },
		{ "{" T("a", "U8", "[1e0]", 0, 1) "}", 1, "natural number" },
		{ "{" T("a", "U8", "[\"1\"]", 0, 1) "}", 1, "natural number" },
		{ "{" T("a", "U8", "[null]", 0, 1) "}", 1, "natural number" },
		{ "{" T("a", "U8", "[01]", 0, 1) "}", 1,
		  "safetensors header: " },
		{ "{" T("a", "U8", "[9223372036854775808]", 0, 1) "}", 1,
		  "safetensors header: " },
		{ "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1,
		  "9 dimensions" },
		{ "{" T("a", "U8", "[4294967296,4294967296]", 0, 1) "}", 1,
		  "absurd" },
		{ "{" T("a", "U64", "[9223372036854775807]", 0, 1) "}", 1,
		  "absurd" },
		{ "{" T("a", "F4", "[3]", 0, 2) "}", 2, "end with a byte" },
		{ "{" T("a", "F6_E2M3", "[2]", 0, 2) "}", 2,
		  "end with a byte" },
		{ "{" T("a", "U8", "[1]", -1, 0) "}", 1, "no data_offsets" },
		{ "{" T("a", "U8", "[1]", 1, 0) "}", 1, "no data_offsets" },
		{ "{" T("a", "U8", "[1]", 0.0, 1) "}", 1, "no data_offsets" },
		{ "{" T("a", "U8", "[1]", 0, null) "}", 1, "no data_offsets" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
		  "\"data_offsets\":[0]}}",
		  1, "no data_offsets" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
		  "\"data_offsets\":[0,1,1]}}",
		  1, "no data_offsets" },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
		  "\"data_offsets\":{}}}",
		  1, "no data_offsets" },
		{ "{" T("a", "U8", "[2]", 0, 2) "}", 1, "ends at 2 of 1" },
		{ "{" T("a", "U8", "[1]", 0, 9223372036854775807) "}", 1,
		  "ends at 9223372036854775807 of 1" },
		{ "{" T("a", "U8", "[2]", 0, 1) "}", 1,
		  "take 2 bytes, data_offsets 1" },
		{ "{" T("a", "F32", "[1]", 0, 1) "}", 1,
		  "take 4 bytes, data_offsets 1" },
		{ "{" T("a", "U8", "[]", 0, 0) "}", 1,
		  "take 1 bytes, data_offsets 0" },
		{ "{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 1,
						      3) "}",
		  3, "'b' overlaps" },
		{ "{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 0,
						      2) "}",
		  2, "'b' overlaps" },
		{ "{" T("a", "U8", "[3]", 0, 3) "," T("b", "U8", "[0]", 1,
						      1) "}",
		  3, "'b' overlaps" },
		{ "{" T("a", "U8", "[1]", 1, 2) "}", 2,
		  "hole of 1 bytes before tensor 'a'" },
		{ "{" T("a", "U8", "[1]", 0, 1) "," T("b", "U8", "[1]", 4,
						      5) "}",
		  5, "hole of 3 bytes before tensor 'b'" },
		{ "{" T("a", "U8", "[1]", 0, 1) "}", 9,
		  "8 bytes belong to no tensor" },
		{ "{}", 1, "1 bytes belong to no tensor" },
		{ "{\"__metadata__\":1}", 0, "__metadata__" },
		{ "{\"__metadata__\":[]}", 0, "__metadata__" },
		{ "{\"__metadata__\":{\"a\":1}}", 0, "'a' is no string" },
		{ "{\"__metadata__\":{\"a\":null}}", 0, "'a' is no string" },
		{ "{\"__metadata__\":{\"a\":{}}}", 0, "'a' is no string" },
		{ "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0,
		  "duplicate" },
	};
	struct safetensors list;
	struct reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&why, 0, sizeof(why));
		if (!parse(bad[i].text, strlen(bad[i].text), bad[i].data, &list,
			   &why) ||
		    !strstr(why.text, bad[i].why))
			fail_msg("%s: \"%s\"", bad[i].text, why.text);
		assert_null(list.tensor);
	}
}

static void a_nul_is_refused(void **state)
{
	static const char text[] = "{}\0\0\0\0\0\0";
	struct safetensors list;
	struct reason why;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, 0, &list, &why), -1);
}

static void a_name_that_no_tag_holds_is_refused(void **state)
{
	char name[TA_MAX_TAG + 2] = { 0 };
	struct safetensors list;
	struct reason why;
	char text[512];
	int n;

	(void)state;
	memset(name, 'n', TA_MAX_TAG);
	n = snprintf(text, sizeof(text),
		     "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
		     "\"data_offsets\":[0,1]}}",
		     name);
	assert_int_equal(parse(text, (size_t)n, 1, &list, &why), 0);
	assert_name(&list.tensor[0], name);
	safetensors_free(&list);

	name[TA_MAX_TAG] = 'n';
	n = snprintf(text, sizeof(text),
		     "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
		     "\"data_offsets\":[0,1]}}",
		     name);
	assert_int_equal(parse(text, (size_t)n, 1, &list, &why), -1);
	assert_non_null(strstr(why.text, "a name of 161 bytes; 160"));
}

static void nesting_without_end_is_refused(void **state)
{
	const size_t depth = 1000000;
	struct safetensors list;
	struct reason why;
	char *text = malloc(depth);

	(void)state;
	memset(text, '[', depth);
	memcpy(text, "{\"a\":", 5);
	assert_int_equal(parse(text, depth, 0, &list, &why), -1);
	assert_non_null(strstr(why.text, "depth"));
	free(text);
}

static const char good[] = "{\"__metadata__\":{\"k\":\"v\"}," T(
	"a", "F32", "[3,4]", 0, 48) "," T("b", "BF16", "[2]", 48, 52) "}";

/* Cut anywhere, a good header is no header. */
static void a_header_cut_anywhere_is_refused(void **state)
{
	struct safetensors list;
	struct reason why;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(good) - 1; n++)
		assert_int_equal(parse(good, n, 52, &list, &why), -1);
	assert_int_equal(parse(good, n, 52, &list, &why), 0);
	safetensors_free(&list);
}

/* One wrong byte: what is accepted covers the file exactly, all the same. */
static void a_header_with_any_byte_changed_is_survived(void **state)
{
	char text[sizeof(good)];
	struct safetensors list;
	struct reason why;
	uint64_t at;
	size_t i, k;
	int c;

	(void)state;
	memcpy(text, good, sizeof(good));
	for (i = 0; i < sizeof(good) - 1; i++) {
		for (c = 0; c < 256; c++) {
			text[i] = (char)c;
			if (parse(text, sizeof(good) - 1, 52, &list, &why))
				continue;
			at = 8 + sizeof(good) - 1;
			for (k = 0; k < list.nr; k++) {
				assert_int_equal(list.tensor[k].offset, at);
				at += list.tensor[k].nbytes;
			}
			assert_int_equal(at, 8 + sizeof(good) - 1 + 52);
			safetensors_free(&list);
		}
		text[i] = good[i];
	}
}

static void the_length_is_checked(void **state)
{
	static const struct {
		uint8_t bytes[8];
		size_t n;
		uint64_t file_bytes;
		const char *why; /* NULL: it is good */
		size_t length;
	} prefix[] = {
		{ "\2\0\0\0\0\0\0\0", 8, 10, NULL, 2 },
		{ "\0\0\0\0\0\0\0\0", 8, 8, NULL, 0 },
		{ "\0\341\365\5\0\0\0\0", 8, 100000008, NULL, 100000000 },
		{ "\1\341\365\5\0\0\0\0", 8, 200000000, "100000001 bytes", 0 },
		{ "\377\377\377\377\377\377\377\377", 8, 100,
		  "18446744073709551615 bytes", 0 },
		{ "\0\0\0\0\0\0\0\200", 8, 100, "9223372036854775808 bytes",
		  0 },
		{ "\3\0\0\0\0\0\0\0", 8, 10, "longer than the file", 0 },
		{ "\0\341\365\5\0\0\0\0", 8, 100000007, "longer than the file",
		  0 },
		{ "\2\0\0\0\0\0\0", 7, 7, "cut short", 0 },
		{ "", 0, 0, "cut short", 0 },
		{ "\2\0\0\0\0\0\0\0", 8, 7, "cut short", 0 },
	};
	struct reason why;
	size_t i, length;
	int err;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(prefix); i++) {
		err = safetensors_prefix(prefix[i].bytes, prefix[i].n,
					 prefix[i].file_bytes, &length, &why);
		assert_int_equal(err, prefix[i].why ? -1 : 0);
		if (err && !strstr(why.text, prefix[i].why))
			fail_msg("%s", why.text);
		if (!err)
			assert_int_equal(length, prefix[i].length);
	}
}

static void a_header_longer_than_its_file_is_refused(void **state)
{
	struct safetensors list;
	struct reason why;

	(void)state;
	assert_int_equal(safetensors_header("{}", 2, 9, &list, &why), -1);
	assert_int_equal(safetensors_header("{}", 2, 0, &list, &why), -1);
}

/* ---- files ---- */

static int open_file(const char *name, const void *data, size_t n,
		     struct input *in, struct reason *why)
{
	static const struct input_options options;
	char *path = file_path(name);
	int err;

	file_write(path, data, n);
	err = input_open(in, path, &options, why);
	file_remove(path);
	return err;
}

#define SMALL                                                                  \
	"\110\0\0\0\0\0\0\0{" T("a", "U8", "[3]", 0,                           \
				3) "                   }abc"

static void a_file_is_known_by_its_beginning(void **state)
{
	static const char file[] = SMALL;
	struct reason why;
	struct input in;

	(void)state;
	assert_int_equal(file[0], (int)sizeof(file) - 1 - 8 - 3);
	if (open_file("model", file, sizeof(file) - 1, &in, &why))
		fail_msg("%s", why.text);
	assert_int_equal(in.list.nr, 1);
	assert_int_equal(in.nbytes, 3);
	assert_string_equal(in.about, "a safetensors file of 1 tensor");
	input_close(&in);
}

static void a_name_that_promises_one_is_held_to_it(void **state)
{
	struct reason why;
	struct input in;

	(void)state;
	assert_int_equal(open_file("model.safetensors", "text", 4, &in, &why),
			 -1);
	assert_non_null(strstr(why.text, "cut short"));
	assert_int_equal(
		open_file("model.safetensors", "long text", 9, &in, &why), -1);
	assert_non_null(strstr(why.text, "bytes"));
	/* By any other name it is just bytes. */
	assert_int_equal(open_file("model", "long text", 9, &in, &why), 0);
	assert_int_equal(in.list.nr, 0);
	input_close(&in);
}

static void a_file_of_any_other_size_is_refused(void **state)
{
	static const char file[] = SMALL "d";
	struct reason why;
	struct input in;
	size_t n;

	(void)state;
	for (n = 1; n < sizeof(file); n++) {
		if (n == sizeof(file) - 2)
			continue;
		assert_int_equal(open_file("m.safetensors", file, n, &in, &why),
				 -1);
	}
}

static void a_file_without_tensors_is_nothing_to_send(void **state)
{
	static const char file[] = "\2\0\0\0\0\0\0\0{}";
	struct reason why;
	struct input in;

	(void)state;
	assert_int_equal(open_file("m", file, sizeof(file) - 1, &in, &why), -1);
	assert_non_null(strstr(why.text, "without tensors"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype_is_understood),
		cmocka_unit_test(tensors_come_in_the_order_of_the_file),
		cmocka_unit_test(a_file_may_be_without_tensors),
		cmocka_unit_test(hostile_headers_are_refused_with_a_reason),
		cmocka_unit_test(a_nul_is_refused),
		cmocka_unit_test(a_name_that_no_tag_holds_is_refused),
		cmocka_unit_test(nesting_without_end_is_refused),
		cmocka_unit_test(a_header_cut_anywhere_is_refused),
		cmocka_unit_test(a_header_with_any_byte_changed_is_survived),
		cmocka_unit_test(the_length_is_checked),
		cmocka_unit_test(a_header_longer_than_its_file_is_refused),
		cmocka_unit_test(a_file_is_known_by_its_beginning),
		cmocka_unit_test(a_name_that_promises_one_is_held_to_it),
		cmocka_unit_test(a_file_of_any_other_size_is_refused),
		cmocka_unit_test(a_file_without_tensors_is_nothing_to_send),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
