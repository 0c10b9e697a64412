// SPDX-License-Identifier: MIT
/* The small parts: checksum, numbers, median, and what counts as a file. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tools/checksum.h>
#include <tools/input.h>
#include <tools/median.h>
#include <tools/number.h>

#include "files.h"
#include "test.h"

/* From the specification's reference implementation. */
static void the_checksum_is_xxh3(void **state)
{
	(void)state;
	assert_int_equal(checksum("", 0), 0x2d06800538d394c2);
	assert_int_equal(checksum("a", 1), 0xe6c632b61e964e1f);
	assert_int_equal(checksum("abc", 3), 0x78af5f94892f3950);
}

static void the_checksum_sees_every_bit(void **state)
{
	size_t n = 4099, i;
	uint8_t *data = calloc(1, n);
	uint64_t clean;

	(void)state;
	assert_non_null(data);
	clean = checksum(data, n);
	for (i = 0; i < n; i++) {
		data[i] = 1 << i % 8;
		assert_int_not_equal(checksum(data, n), clean);
		data[i] = 0;
	}
	assert_int_equal(checksum(data, n), clean);
	assert_int_not_equal(checksum(data, n - 1), clean);
	free(data);
}

static void numbers_are_decimal_whole_and_in_range(void **state)
{
	static const char *const bad[] = { "",
					   " 1",
					   "1 ",
					   "+1",
					   "-1",
					   "0x1",
					   "1.0",
					   "1e3",
					   "0",
					   "65",
					   "18446744073709551617",
					   "99999999999999999999999" };
	uint32_t v = 7;
	uint64_t w;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(number_u32(bad[i], 1, 64, &v), -1);
	assert_int_equal(v, 7);
	assert_int_equal(number_u32("64", 1, 64, &v), 0);
	assert_int_equal(v, 64);
	assert_int_equal(number_u64("18446744073709551615", 0, UINT64_MAX, &w),
			 0);
	assert_int_equal(w, UINT64_MAX);
	assert_int_equal(number_u64("18446744073709551616", 0, UINT64_MAX, &w),
			 -1);
}

static void the_median_is_the_middle(void **state)
{
	double one[] = { 3 }, two[] = { 4, 1 }, three[] = { 9, 1, 2 };

	(void)state;
	assert_true(median(one, 1) == 3);
	assert_true(median(two, 2) == 2.5);
	assert_true(median(three, 3) == 2);
}

static void refused(const char *path, const char *reason)
{
	static const struct input_options options;
	struct reason why;
	struct input in;

	assert_int_equal(input_open(&in, path, &options, &why), -1);
	if (!strstr(why.text, reason))
		fail_msg("%s: \"%s\" lacks \"%s\"", path, why.text, reason);
}

static void what_is_no_file_of_bytes_is_refused(void **state)
{
	char *path;

	(void)state;
	refused("/nonexistent", "No such file");
	refused("/tmp", "directory");
	refused("/dev/null", "not a regular file");

	/* Opening it must not wait for somebody to write. */
	path = file_path("fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(path, "not a regular file");
	file_remove(path);

	path = file_path("empty");
	file_write(path, "", 0);
	refused(path, "empty");
	file_remove(path);
}

static void a_name_that_promises_another_content_is_refused(void **state)
{
	static const char *const names[] = { "a.npy", "a.NPY", "a.jpg",
					     "a.jpeg", "a.JPG" };
	char *path;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		path = file_path(names[i]);
		file_write(path, "plain text", 10);
		refused(path, "does not start as");
		file_remove(path);
	}
}

static void any_other_file_is_bytes(void **state)
{
	static const struct input_options options;
	char *path = file_path("notes.npy.txt");
	struct reason why;
	struct input in;
	char data[10];

	(void)state;
	file_write(path, "plain text", 10);
	assert_int_equal(input_open(&in, path, &options, &why), 0);
	assert_int_equal(in.tensor.code, TA_UINT);
	assert_int_equal(in.tensor.bits, 8);
	assert_int_equal(in.tensor.ndim, 1);
	assert_int_equal(in.tensor.shape[0], 10);
	assert_int_equal(input_produce(&in, data, -1, &why), 0);
	assert_memory_equal(data, "plain text", 10);
	input_close(&in);
	file_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_xxh3),
		cmocka_unit_test(the_checksum_sees_every_bit),
		cmocka_unit_test(numbers_are_decimal_whole_and_in_range),
		cmocka_unit_test(the_median_is_the_middle),
		cmocka_unit_test(what_is_no_file_of_bytes_is_refused),
		cmocka_unit_test(
			a_name_that_promises_another_content_is_refused),
		cmocka_unit_test(any_other_file_is_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
