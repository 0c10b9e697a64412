// SPDX-License-Identifier: MIT
/* Seats: opening, claiming, closing, and what each does to publications. */
#include "slots_fixture.h"

static void seats_given_at_creation_are_open(void **state)
{
	static const uint32_t seats[] = { 0, 1, 63, 64 };
	struct fixture f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(seats) / sizeof(seats[0]); i++) {
		fixture_init(&f, seats[i]);
		assert_int_equal(ta_slots_open(&f.s), seats[i]);
		assert_int_equal(f.s.claimed, 0);
		assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
	}
}

static void readers_take_the_lowest_waiting_seat(void **state)
{
	struct fixture f;
	__u64 first, second;

	(void)state;
	fixture_init(&f, 2);
	assert_int_equal(fixture_attach(&f, &first), 0);
	assert_int_equal(fixture_attach(&f, &second), 1);
	assert_int_equal(ta_slots_open(&f.s), 2);
	/* A reader beyond the seats opens one. */
	assert_int_equal(fixture_attach(&f, NULL), 2);
	assert_int_equal(ta_slots_open(&f.s), 3);
	assert_int_not_equal(first, second);
	assert_int_not_equal(first, 0);
	assert_int_equal(f.s.count.attached, 3);
}

static void sixty_four_readers_and_no_more(void **state)
{
	struct fixture f;
	__u64 reader;
	__u32 seat;
	uint32_t i;

	(void)state;
	fixture_init(&f, 3);
	for (i = 0; i < TENSORARENA_MAX_READERS; i++)
		assert_int_equal(fixture_attach(&f, NULL), i);
	assert_int_equal(ta_slots_attach(&f.s, &seat, &reader), -EUSERS);
	assert_int_equal(f.s.count.attached, TENSORARENA_MAX_READERS);
	ta_slots_leave(&f.s, 41, TA_LEAVE_DIED);
	assert_int_equal(fixture_attach(&f, NULL), 41);
}

static void a_late_reader_gets_what_its_seat_was_sent(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;
	uint32_t seat;

	(void)state;
	fixture_init(&f, 1);
	ticket = fixture_put(&f, 7, EVERYBODY);
	seat = fixture_attach(&f, NULL);
	assert_int_equal(ta_slots_next(&f.s, seat), ticket.slot);
	assert_int_equal(ta_slots_borrow(&f.s, seat, &ticket), 0);
}

static void a_reader_beyond_the_seats_gets_later_ones_only(void **state)
{
	struct tensorarena_ticket before, after;
	struct fixture f;
	uint32_t seat;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, NULL);
	before = fixture_put(&f, 7, EVERYBODY);
	seat = fixture_attach(&f, NULL);
	assert_int_equal(ta_slots_next(&f.s, seat), -EAGAIN);
	assert_int_equal(ta_slots_borrow(&f.s, seat, &before), -ENXIO);
	after = fixture_put(&f, 8, EVERYBODY);
	assert_int_equal(ta_slots_next(&f.s, seat), after.slot);
}

static void leaving_frees_only_what_nobody_else_has_pending(void **state)
{
	static const enum ta_leave why[] = { TA_LEAVE_DETACHED,
					     TA_LEAVE_EVICTED, TA_LEAVE_DIED };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		struct tensorarena_ticket both;
		struct fixture f;

		fixture_init(&f, 2);
		fixture_attach(&f, NULL);
		fixture_attach(&f, NULL);
		both = fixture_put(&f, 1, EVERYBODY);
		fixture_put(&f, 2, 1 << 0);
		fixture_put(&f, 3, 1 << 0);
		assert_int_equal(ta_slots_leave(&f.s, 0, why[i]), 2);
		assert_int_equal(f.slot[both.slot].state, TA_SLOT_PUBLISHED);
		assert_int_equal(ta_slots_leave(&f.s, 1, why[i]), 1);
		assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
		assert_int_equal(f.s.count.detached,
				 why[i] == TA_LEAVE_DETACHED ? 2 : 0);
		assert_int_equal(f.s.count.evicted,
				 why[i] == TA_LEAVE_EVICTED ? 2 : 0);
		assert_int_equal(f.s.count.reclaimed_dead_readers,
				 why[i] == TA_LEAVE_DIED ? 2 : 0);
		assert_int_equal(f.s.count.released, 0);
	}
}

static void a_seat_does_not_inherit_from_its_last_reader(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;
	__u64 old, new;
	uint32_t seat;

	(void)state;
	fixture_init(&f, 2);
	seat = fixture_attach(&f, &old);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 7, EVERYBODY);
	ta_slots_leave(&f.s, seat, TA_LEAVE_DIED);
	assert_int_equal(fixture_attach(&f, &new), seat);
	assert_int_not_equal(old, new);
	assert_int_equal(ta_slots_next(&f.s, seat), -EAGAIN);
	assert_int_equal(ta_slots_borrow(&f.s, seat, &ticket), -ENXIO);
	assert_int_equal(ta_slots_release(&f.s, seat, ticket.slot,
					  ticket.generation),
			 -ENXIO);
	assert_int_equal(f.slot[ticket.slot].state, TA_SLOT_PUBLISHED);
}

static void an_unclaimed_seat_can_be_closed(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 2);
	fixture_attach(&f, NULL);
	fixture_put(&f, 7, 1 << 1);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, 0), -ESTALE);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, 1), 1);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, 1), -ESTALE);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, 63), -ESTALE);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, 64), -EINVAL);
	assert_int_equal(ta_slots_close_unclaimed(&f.s, ~0ULL), -EINVAL);
	assert_int_equal(ta_slots_open(&f.s), 1);
}

static void reader_ids_translate_while_seated(void **state)
{
	struct fixture f;
	__u64 reader[3], unknown, mask = 12345;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, &reader[0]);
	fixture_attach(&f, &reader[1]);
	fixture_attach(&f, &reader[2]);
	assert_int_equal(ta_slots_seat_of(&f.s, reader[1]), 1);
	assert_int_equal(ta_slots_mask(&f.s, reader, 3, &mask), 0);
	assert_int_equal(mask, 7);
	/* Naming a reader twice addresses it once. */
	unknown = reader[2];
	reader[2] = reader[0];
	assert_int_equal(ta_slots_mask(&f.s, reader, 3, &mask), 0);
	assert_int_equal(mask, 3);
	ta_slots_leave(&f.s, 2, TA_LEAVE_DETACHED);
	assert_int_equal(ta_slots_seat_of(&f.s, unknown), -ESTALE);
	assert_int_equal(ta_slots_seat_of(&f.s, 0), -ESTALE);
	reader[2] = unknown;
	assert_int_equal(ta_slots_mask(&f.s, reader, 3, &mask), -ESTALE);
	assert_int_equal(mask, 3);
}

static void writer_death_keeps_what_claimed_seats_have(void **state)
{
	struct tensorarena_ticket kept;
	struct fixture f;
	uint32_t seat;
	__u64 reader;
	__u32 none;

	(void)state;
	fixture_init(&f, 2);
	seat = fixture_attach(&f, NULL);
	kept = fixture_put(&f, 1, EVERYBODY);
	fixture_put(&f, 2, 1 << 1);
	assert_true(ta_slots_acquire(&f.s, 3) >= 0);
	/* One was being written, one was for a seat that nobody claimed. */
	assert_int_equal(ta_slots_writer_gone(&f.s), 2);
	assert_int_equal(ta_slots_writer_gone(&f.s), 0);
	assert_int_equal(ta_slots_attach(&f.s, &none, &reader), -EPIPE);
	assert_int_equal(ta_slots_open(&f.s), 1);
	assert_true(ta_slots_has_unseen(&f.s, seat));
	assert_int_equal(ta_slots_next(&f.s, seat), kept.slot);
	assert_int_equal(ta_slots_next(&f.s, seat), -EPIPE);
	assert_int_equal(
		ta_slots_release(&f.s, seat, kept.slot, kept.generation), 1);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seats_given_at_creation_are_open),
		cmocka_unit_test(readers_take_the_lowest_waiting_seat),
		cmocka_unit_test(sixty_four_readers_and_no_more),
		cmocka_unit_test(a_late_reader_gets_what_its_seat_was_sent),
		cmocka_unit_test(
			a_reader_beyond_the_seats_gets_later_ones_only),
		cmocka_unit_test(
			leaving_frees_only_what_nobody_else_has_pending),
		cmocka_unit_test(a_seat_does_not_inherit_from_its_last_reader),
		cmocka_unit_test(an_unclaimed_seat_can_be_closed),
		cmocka_unit_test(reader_ids_translate_while_seated),
		cmocka_unit_test(writer_death_keeps_what_claimed_seats_have),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("slots_seats", tests, NULL, NULL);
}
