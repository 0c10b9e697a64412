// SPDX-License-Identifier: MIT
/* What readers see when the writer is gone, killed or closed. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "harness.h"

struct scene {
	struct actor writer;
	struct actor reader;
	char handle[TA_HANDLE_MAX];
};

static void open_scene(struct scene *s, uint32_t seats)
{
	struct ta_options o = test_options(4, MIB, seats);

	s->writer = actor_start();
	s->reader = actor_start();
	assert_ok(actor_create(&s->writer, &o, s->handle));
	assert_ok(actor_attach(&s->reader, s->handle));
}

static void close_scene(struct scene *s)
{
	actor_stop(&s->reader);
	if (s->writer.pid)
		actor_stop(&s->writer);
}

/* A view that was open stays; what was published is as the engine can. */
static void expect_writer_gone(struct scene *s, int held, uint64_t held_seed,
			       uint64_t unread_seed)
{
	struct ta_reader *late;
	int err;

	assert_ok(actor_check(&s->reader, held, held_seed));
	if (test_engine() == TA_ENGINE_DEVICE) {
		assert_ok(actor_next(&s->reader, 1, HANG_MS));
		assert_ok(actor_check(&s->reader, 1, unread_seed));
		assert_ok(actor_release(&s->reader, 1));
	}
	assert_err(actor_next(&s->reader, 1, HANG_MS), -EPIPE);
	assert_err(actor_next(&s->reader, 1, 0), -EPIPE);
	assert_ok(actor_check(&s->reader, held, held_seed));
	assert_ok(actor_release(&s->reader, held));
	assert_err(actor_next(&s->reader, 1, 0), -EPIPE);

	err = ta_attach(s->handle, &late);
	if (err != -EPIPE && err != -ECONNREFUSED)
		fail_msg("attaching to a dead arena: %d", err);
}

static void killed_with_publications(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 1);
	assert_ok(actor_put(&s.writer, 1000, 1, NULL));
	assert_ok(actor_put(&s.writer, 1000, 2, NULL));
	assert_ok(actor_next(&s.reader, 0, HANG_MS));
	actor_kill(&s.writer);
	expect_writer_gone(&s, 0, 1, 2);
	close_scene(&s);
}

static void closed_with_publications(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 1);
	assert_ok(actor_put(&s.writer, 1000, 1, NULL));
	assert_ok(actor_put(&s.writer, 1000, 2, NULL));
	assert_ok(actor_next(&s.reader, 0, HANG_MS));
	assert_ok(actor_close_writer(&s.writer));
	expect_writer_gone(&s, 0, 1, 2);
	close_scene(&s);
}

static void killed_while_writing_publishes_nothing(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 1);
	assert_ok(actor_loan(&s.writer, 1000));
	actor_kill(&s.writer);
	assert_err(actor_next(&s.reader, 0, HANG_MS), -EPIPE);
	close_scene(&s);
}

static void killed_after_forking_a_child_that_lives_on(void **state)
{
	struct scene s;
	pid_t child;

	(void)state;
	open_scene(&s, 1);
	assert_ok(actor_put(&s.writer, 1000, 1, NULL));
	assert_ok(actor_put(&s.writer, 1000, 2, NULL));
	assert_ok(actor_next(&s.reader, 0, HANG_MS));
	child = actor_fork(&s.writer);
	actor_kill(&s.writer);
	expect_writer_gone(&s, 0, 1, 2);
	kill_child(child);
	close_scene(&s);
}

static void closed_while_a_child_still_has_its_descriptors(void **state)
{
	struct scene s;
	pid_t child;

	(void)state;
	open_scene(&s, 1);
	assert_ok(actor_put(&s.writer, 1000, 1, NULL));
	assert_ok(actor_put(&s.writer, 1000, 2, NULL));
	assert_ok(actor_next(&s.reader, 0, HANG_MS));
	child = actor_fork(&s.writer);
	assert_ok(actor_close_writer(&s.writer));
	expect_writer_gone(&s, 0, 1, 2);
	kill_child(child);
	close_scene(&s);
}

static void wakes_a_reader_that_waits(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s, 1);
	actor_drain_start(&s.reader, 1);
	actor_kill(&s.writer);
	assert_err(actor_drain_end(&s.reader), -EPIPE);
	close_scene(&s);
}

static void an_unclaimed_seat_does_not_outlive_the_writer(void **state)
{
	struct actor late;
	struct scene s;
	int err;

	(void)state;
	open_scene(&s, 2);
	assert_ok(actor_put(&s.writer, 1000, 1, NULL));
	actor_kill(&s.writer);
	late = actor_start();
	err = actor_attach(&late, s.handle);
	if (err != -EPIPE && err != -ECONNREFUSED)
		fail_msg("attaching to a dead arena: %d", err);
	actor_stop(&late);
	close_scene(&s);
}

static void a_reader_in_the_same_process_sees_the_same(void **state)
{
	struct ta_options o = test_options(2, MIB, 1);
	struct ta_view *view, *more;
	struct ta_reader *reader;
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, 1000, 1, NULL));
	assert_ok(ta_next(reader, HANG_MS, &view));
	/* Closing takes the loan along. */
	assert_ok(ta_loan(arena.writer, 1, &loan));
	arena_close(&arena);
	assert_err(ta_next(reader, HANG_MS, &more), -EPIPE);
	assert_true(is_pattern(view->data, view->nbytes, 1));
	assert_ok(ta_release(view));
	ta_reader_close(reader);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_with_publications),
		cmocka_unit_test(closed_with_publications),
		cmocka_unit_test(killed_while_writing_publishes_nothing),
		cmocka_unit_test(killed_after_forking_a_child_that_lives_on),
		cmocka_unit_test(
			closed_while_a_child_still_has_its_descriptors),
		cmocka_unit_test(wakes_a_reader_that_waits),
		cmocka_unit_test(an_unclaimed_seat_does_not_outlive_the_writer),
		cmocka_unit_test(a_reader_in_the_same_process_sees_the_same),
	};

	return run_cases(argc, argv, tests);
}
