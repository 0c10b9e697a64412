// SPDX-License-Identifier: MIT
/* The readers' calls, and what can be observed. */
#include "slots_fixture.h"

static void next_goes_oldest_first_whatever_the_slot(void **state)
{
	struct tensorarena_ticket a, b, c;
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, NULL);
	a = fixture_put(&f, 1, EVERYBODY);
	b = fixture_put(&f, 2, EVERYBODY);
	assert_int_equal(ta_slots_next(&f.s, 0), a.slot);
	assert_int_equal(ta_slots_release(&f.s, 0, a.slot, a.generation), 1);
	/* Lands in the slot just freed, below the older publication. */
	c = fixture_put(&f, 3, EVERYBODY);
	assert_int_equal(c.slot, a.slot);
	assert_int_equal(ta_slots_next(&f.s, 0), b.slot);
	assert_int_equal(ta_slots_next(&f.s, 0), c.slot);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
}

static void borrow_marks_seen_and_may_be_repeated(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 1, EVERYBODY);
	assert_true(ta_slots_has_unseen(&f.s, 0));
	assert_int_equal(ta_slots_borrow(&f.s, 0, &ticket), 0);
	assert_false(ta_slots_has_unseen(&f.s, 0));
	assert_int_equal(ta_slots_borrow(&f.s, 0, &ticket), 0);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
	assert_int_equal(
		ta_slots_release(&f.s, 0, ticket.slot, ticket.generation), 1);
	assert_int_equal(ta_slots_borrow(&f.s, 0, &ticket), -ESTALE);
}

static void what_was_not_delivered_comes_again(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 1, EVERYBODY);
	assert_int_equal(ta_slots_next(&f.s, 0), ticket.slot);
	ta_slots_unsee(&f.s, 0, ticket.slot, ticket.generation);
	assert_int_equal(ta_slots_next(&f.s, 0), ticket.slot);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
	/* Unless it was released, or replaced, meanwhile. */
	assert_int_equal(
		ta_slots_release(&f.s, 0, ticket.slot, ticket.generation), 1);
	ta_slots_unsee(&f.s, 0, ticket.slot, ticket.generation);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
	fixture_put(&f, 2, EVERYBODY);
	assert_int_equal(ta_slots_next(&f.s, 0), ticket.slot);
	ta_slots_unsee(&f.s, 0, ticket.slot, ticket.generation);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
}

static void every_field_of_a_ticket_counts(void **state)
{
	struct tensorarena_ticket good, bad;
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	fixture_attach(&f, NULL);
	good = fixture_put(&f, 10, EVERYBODY);

	bad = good;
	bad.generation++;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -ESTALE);
	bad.generation = 0;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -ESTALE);
	bad = good;
	bad.nbytes--;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -ESTALE);
	bad = good;
	bad.slot++;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -ESTALE);
	bad.slot = NR_SLOTS;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -EINVAL);
	bad.slot = ~0U;
	assert_int_equal(ta_slots_borrow(&f.s, 0, &bad), -EINVAL);
	/* None of this marked it seen. */
	assert_int_equal(ta_slots_next(&f.s, 0), good.slot);
}

static void a_slot_is_free_with_its_last_release(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;

	(void)state;
	fixture_init(&f, 2);
	fixture_attach(&f, NULL);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 1, EVERYBODY);
	assert_int_equal(
		ta_slots_release(&f.s, 0, ticket.slot, ticket.generation), 0);
	assert_int_equal(ta_slots_release(&f.s, 0, ticket.slot,
					  ticket.generation),
			 -ESTALE);
	assert_int_equal(ta_slots_borrow(&f.s, 0, &ticket), -ESTALE);
	assert_int_equal(ta_slots_borrow(&f.s, 1, &ticket), 0);
	assert_int_equal(
		ta_slots_release(&f.s, 1, ticket.slot, ticket.generation), 1);
	assert_int_equal(f.s.count.released, 2);
	assert_int_equal(ta_slots_release(&f.s, 1, NR_SLOTS, 1), -EINVAL);
}

static void an_unseen_publication_can_be_released(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;

	(void)state;
	fixture_init(&f, 2);
	fixture_attach(&f, NULL);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 1, EVERYBODY);
	assert_int_equal(
		ta_slots_release(&f.s, 0, ticket.slot, ticket.generation), 0);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
	assert_false(ta_slots_has_unseen(&f.s, 0));
}

static void a_subset_addresses_nobody_else(void **state)
{
	struct tensorarena_ticket ticket;
	struct fixture f;

	(void)state;
	fixture_init(&f, 3);
	fixture_attach(&f, NULL);
	fixture_attach(&f, NULL);
	fixture_attach(&f, NULL);
	ticket = fixture_put(&f, 1, 1 << 1);
	assert_int_equal(ta_slots_next(&f.s, 0), -EAGAIN);
	assert_int_equal(ta_slots_borrow(&f.s, 2, &ticket), -ENXIO);
	assert_int_equal(ta_slots_release(&f.s, 2, ticket.slot,
					  ticket.generation),
			 -ENXIO);
	assert_int_equal(ta_slots_next(&f.s, 1), ticket.slot);
}

static void the_oldest_pending_is_known(void **state)
{
	struct tensorarena_ticket a, b;
	struct fixture f;
	__u64 stamp = 12345;

	(void)state;
	fixture_init(&f, 2);
	fixture_attach(&f, NULL);
	fixture_attach(&f, NULL);
	assert_int_equal(ta_slots_oldest(&f.s), -1);
	assert_int_equal(ta_slots_pending(&f.s, 0, &stamp), 0);
	assert_int_equal(stamp, 12345);
	a = fixture_put(&f, 11, EVERYBODY);
	b = fixture_put(&f, 22, 1 << 0);
	assert_int_equal(ta_slots_oldest(&f.s), a.slot);
	assert_int_equal(ta_slots_pending(&f.s, 0, &stamp), 2);
	assert_int_equal(stamp, 11);
	ta_slots_release(&f.s, 0, a.slot, a.generation);
	assert_int_equal(ta_slots_pending(&f.s, 0, &stamp), 1);
	assert_int_equal(stamp, 22);
	assert_int_equal(ta_slots_oldest(&f.s), a.slot);
	ta_slots_release(&f.s, 1, a.slot, a.generation);
	assert_int_equal(ta_slots_oldest(&f.s), b.slot);
}

static void stats_copies_every_field_to_its_place(void **state)
{
	struct tensorarena_stats st = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	fixture_put(&f, 1, EVERYBODY);
	assert_true(ta_slots_acquire(&f.s, 1) >= 0);
	/* Looks free, since nobody is writing to it. */
	assert_int_equal(ta_slots_take(&f.s, NR_SLOTS - 1), 0);
	f.s.count = (struct ta_counters){
		.puts = 1,
		.put_bytes = 2,
		.unaddressed = 3,
		.aborted = 4,
		.released = 5,
		.declined_no_slot = 6,
		.declined_oversize = 7,
		.declined_no_memory = 8,
		.attached = 9,
		.detached = 10,
		.evicted = 11,
		.reclaimed_dead_readers = 12,
		.retracted = 13,
	};
	ta_slots_stats(&f.s, &st);
	assert_int_equal(st.slots, NR_SLOTS);
	assert_int_equal(st.free, NR_SLOTS - 2);
	assert_int_equal(st.writing, 1);
	assert_int_equal(st.published, 1);
	assert_int_equal(st.puts, 1);
	assert_int_equal(st.put_bytes, 2);
	assert_int_equal(st.unaddressed, 3);
	assert_int_equal(st.aborted, 4);
	assert_int_equal(st.released, 5);
	assert_int_equal(st.declined_no_slot, 6);
	assert_int_equal(st.declined_oversize, 7);
	assert_int_equal(st.declined_no_memory, 8);
	assert_int_equal(st.attached, 9);
	assert_int_equal(st.detached, 10);
	assert_int_equal(st.evicted, 11);
	assert_int_equal(st.reclaimed_dead_readers, 12);
	assert_int_equal(st.retracted, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next_goes_oldest_first_whatever_the_slot),
		cmocka_unit_test(borrow_marks_seen_and_may_be_repeated),
		cmocka_unit_test(what_was_not_delivered_comes_again),
		cmocka_unit_test(every_field_of_a_ticket_counts),
		cmocka_unit_test(a_slot_is_free_with_its_last_release),
		cmocka_unit_test(an_unseen_publication_can_be_released),
		cmocka_unit_test(a_subset_addresses_nobody_else),
		cmocka_unit_test(the_oldest_pending_is_known),
		cmocka_unit_test(stats_copies_every_field_to_its_place),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("slots_reader", tests, NULL, NULL);
}
