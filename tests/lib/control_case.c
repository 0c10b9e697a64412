// SPDX-License-Identifier: MIT
/* What the writer can do besides writing: evict, close seats, memory, figures. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void an_evicted_reader_loses_everything_and_is_told(void **state)
{
	struct ta_options o = test_options(2, MIB, 2);
	struct ta_ticket ticket;
	struct ta_stats st;
	struct arena arena;
	uint64_t id;

	(void)state;
	arena_open(&arena, &o, 2);
	assert_ok(put_pattern(arena.writer, 1000, 1, &ticket));
	assert_ok(put_pattern(arena.writer, 1000, 2, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	actor_drain_start(&arena.actor[1], 2);
	assert_ok(actor_drain_end(&arena.actor[1]));
	id = actor_reader_id(&arena.actor[0]);
	assert_ok(ta_evict(arena.writer, id));
	st = stats_of(arena.writer);
	assert_int_equal(st.free, 2);
	assert_int_equal(st.evicted, 1);
	assert_int_equal(st.readers, 1);
	assert_err(actor_next(&arena.actor[0], 1, HANG_MS), -EOWNERDEAD);
	assert_err(actor_view(&arena.actor[0], 1, &ticket), -EOWNERDEAD);
	assert_err(actor_next(&arena.actor[0], 1, HANG_MS), -EOWNERDEAD);
	assert_err(ta_evict(arena.writer, id), -ESTALE);
	/* The view is still to be released; there is nothing left to it. */
	assert_err(actor_release(&arena.actor[0], 0), -EOWNERDEAD);
	/* Its process may come back as another reader. */
	assert_ok(actor_close_reader(&arena.actor[0]));
	assert_ok(actor_attach(&arena.actor[0], ta_handle(arena.writer)));
	assert_true(actor_reader_id(&arena.actor[0]) > id);
	assert_ok(put_pattern(arena.writer, 1000, 3, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 3));
	st = stats_of(arena.writer);
	assert_int_equal(st.detached, 0);
	assert_int_equal(st.reclaimed_dead_readers, 0);
	arena_close(&arena);
}

static void eviction_wakes_a_reader_that_waits(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct arena arena;
	uint64_t id;

	(void)state;
	arena_open(&arena, &o, 1);
	id = actor_reader_id(&arena.actor[0]);
	actor_drain_start(&arena.actor[0], 1);
	assert_ok(ta_evict(arena.writer, id));
	assert_err(actor_drain_end(&arena.actor[0]), -EOWNERDEAD);
	arena_close(&arena);
}

static void only_a_reader_that_is_there_can_be_evicted(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_err(ta_evict(arena.writer, 0), -ESTALE);
	assert_err(ta_evict(arena.writer, 4711), -ESTALE);
	assert_int_equal(stats_of(arena.writer).readers, 2);
	arena_close(&arena);
}

static void closing_an_unclaimed_seat_ends_the_wait_for_it(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_err(put_pattern(arena.writer, 10, 2, NULL), -EAGAIN);
	assert_err(ta_close_seat(arena.writer, 0), -ESTALE);
	assert_err(ta_close_seat(arena.writer, 5), -ESTALE);
	assert_err(ta_close_seat(arena.writer, 64), -EINVAL);
	assert_ok(ta_close_seat(arena.writer, 1));
	assert_err(ta_close_seat(arena.writer, 1), -ESTALE);
	assert_int_equal(stats_of(arena.writer).readers, 1);
	assert_ok(put_pattern(arena.writer, 10, 2, NULL));
	arena_close(&arena);
}

static void memory_is_taken_when_needed_and_given_back(void **state)
{
	struct ta_options o = test_options(4, 8 * MIB, 1);
	uint64_t freed = 1;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 0);
	assert_ok(put_pattern(arena.writer, MIB, 1, NULL));
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 2 * MIB);
	assert_ok(ta_populate(arena.writer, 2, 4 * MIB));
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 10 * MIB);
	assert_ok(ta_populate(arena.writer, 2, 4 * MIB));
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 10 * MIB);
	assert_err(ta_populate(arena.writer, 1, 8 * MIB + 1), -EINVAL);
	assert_err(ta_populate(arena.writer, 5, MIB), -EINVAL);

	/* Not from under a reader. */
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(ta_trim(arena.writer, 0, &freed));
	assert_int_equal(freed, 8 * MIB);
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 2 * MIB);
	assert_ok(actor_check(&arena.actor[0], 0, 1));
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_ok(ta_trim(arena.writer, 2 * MIB, &freed));
	assert_int_equal(freed, 0);
	assert_ok(ta_trim(arena.writer, 0, NULL));
	assert_int_equal(stats_of(arena.writer).allocated_bytes, 0);

	/* And there is always more. */
	assert_ok(put_pattern(arena.writer, 8 * MIB, 2, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 2));
	arena_close(&arena);
}

static void a_slot_that_grew_shows_its_new_bytes(void **state)
{
	static const size_t sizes[] = { 1, 2 * MIB, 3 * MIB, 100, 8 * MIB };
	struct ta_options o = test_options(1, 8 * MIB, 1);
	struct arena arena;
	size_t i;

	(void)state;
	arena_open(&arena, &o, 1);
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		assert_ok(put_pattern(arena.writer,
				      sizes[i % ARRAY_SIZE(sizes)], i, NULL));
		assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
		assert_ok(actor_check(&arena.actor[0], 0, i));
		assert_ok(actor_release(&arena.actor[0], 0));
		if (i == ARRAY_SIZE(sizes))
			assert_ok(ta_trim(arena.writer, 0, NULL));
	}
	arena_close(&arena);
}

static void every_seat_has_a_row(void **state)
{
	struct ta_options o = test_options(3, MIB, 3);
	struct ta_reader_stats row[64];
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 2);
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_ok(put_pattern(arena.writer, 10, 2, NULL));
	assert_ok(actor_next(&arena.actor[1], 0, HANG_MS));
	assert_ok(actor_release(&arena.actor[1], 0));
	memset(row, 0xff, sizeof(row));
	assert_ok(ta_stats(arena.writer, &st, row, 64));
	assert_int_equal(st.readers, 3);
	assert_int_equal(st.slots, 3);
	assert_int_equal(st.published, 2);
	assert_true(st.oldest_ns > 0);
	assert_int_equal(row[0].seat, 0);
	assert_int_equal(row[0].reader, actor_reader_id(&arena.actor[0]));
	assert_int_equal(row[0].pid, arena.actor[0].pid);
	assert_int_equal(row[0].pending, 2);
	assert_true(row[0].oldest_ns > 0);
	assert_int_equal(row[1].seat, 1);
	assert_int_equal(row[1].pid, arena.actor[1].pid);
	assert_int_equal(row[1].pending, 1);
	assert_int_equal(row[2].seat, 2);
	assert_int_equal(row[2].reader, 0);
	assert_int_equal(row[2].pid, 0);
	assert_int_equal(row[2].pending, 2);
	assert_true(row[3].reader == UINT64_MAX);

	/* As many rows as there is room for, and the number there would be. */
	memset(row, 0xff, sizeof(row));
	assert_ok(ta_stats(arena.writer, &st, row, 1));
	assert_int_equal(st.readers, 3);
	assert_int_equal(row[0].seat, 0);
	assert_true(row[1].reader == UINT64_MAX);
	arena_close(&arena);
}

static void a_connection_can_be_handed_over(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;
	int fd;

	(void)state;
	arena_open(&arena, &o, 0);
	fd = ta_writer_connect(arena.writer);
	if (test_engine() == TA_ENGINE_DEVICE) {
		assert_int_equal(fd, -EOPNOTSUPP);
		/* A descriptor is consumed whether it is any good or not. */
		fd = open("/dev/null", O_RDONLY);
		assert_true(fd >= 0);
		assert_err(ta_attach_fd(ta_handle(arena.writer), fd, &reader),
			   -EOPNOTSUPP);
	} else {
		assert_true(fd >= 0);
		assert_ok(ta_attach_fd(ta_handle(arena.writer), fd, &reader));
		assert_ok(put_pattern(arena.writer, 10, 1, NULL));
		assert_ok(ta_next(reader, HANG_MS, &view));
		assert_true(is_pattern(view->data, 10, 1));
		ta_reader_close(reader);
		fd = ta_writer_connect(arena.writer);
		assert_true(fd >= 0);
		assert_err(ta_attach_fd("nonsense", fd, &reader), -EINVAL);
	}
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_evicted_reader_loses_everything_and_is_told),
		cmocka_unit_test(eviction_wakes_a_reader_that_waits),
		cmocka_unit_test(only_a_reader_that_is_there_can_be_evicted),
		cmocka_unit_test(
			closing_an_unclaimed_seat_ends_the_wait_for_it),
		cmocka_unit_test(memory_is_taken_when_needed_and_given_back),
		cmocka_unit_test(a_slot_that_grew_shows_its_new_bytes),
		cmocka_unit_test(every_seat_has_a_row),
		cmocka_unit_test(a_connection_can_be_handed_over),
	};

	return run_cases(argc, argv, tests);
}
