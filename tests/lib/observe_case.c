// SPDX-License-Identifier: MIT
/* Looking at an arena with nothing but its handle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void device_only(struct ta_writer *writer)
{
	struct ta_observation seen;
	uint64_t arena;

	assert_err(ta_observe(ta_handle(writer), &seen, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(seen.engine, TA_ENGINE_DEVICE);
	assert_int_equal(sscanf(ta_handle(writer),
				"tensorarena1:device:%lu:", &arena),
			 1);
	assert_int_equal(seen.arena, arena);
}

static void an_observer_sees_what_the_writer_sees(void **state)
{
	struct ta_options o = test_options(3, MIB + 1, 2);
	struct ta_reader_stats rows[4], own[4];
	struct ta_observation seen;
	struct ta_stats st;
	struct arena arena;
	uint32_t i;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(put_pattern(arena.writer, 1000, 1, NULL));
	if (test_engine() == TA_ENGINE_DEVICE) {
		device_only(arena.writer);
		arena_close(&arena);
		return;
	}
	assert_ok(ta_observe(ta_handle(arena.writer), &seen, rows, 4));
	assert_int_equal(seen.engine, TA_ENGINE_EMBEDDED);
	assert_int_equal(seen.slot_bytes, MIB + 1);
	assert_int_equal(seen.stride, 2 * MIB);
	assert_int_equal(seen.writer_pid, getpid());
	assert_ok(ta_stats(arena.writer, &st, own, 4));
	assert_true(st.oldest_ns >= seen.stats.oldest_ns);
	assert_true(seen.stats.oldest_ns > 0);
	st.oldest_ns = seen.stats.oldest_ns;
	assert_memory_equal(&st, &seen.stats, sizeof(st));
	assert_int_equal(st.readers, 2);
	for (i = 0; i < st.readers; i++) {
		assert_true(own[i].oldest_ns >= rows[i].oldest_ns);
		own[i].oldest_ns = rows[i].oldest_ns;
		assert_memory_equal(&own[i], &rows[i], sizeof(own[i]));
	}
	arena_close(&arena);
}

static void looking_changes_nothing(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_observation seen;
	struct ta_stats before, st;
	struct ta_reader *reader;
	struct arena arena;
	int i;

	(void)state;
	arena_open(&arena, &o, 0);
	if (test_engine() == TA_ENGINE_DEVICE) {
		arena_close(&arena);
		skip();
	}
	before = stats_of(arena.writer);
	/* Far more than connections without a seat may exist at one time. */
	for (i = 0; i < 200; i++)
		assert_ok(ta_observe(ta_handle(arena.writer), &seen, NULL, 0));
	st = stats_of(arena.writer);
	assert_memory_equal(&before, &st, sizeof(st));
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_int_equal(ta_reader_seat(reader), 0);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void no_more_rows_are_written_than_there_is_room_for(void **state)
{
	struct ta_options o = test_options(1, MIB, 64);
	struct ta_reader_stats rows[65];
	struct ta_observation seen;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	if (test_engine() == TA_ENGINE_DEVICE) {
		arena_close(&arena);
		skip();
	}
	memset(rows, 0xff, sizeof(rows));
	assert_ok(ta_observe(ta_handle(arena.writer), &seen, rows, 1));
	assert_int_equal(seen.stats.readers, 64);
	assert_int_equal(rows[0].seat, 0);
	assert_int_equal(rows[1].seat, UINT32_MAX);
	assert_ok(ta_observe(ta_handle(arena.writer), &seen, rows, 65));
	assert_int_equal(rows[63].seat, 63);
	assert_int_equal(rows[64].seat, UINT32_MAX);
	arena_close(&arena);
}

static void who_does_not_know_the_secret_sees_nothing(void **state)
{
	struct ta_options o = test_options(1, MIB, 0);
	struct ta_observation seen;
	char handle[TA_HANDLE_MAX];
	struct arena arena;
	char *digit;

	(void)state;
	arena_open(&arena, &o, 0);
	if (test_engine() == TA_ENGINE_DEVICE) {
		arena_close(&arena);
		skip();
	}
	strcpy(handle, ta_handle(arena.writer));
	digit = strchr(strchr(strchr(handle, ':') + 1, ':') + 1, ':') + 1;
	*digit = *digit == '0' ? '1' : '0';
	assert_err(ta_observe(handle, &seen, NULL, 0), -EACCES);
	assert_int_equal(seen.stats.slots, 0);
	strcpy(handle, ta_handle(arena.writer));
	arena_close(&arena);
	assert_err(ta_observe(handle, &seen, NULL, 0), -ECONNREFUSED);
	assert_err(ta_observe("tensorarena1:nothing", &seen, NULL, 0), -EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_observer_sees_what_the_writer_sees),
		cmocka_unit_test(looking_changes_nothing),
		cmocka_unit_test(
			no_more_rows_are_written_than_there_is_room_for),
		cmocka_unit_test(who_does_not_know_the_secret_sees_nothing),
	};

	return run_cases(argc, argv, tests);
}
