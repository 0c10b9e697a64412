// SPDX-License-Identifier: MIT
/*
 * What top and metrics make of arenas, whole, broken and large: with the
 * sanitizers, and without a terminal or an arena.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <tools/metrics_format.h>
#include <tools/top_lines.h>

#include "test.h"

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (!json)
		fail_msg("%s: %s", error.text, text);
	return json;
}

static struct lines show(const char *now, const char *before, double seconds,
			 int columns)
{
	struct lines lines = { .columns = columns };
	json_t *n = parse(now), *b = before ? parse(before) : NULL;

	top_lines(&lines, n, b, seconds);
	json_decref(n);
	json_decref(b);
	return lines;
}

static void assert_line(const struct lines *lines, size_t i, const char *text)
{
	assert_true(i < lines->nr);
	if (!strstr(lines->line[i].text, text))
		fail_msg("line %zu is '%s', without '%s'", i,
			 lines->line[i].text, text);
}

#define ARENA(puts, bytes)                                                     \
	"{\"arenas\":[{\"arena\":\"arena7\",\"engine\":\"device\","            \
	"\"slots\":4,\"free\":1,\"writing\":1,\"published\":2,\"puts\":" puts  \
	",\"put_bytes\":" bytes ",\"allocated_bytes\":1073741824,"             \
	"\"declined_no_slot\":1,\"declined_oversize\":20,"                     \
	"\"declined_no_memory\":300,\"seats\":[0,9],"                          \
	"\"seat_readers\":[5,0],\"seat_pids\":[0,0],\"seat_pending\":[2,1],"   \
	"\"seat_oldest_ns\":[1500000000,20000000]}],\"module\":{}}"

static void rates_are_of_the_time_between_two_looks(void **state)
{
	struct lines lines =
		show(ARENA("110", "1073741824"), ARENA("100", "0"), 2, 79);

	(void)state;
	assert_line(&lines, 0, "1 arena, 512M/s in 5 tensors/s, 1.0G");
	assert_line(&lines, 3, "arena7       512M/s       5/s  1.0G   2/4 ");
	assert_line(&lines, 3, " 321  [##+.]");
	assert_line(&lines, 5,
		    "0        5        0  -                       2"
		    "      2 s  <--");
	assert_int_equal(lines.line[5].kind, LINE_STUCK);
	assert_line(&lines, 6,
		    "9        -        0  (nobody yet)            1"
		    "    20 ms");
	assert_int_equal(lines.line[6].kind, LINE_PLAIN);
	lines_free(&lines);
}

static void the_first_look_and_a_restart_have_no_rates(void **state)
{
	struct lines lines = show(ARENA("110", "99"), NULL, 0, 79);

	(void)state;
	assert_line(&lines, 3, "     0/s       0/s");
	lines_free(&lines);
	lines = show(ARENA("1", "99"), ARENA("110", "1000"), 1, 79);
	assert_line(&lines, 3, "     0/s       0/s");
	lines_free(&lines);
}

static void lines_are_as_wide_as_they_may_be_and_no_wider(void **state)
{
	int columns;
	size_t i;

	(void)state;
	for (columns = 1; columns <= LINE_COLUMNS; columns++) {
		struct lines lines = show(ARENA("110", "99"), NULL, 1, columns);

		for (i = 0; i < lines.nr; i++)
			assert_true(strlen(lines.line[i].text) <=
				    (size_t)columns);
		lines_free(&lines);
	}
}

/* What is missing or of another kind counts as nothing. */
static const char *const odd[] = {
	"{\"arenas\":[],\"module\":null}",
	"{\"arenas\":[],\"module\":{}}",
	"{\"arenas\":[{\"arena\":\"arena1\",\"engine\":\"device\"}],"
	"\"module\":{\"puts\":\"many\"}}",
	"{\"arenas\":[{\"arena\":\"arena18446744073709551615\","
	"\"engine\":\"embedded\",\"error\":\"the writer is gone\"}]}",
	"{\"arenas\":[{\"arena\":\"a\",\"engine\":\"device\",\"slots\":256,"
	"\"published\":9223372036854775807,\"seats\":[1,2,3],"
	"\"seat_pids\":\"no list\",\"seat_oldest_ns\":[9223372036854775807]}]}",
	"{\"arenas\":[{\"arena\":\"a\",\"engine\":\"device\","
	"\"slots\":9223372036854775807,\"writing\":5}]}",
	"{\"arenas\":[{\"arena\":\"a\",\"engine\":\"device\",\"slots\":-1}]}",
	"{\"arenas\":[{\"arena\":\"a\",\"engine\":\"device\",\"slots\":0,"
	"\"published\":-1,\"writing\":-9,\"seats\":5}]}",
};

static void odd_arenas_are_shown(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct lines lines = show(odd[i], odd[i], 1, 79);

		assert_true(lines.nr >= 2);
		lines_free(&lines);
	}
	{
		struct lines lines = show(odd[3], NULL, 1, 79);

		assert_line(&lines, 3, "~709551615 the writer is gone");
		assert_int_equal(lines.line[3].kind, LINE_ERROR);
		lines_free(&lines);
	}
}

static char *metrics(const char *seen)
{
	json_t *json = parse(seen);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	metrics_format(out, json);
	assert_int_equal(fclose(out), 0);
	json_decref(json);
	return text;
}

static void metrics_end_as_they_have_to(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		char *text = metrics(odd[i]);

		assert_true(strlen(text) > 6);
		assert_string_equal(text + strlen(text) - 6, "# EOF\n");
		free(text);
	}
}

static void what_an_engine_has_not_is_left_out(void **state)
{
	char *text = metrics(ARENA("110", "99"));

	(void)state;
	assert_non_null(strstr(text, "tensorarena_arena_puts_total{arena="
				     "\"arena7\",engine=\"device\"} 110\n"));
	assert_null(strstr(text, "\ntensorarena_arena_reclaimed_bytes_total"));
	assert_non_null(strstr(text, "# TYPE tensorarena_module_loaded gauge"));
	assert_null(strstr(text, "\ntensorarena_module_puts_total"));
	free(text);
	text = metrics(odd[3]);
	assert_null(strstr(text, "tensorarena_module"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_of_the_time_between_two_looks),
		cmocka_unit_test(the_first_look_and_a_restart_have_no_rates),
		cmocka_unit_test(lines_are_as_wide_as_they_may_be_and_no_wider),
		cmocka_unit_test(odd_arenas_are_shown),
		cmocka_unit_test(metrics_end_as_they_have_to),
		cmocka_unit_test(what_an_engine_has_not_is_left_out),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
