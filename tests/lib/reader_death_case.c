// SPDX-License-Identifier: MIT
/* A reader that dies, however it dies, gives back all it held, and soon. */
#include <errno.h>
#include <unistd.h>

#include "harness.h"

/* Two readers; two publications that only the first one has not released. */
static void open_with_debt(struct arena *arena)
{
	struct ta_options o = test_options(2, MIB, 2);

	arena_open(arena, &o, 2);
	assert_ok(put_pattern(arena->writer, 1000, 1, NULL));
	assert_ok(put_pattern(arena->writer, 1000, 2, NULL));
	actor_drain_start(&arena->actor[1], 2);
	assert_ok(actor_drain_end(&arena->actor[1]));
	assert_err(put_pattern(arena->writer, 1000, 3, NULL), -EAGAIN);
}

/* All is given back, and the arena goes on with the reader that is left. */
static void expect_reclaimed(struct arena *arena)
{
	struct ta_stats st;

	await_stats_since(&arena->actor[0].end, arena->writer, st,
			  st.reclaimed_dead_readers == 1);
	assert_int_equal(st.free, 2);
	assert_int_equal(st.published, 0);
	assert_int_equal(st.readers, 1);
	assert_int_equal(st.detached, 0);
	assert_int_equal(st.released, 2);
	assert_ok(put_pattern(arena->writer, 1000, 3, NULL));
	assert_ok(actor_next(&arena->actor[1], 0, HANG_MS));
	assert_ok(actor_check(&arena->actor[1], 0, 3));
	assert_ok(actor_release(&arena->actor[1], 0));
	assert_int_equal(stats_of(arena->writer).free, 2);
}

static void killed_while_holding_slots(void **state)
{
	struct arena arena;

	(void)state;
	open_with_debt(&arena);
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_next(&arena.actor[0], 1, HANG_MS));
	actor_kill(&arena.actor[0]);
	expect_reclaimed(&arena);
	arena_close(&arena);
}

static void killed_after_forking_a_child_that_lives_on(void **state)
{
	struct arena arena;
	pid_t child;

	(void)state;
	open_with_debt(&arena);
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	child = actor_fork(&arena.actor[0]);
	actor_kill(&arena.actor[0]);
	expect_reclaimed(&arena);
	kill_child(child);
	arena_close(&arena);
}

static void killed_before_it_ever_read(void **state)
{
	struct arena arena;

	(void)state;
	open_with_debt(&arena);
	actor_kill(&arena.actor[0]);
	expect_reclaimed(&arena);
	arena_close(&arena);
}

static void becomes_another_program(void **state)
{
	struct arena arena;

	(void)state;
	open_with_debt(&arena);
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	actor_exec(&arena.actor[0]);
	expect_reclaimed(&arena);
	arena_close(&arena);
}

static void closed_while_a_child_still_has_its_descriptors(void **state)
{
	struct ta_stats st;
	struct arena arena;
	pid_t child;

	(void)state;
	open_with_debt(&arena);
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	child = actor_fork(&arena.actor[0]);
	assert_ok(actor_close_reader(&arena.actor[0]));
	await_stats(arena.writer, st, st.detached == 1);
	assert_int_equal(st.free, 2);
	assert_int_equal(st.readers, 1);
	kill_child(child);
	arena_close(&arena);
}

static void killed_with_nothing_pending_frees_its_seat(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 2);
	actor_kill(&arena.actor[0]);
	await_stats_since(&arena.actor[0].end, arena.writer, st,
			  st.readers == 1);
	assert_int_equal(st.reclaimed_dead_readers, 1);
	arena_close(&arena);
}

static void its_child_going_away_is_nothing_to_a_reader(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct arena arena;
	pid_t child;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(put_pattern(arena.writer, 1000, 1, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	child = actor_fork(&arena.actor[0]);
	kill_child(child);
	assert_ok(actor_check(&arena.actor[0], 0, 1));
	assert_int_equal(stats_of(arena.writer).published, 1);
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_int_equal(stats_of(arena.writer).reclaimed_dead_readers, 0);
	arena_close(&arena);
}

static void its_seat_goes_to_the_next_reader_without_its_debts(void **state)
{
	struct ta_options o = test_options(2, MIB, 2);
	struct actor next;
	struct ta_ticket ticket;
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 2);
	assert_ok(put_pattern(arena.writer, 1000, 1, &ticket));
	actor_kill(&arena.actor[0]);
	await_stats_since(&arena.actor[0].end, arena.writer, st,
			  st.readers == 1);
	next = actor_start();
	assert_ok(actor_attach(&next, ta_handle(arena.writer)));
	assert_err(actor_next(&next, 0, 0), -EAGAIN);
	assert_err(actor_view(&next, 0, &ticket), -ENXIO);
	assert_ok(put_pattern(arena.writer, 1000, 2, NULL));
	assert_ok(actor_next(&next, 0, HANG_MS));
	assert_ok(actor_check(&next, 0, 2));
	actor_stop(&next);
	arena_close(&arena);
}

static void a_crowd_killed_at_once_leaves_nothing(void **state)
{
	struct ta_options o = test_options(4, MIB, MAX_ACTORS);
	struct ta_stats st;
	struct arena arena;
	unsigned int i;

	(void)state;
	arena_open(&arena, &o, MAX_ACTORS);
	for (i = 0; i < 4; i++)
		assert_ok(put_pattern(arena.writer, 1000, i, NULL));
	for (i = 0; i < MAX_ACTORS; i++)
		if (i % 2)
			assert_ok(actor_next(&arena.actor[i], 0, HANG_MS));
	for (i = 0; i < MAX_ACTORS; i++)
		actor_kill(&arena.actor[i]);
	await_stats_since(&arena.actor[MAX_ACTORS - 1].end, arena.writer, st,
			  st.free == 4);
	assert_int_equal(st.readers, 0);
	assert_int_equal(st.reclaimed_dead_readers, MAX_ACTORS);
	assert_err(put_pattern(arena.writer, 1, 1, NULL), -ENOTCONN);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_while_holding_slots),
		cmocka_unit_test(killed_after_forking_a_child_that_lives_on),
		cmocka_unit_test(killed_before_it_ever_read),
		cmocka_unit_test(becomes_another_program),
		cmocka_unit_test(
			closed_while_a_child_still_has_its_descriptors),
		cmocka_unit_test(killed_with_nothing_pending_frees_its_seat),
		cmocka_unit_test(its_child_going_away_is_nothing_to_a_reader),
		cmocka_unit_test(
			its_seat_goes_to_the_next_reader_without_its_debts),
		cmocka_unit_test(a_crowd_killed_at_once_leaves_nothing),
	};

	return run_cases(argc, argv, tests);
}
