// SPDX-License-Identifier: MIT
/* Who gets a publication, and which tickets and handles are good for what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void put_to_reaches_only_those_named(void **state)
{
	struct ta_options o = test_options(2, MIB, 3);
	struct ta_ticket ticket;
	struct arena arena;
	uint64_t ids[2];

	(void)state;
	arena_open(&arena, &o, 3);
	ids[0] = actor_reader_id(&arena.actor[0]);
	ids[1] = actor_reader_id(&arena.actor[2]);
	assert_ok(ta_put_to(arena.writer, ids, 2, "hello", 5, NULL, &ticket));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_view(&arena.actor[2], 0, &ticket));
	assert_err(actor_next(&arena.actor[1], 0, 0), -EAGAIN);
	assert_err(actor_view(&arena.actor[1], 0, &ticket), -ENXIO);
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_int_equal(stats_of(arena.writer).published, 1);
	assert_ok(actor_release(&arena.actor[2], 0));
	assert_int_equal(stats_of(arena.writer).published, 0);
	arena_close(&arena);
}

static void commit_to_reaches_only_those_named(void **state)
{
	struct ta_options o = test_options(2, MIB, 2);
	struct ta_ticket ticket;
	struct ta_loan *loan;
	struct arena arena;
	uint64_t id;

	(void)state;
	arena_open(&arena, &o, 2);
	id = actor_reader_id(&arena.actor[1]);
	assert_ok(ta_loan(arena.writer, 9, &loan));
	fill_pattern(loan->data, 9, 4);
	assert_ok(ta_commit_to(loan, &id, 1, 9, NULL, &ticket));
	assert_err(actor_view(&arena.actor[0], 0, &ticket), -ENXIO);
	assert_ok(actor_view(&arena.actor[1], 0, &ticket));
	assert_ok(actor_check(&arena.actor[1], 0, 4));
	arena_close(&arena);
}

static void a_reader_that_left_cannot_be_named(void **state)
{
	struct ta_options o = test_options(2, MIB, 2);
	struct ta_loan *loan;
	struct arena arena;
	uint64_t ids[2];

	(void)state;
	arena_open(&arena, &o, 2);
	ids[0] = actor_reader_id(&arena.actor[0]);
	ids[1] = actor_reader_id(&arena.actor[1]);
	assert_ok(actor_close_reader(&arena.actor[1]));
	assert_err(ta_put_to(arena.writer, ids, 2, "x", 1, NULL, NULL),
		   -ESTALE);
	assert_int_equal(stats_of(arena.writer).free, 2);
	assert_err(actor_next(&arena.actor[0], 0, 0), -EAGAIN);
	/* A loan that could not be committed still stands. */
	assert_ok(ta_loan(arena.writer, 1, &loan));
	assert_err(ta_commit_to(loan, ids, 2, 1, NULL, NULL), -ESTALE);
	assert_ok(ta_commit_to(loan, ids, 1, 1, NULL, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	arena_close(&arena);
}

static void late_reader_gets_what_its_open_seat_was_sent(void **state)
{
	struct ta_options o = test_options(4, MIB, 2);
	struct actor late, beyond;
	struct ta_ticket ticket;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(put_pattern(arena.writer, 1000, 1, &ticket));
	assert_ok(put_pattern(arena.writer, 1000, 2, NULL));
	late = actor_start();
	assert_ok(actor_attach(&late, ta_handle(arena.writer)));
	assert_ok(actor_next(&late, 0, HANG_MS));
	assert_ok(actor_check(&late, 0, 1));
	assert_ok(actor_next(&late, 1, HANG_MS));
	assert_ok(actor_check(&late, 1, 2));

	beyond = actor_start();
	assert_ok(actor_attach(&beyond, ta_handle(arena.writer)));
	assert_err(actor_next(&beyond, 0, 0), -EAGAIN);
	assert_err(actor_view(&beyond, 0, &ticket), -ENXIO);
	assert_ok(put_pattern(arena.writer, 1000, 3, NULL));
	assert_ok(actor_next(&beyond, 0, HANG_MS));
	assert_ok(actor_check(&beyond, 0, 3));
	assert_int_equal(stats_of(arena.writer).readers, 3);
	actor_stop(&late);
	actor_stop(&beyond);
	arena_close(&arena);
}

static void stale_tickets_never_validate(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_ticket ticket, old, wrong;
	struct actor *reader;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	reader = &arena.actor[0];
	assert_ok(put_pattern(arena.writer, 100, 1, &old));
	assert_ok(actor_view(reader, 0, &old));
	assert_ok(actor_release(reader, 0));
	assert_err(actor_view(reader, 0, &old), -ESTALE);

	assert_ok(put_pattern(arena.writer, 100, 2, &ticket));
	assert_int_equal(ticket.slot, old.slot);
	assert_err(actor_view(reader, 0, &old), -ESTALE);
	wrong = ticket;
	wrong.generation++;
	assert_err(actor_view(reader, 0, &wrong), -ESTALE);
	wrong = ticket;
	wrong.nbytes++;
	assert_err(actor_view(reader, 0, &wrong), -ESTALE);
	wrong = ticket;
	wrong.arena++;
	assert_err(actor_view(reader, 0, &wrong), -ESTALE);
	wrong = ticket;
	wrong.slot = 1;
	assert_err(actor_view(reader, 0, &wrong), -EINVAL);
	wrong.slot = UINT32_MAX;
	assert_err(actor_view(reader, 0, &wrong), -EINVAL);
	wrong = ticket;
	wrong.reserved = 1;
	assert_err(actor_view(reader, 0, &wrong), -EINVAL);
	/* None of which spoiled the good one. */
	assert_ok(actor_view(reader, 0, &ticket));
	assert_ok(actor_check(reader, 0, 2));
	arena_close(&arena);
}

static void a_wrong_cookie_or_arena_is_no_way_in(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	char handle[TA_HANDLE_MAX];
	struct ta_reader *reader;
	struct arena arena;
	char *cookie;

	(void)state;
	arena_open(&arena, &o, 0);
	strcpy(handle, ta_handle(arena.writer));
	cookie = strchr(strchr(strchr(handle, ':') + 1, ':') + 1, ':') + 1;
	cookie[0] = cookie[0] == '0' ? '1' : '0';
	assert_err(ta_attach(handle, &reader), -EACCES);
	strcpy(handle, ta_handle(arena.writer));
	cookie[31] = cookie[31] == '0' ? '1' : '0';
	assert_err(ta_attach(handle, &reader), -EACCES);
	/* The digit before the cookie is the arena's last. */
	strcpy(handle, ta_handle(arena.writer));
	cookie[-2] = cookie[-2] == '9' ? '8' : '9';
	assert_err(ta_attach(handle, &reader), -EACCES);
	assert_int_equal(stats_of(arena.writer).attached, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	ta_reader_close(reader);
	arena_close(&arena);
}

static void what_is_no_handle_is_refused(void **state)
{
	struct ta_reader *reader;

	(void)state;
	assert_err(ta_attach("", &reader), -EINVAL);
	assert_err(ta_attach("tensorarena1:", &reader), -EINVAL);
	assert_err(ta_attach_fd("tensorarena1:", 9999, &reader), -EINVAL);
	assert_err(ta_attach_fd("tensorarena1:", -1, &reader), -EBADF);
}

static void sixty_four_readers_fit_and_no_more(void **state)
{
	struct ta_options o = test_options(1, MIB, 3);
	struct ta_reader *reader[64], *extra;
	struct ta_view *view;
	struct arena arena;
	int i, k;

	(void)state;
	arena_open(&arena, &o, 0);
	for (i = 0; i < 64; i++) {
		assert_ok(ta_attach(ta_handle(arena.writer), &reader[i]));
		assert_int_equal(ta_reader_seat(reader[i]), i);
		for (k = 0; k < i; k++)
			assert_int_not_equal(ta_reader_id(reader[i]),
					     ta_reader_id(reader[k]));
	}
	assert_err(ta_attach(ta_handle(arena.writer), &extra), -EUSERS);
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	for (i = 0; i < 64; i++) {
		assert_err(ta_put(arena.writer, "x", 1, NULL, NULL), -EAGAIN);
		assert_ok(ta_next(reader[i], HANG_MS, &view));
		assert_true(is_pattern(view->data, 10, 1));
		assert_ok(ta_release(view));
	}
	assert_int_equal(stats_of(arena.writer).free, 1);
	ta_reader_close(reader[17]);
	assert_ok(ta_attach(ta_handle(arena.writer), &extra));
	assert_int_equal(ta_reader_seat(extra), 17);
	assert_true(ta_reader_id(extra) > 64);
	ta_reader_close(extra);
	for (i = 0; i < 64; i++)
		if (i != 17)
			ta_reader_close(reader[i]);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_to_reaches_only_those_named),
		cmocka_unit_test(commit_to_reaches_only_those_named),
		cmocka_unit_test(a_reader_that_left_cannot_be_named),
		cmocka_unit_test(late_reader_gets_what_its_open_seat_was_sent),
		cmocka_unit_test(stale_tickets_never_validate),
		cmocka_unit_test(a_wrong_cookie_or_arena_is_no_way_in),
		cmocka_unit_test(what_is_no_handle_is_refused),
		cmocka_unit_test(sixty_four_readers_fit_and_no_more),
	};

	return run_cases(argc, argv, tests);
}
