// SPDX-License-Identifier: MIT
/* When a slot may be used again, and what happens when none is free. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static void no_reuse_before_every_reader_has_released(void **state)
{
	struct ta_options o = test_options(1, MIB, 3);
	struct arena arena;
	unsigned int r;

	(void)state;
	arena_open(&arena, &o, 3);
	assert_ok(put_pattern(arena.writer, 1000, 1, NULL));
	for (r = 0; r < 3; r++) {
		assert_err(put_pattern(arena.writer, 1000, 2, NULL), -EAGAIN);
		assert_ok(actor_next(&arena.actor[r], 0, HANG_MS));
		assert_err(put_pattern(arena.writer, 1000, 2, NULL), -EAGAIN);
		assert_ok(actor_check(&arena.actor[r], 0, 1));
		assert_ok(actor_release(&arena.actor[r], 0));
	}
	assert_ok(put_pattern(arena.writer, 1000, 2, NULL));
	arena_close(&arena);
}

static void a_retained_view_survives_a_thousand_puts(void **state)
{
	struct ta_options o = test_options(3, 64 * KIB, 2);
	struct ta_view *view;
	struct ta_reader *reader;
	struct arena arena;
	uint64_t i;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, 64 * KIB, 7777, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_ok(ta_release(view));
	actor_drain_start(&arena.actor[0], 1000);
	for (i = 0; i < 1000; i++) {
		assert_ok(put_when_free(arena.writer, 64 * KIB, i, NULL));
		assert_ok(ta_next(reader, HANG_MS, &view));
		assert_true(is_pattern(view->data, view->nbytes, i));
		assert_ok(ta_release(view));
	}
	assert_ok(actor_drain_end(&arena.actor[0]));
	assert_ok(actor_check(&arena.actor[0], 0, 7777));
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_int_equal(stats_of(arena.writer).puts, 1001);
	assert_int_equal(stats_of(arena.writer).free, 3);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void exhaustion_declines_at_once_and_is_counted(void **state)
{
	struct ta_options o = test_options(3, MIB, 1);
	struct ta_loan *loan;
	struct ta_stats st;
	struct arena arena;
	int i;

	(void)state;
	arena_open(&arena, &o, 1);
	for (i = 0; i < 3; i++)
		assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_err(put_pattern(arena.writer, 10, 1, NULL), -EAGAIN);
	assert_err(ta_loan(arena.writer, 10, &loan), -EAGAIN);
	assert_err(put_pattern(arena.writer, MIB + 1, 1, NULL), -EMSGSIZE);
	assert_err(ta_loan(arena.writer, SIZE_MAX, &loan), -EMSGSIZE);
	/* Never touched: there is no such buffer. */
	assert_err(ta_put(arena.writer, "x", SIZE_MAX, NULL, NULL), -EMSGSIZE);
	st = stats_of(arena.writer);
	assert_int_equal(st.declined_no_slot, 2);
	assert_int_equal(st.declined_oversize, 3);
	assert_int_equal(st.published, 3);
	assert_int_equal(st.free, 0);
	assert_int_equal(st.puts, 3);
	assert_int_equal(st.put_bytes, 30);
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_ok(put_pattern(arena.writer, MIB, 1, NULL));
	arena_close(&arena);
}

static void a_loan_is_filled_in_place(void **state)
{
	struct ta_options o = test_options(1, 3 * MIB, 1);
	struct ta_ticket ticket;
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_loan(arena.writer, 3 * MIB, &loan));
	assert_int_equal(loan->nbytes, 3 * MIB);
	/* Where the kernel aligns what it can map by huge pages. */
	if (!access("/sys/kernel/mm/transparent_hugepage", F_OK))
		assert_int_equal((uintptr_t)loan->data % (2 * MIB), 0);
	assert_int_equal(stats_of(arena.writer).writing, 1);
	fill_pattern(loan->data, 3 * MIB, 5);
	/* It may turn out smaller than was thought. */
	assert_ok(ta_commit(loan, 2 * MIB + 5, NULL, &ticket));
	assert_int_equal(ticket.nbytes, 2 * MIB + 5);
	assert_ok(actor_view(&arena.actor[0], 0, &ticket));
	assert_ok(actor_check(&arena.actor[0], 0, 5));
	arena_close(&arena);
}

static void a_loan_foretells_its_ticket(void **state)
{
	struct ta_options o = test_options(2, MIB, 1);
	struct ta_ticket foretold, ticket;
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(put_pattern(arena.writer, 1, 1, NULL));
	assert_ok(ta_loan(arena.writer, 100, &loan));
	ta_loan_ticket(loan, 99, &foretold);
	assert_err(actor_view(&arena.actor[0], 0, &foretold), -ESTALE);
	assert_ok(ta_commit(loan, 99, NULL, &ticket));
	assert_memory_equal(&ticket, &foretold, sizeof(ticket));
	assert_ok(actor_view(&arena.actor[0], 0, &foretold));
	arena_close(&arena);
}

static void a_commit_that_fails_leaves_the_loan(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_tensor t = { TA_FLOAT, 32, 1, 1, 0, 0, { 3 }, "" };
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_loan(arena.writer, 100, &loan));
	assert_err(ta_commit(loan, 101, NULL, NULL), -EINVAL);
	assert_err(ta_commit(loan, 13, &t, NULL), -EINVAL);
	assert_err(ta_commit_to(loan, NULL, 0, 12, &t, NULL), -EINVAL);
	assert_int_equal(stats_of(arena.writer).writing, 1);
	fill_pattern(loan->data, 12, 6);
	assert_ok(ta_commit(loan, 12, &t, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 6));
	arena_close(&arena);
}

static void an_aborted_loan_frees_its_slot_unseen(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_loan(arena.writer, 100, &loan));
	assert_err(put_pattern(arena.writer, 1, 1, NULL), -EAGAIN);
	assert_ok(ta_abort(loan));
	assert_int_equal(stats_of(arena.writer).aborted, 1);
	assert_int_equal(stats_of(arena.writer).free, 1);
	assert_err(actor_next(&arena.actor[0], 0, 0), -EAGAIN);
	assert_ok(put_pattern(arena.writer, 1, 1, NULL));
	arena_close(&arena);
}

static void what_is_called_back_is_kept_by_who_has_seen_it(void **state)
{
	struct ta_options o = test_options(1, MIB, 3);
	struct ta_ticket ticket;
	struct ta_reader *reader;
	struct ta_view *view;
	struct ta_stats st;
	struct arena arena;
	uint32_t pending = 0;

	(void)state;
	/* An actor sees it, this process's reader does not, a seat is open. */
	arena_open(&arena, &o, 1);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, 1000, 1, &ticket));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(ta_retract(arena.writer, &ticket, &pending));
	assert_int_equal(pending, 1);
	assert_int_equal(stats_of(arena.writer).retracted, 2);
	assert_err(ta_next(reader, 0, &view), -EAGAIN);
	assert_err(ta_view(reader, &ticket, &view), -ESTALE);
	assert_err(put_pattern(arena.writer, 1000, 2, NULL), -EAGAIN);
	assert_ok(actor_check(&arena.actor[0], 0, 1));
	assert_ok(actor_release(&arena.actor[0], 0));
	await_stats(arena.writer, st, st.free == 1);
	assert_err(ta_retract(arena.writer, &ticket, NULL), -ESTALE);

	assert_ok(put_pattern(arena.writer, 1000, 2, &ticket));
	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_true(is_pattern(view->data, 1000, 2));
	assert_ok(ta_release(view));
	ta_reader_close(reader);
	arena_close(&arena);
}

static void a_publication_called_back_unseen_frees_its_slot(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	struct ta_ticket ticket, other;
	struct arena arena;
	uint32_t pending = 7;

	(void)state;
	arena_open(&arena, &o, 2);
	assert_ok(put_pattern(arena.writer, 1000, 1, &ticket));
	other = ticket;
	other.arena++;
	assert_err(ta_retract(arena.writer, &other, &pending), -ESTALE);
	other = ticket;
	other.slot = 1;
	assert_err(ta_retract(arena.writer, &other, &pending), -ESTALE);
	assert_int_equal(pending, 7);
	assert_ok(ta_retract(arena.writer, &ticket, &pending));
	assert_int_equal(pending, 0);
	assert_int_equal(stats_of(arena.writer).free, 1);
	assert_err(actor_next(&arena.actor[0], 0, 0), -EAGAIN);
	assert_err(actor_next(&arena.actor[1], 0, 0), -EAGAIN);
	assert_ok(put_pattern(arena.writer, 1000, 2, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 2));
	arena_close(&arena);
}

static void a_commit_to_nobody_ends_the_loan(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_loan *loan;
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_loan(arena.writer, 100, &loan));
	assert_ok(actor_close_reader(&arena.actor[0]));
	await_stats(arena.writer, st, st.readers == 0);
	assert_err(ta_commit(loan, 100, NULL, NULL), -ENOTCONN);
	st = stats_of(arena.writer);
	assert_int_equal(st.free, 1);
	assert_int_equal(st.unaddressed, 1);
	arena_close(&arena);
}

static void views_of_one_publication_share_a_hold(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_view *view[3];
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct arena arena;
	int i;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, 10, 1, &ticket));
	assert_ok(ta_next(reader, HANG_MS, &view[0]));
	assert_ok(ta_view(reader, &ticket, &view[1]));
	assert_ok(ta_view(reader, &view[1]->ticket, &view[2]));
	assert_err(ta_next(reader, 0, &view[2]), -EAGAIN);
	assert_ptr_equal(view[0]->data, view[1]->data);
	for (i = 0; i < 3; i++) {
		assert_int_equal(stats_of(arena.writer).published, 1);
		assert_int_equal(stats_of(arena.writer).released, 0);
		assert_true(is_pattern(view[i]->data, 10, 1));
		assert_ok(ta_release(view[i]));
	}
	assert_int_equal(stats_of(arena.writer).published, 0);
	assert_int_equal(stats_of(arena.writer).released, 1);
	assert_err(ta_view(reader, &ticket, &view[0]), -ESTALE);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void closing_a_reader_gives_up_all_it_held(void **state)
{
	struct ta_options o = test_options(4, MIB, 2);
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, 10, 1, &ticket));
	assert_ok(put_pattern(arena.writer, 10, 2, NULL));
	assert_ok(ta_view(reader, &ticket, &view));
	assert_ok(ta_view(reader, &ticket, &view));
	ta_reader_close(reader);
	await_stats(arena.writer, st, st.detached == 1);
	assert_int_equal(st.readers, 1);
	assert_int_equal(st.reclaimed_dead_readers, 0);
	actor_drain_start(&arena.actor[0], 2);
	assert_ok(actor_drain_end(&arena.actor[0]));
	assert_int_equal(stats_of(arena.writer).free, 4);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_reuse_before_every_reader_has_released),
		cmocka_unit_test(a_retained_view_survives_a_thousand_puts),
		cmocka_unit_test(exhaustion_declines_at_once_and_is_counted),
		cmocka_unit_test(a_loan_is_filled_in_place),
		cmocka_unit_test(a_loan_foretells_its_ticket),
		cmocka_unit_test(a_commit_that_fails_leaves_the_loan),
		cmocka_unit_test(an_aborted_loan_frees_its_slot_unseen),
		cmocka_unit_test(
			what_is_called_back_is_kept_by_who_has_seen_it),
		cmocka_unit_test(
			a_publication_called_back_unseen_frees_its_slot),
		cmocka_unit_test(a_commit_to_nobody_ends_the_loan),
		cmocka_unit_test(views_of_one_publication_share_a_hold),
		cmocka_unit_test(closing_a_reader_gives_up_all_it_held),
	};

	return run_cases(argc, argv, tests);
}
