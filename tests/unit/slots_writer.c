// SPDX-License-Identifier: MIT
/* The writer's calls: acquire, take, abort, publish. */
#include "slots_fixture.h"

static void acquire_takes_the_slot_that_fits_best(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	f.slot[0].capacity = 0;
	f.slot[1].capacity = 80;
	f.slot[2].capacity = 40;
	f.slot[3].capacity = 80;
	/* The smallest with room; the lowest of equals; then the nearest. */
	assert_int_equal(ta_slots_acquire(&f.s, 30), 2);
	assert_int_equal(ta_slots_acquire(&f.s, 30), 1);
	assert_int_equal(ta_slots_acquire(&f.s, 90), 3);
	assert_int_equal(ta_slots_acquire(&f.s, 0), 0);
	assert_int_equal(ta_slots_acquire(&f.s, 0), -EAGAIN);
}

static void acquire_declines_and_counts(void **state)
{
	struct fixture f;
	uint32_t i;

	(void)state;
	fixture_init(&f, 1);
	assert_int_equal(ta_slots_acquire(&f.s, SLOT_BYTES + 1), -EMSGSIZE);
	assert_int_equal(ta_slots_acquire(&f.s, ~0ULL), -EMSGSIZE);
	for (i = 0; i < NR_SLOTS; i++)
		assert_int_equal(ta_slots_acquire(&f.s, SLOT_BYTES), i);
	assert_int_equal(ta_slots_acquire(&f.s, 1), -EAGAIN);
	/* Too large is too large, full or not. */
	assert_int_equal(ta_slots_acquire(&f.s, SLOT_BYTES + 1), -EMSGSIZE);
	assert_int_equal(f.s.count.declined_oversize, 3);
	assert_int_equal(f.s.count.declined_no_slot, 1);
	assert_int_equal(f.s.count.declined_no_memory, 0);
}

static void every_acquire_is_a_new_generation(void **state)
{
	struct fixture f;
	uint64_t i;

	(void)state;
	fixture_init(&f, 1);
	for (i = 1; i < 5; i++) {
		assert_int_equal(ta_slots_acquire(&f.s, 1), 0);
		assert_int_equal(f.slot[0].generation, i);
		assert_int_equal(ta_slots_abort(&f.s, 0, i), 0);
		assert_int_equal(ta_slots_abort(&f.s, 0, i), -ESTALE);
	}
	assert_int_equal(f.s.count.aborted, 4);
}

static void a_slot_without_memory_yet_is_nobodys(void **state)
{
	struct fixture f;
	__u8 meta = 0;

	(void)state;
	fixture_init(&f, 1);
	memset(f.slot, 0, sizeof(f.slot));
	assert_int_equal(ta_slots_acquire(&f.s, 5), 0);
	assert_int_equal(ta_slots_check_writing(&f.s, 0, 1), -ESTALE);
	assert_int_equal(ta_slots_abort(&f.s, 0, 1), -ESTALE);
	assert_int_equal(ta_slots_publish(&f.s, 0, 1, 5, EVERYBODY, &meta, 1,
					  0),
			 -ESTALE);
	assert_int_equal(ta_slots_built(&f.s, 0, 5), 0);
	assert_int_equal(ta_slots_check_writing(&f.s, 0, 1), 0);
	assert_int_equal(ta_slots_check_writing(&f.s, 0, 2), -ESTALE);
	assert_int_equal(ta_slots_check_writing(&f.s, NR_SLOTS, 1), -EINVAL);

	assert_int_equal(ta_slots_acquire(&f.s, 5), 1);
	ta_slots_no_memory(&f.s, 1);
	assert_int_equal(f.slot[1].state, TA_SLOT_FREE);
	assert_int_equal(f.s.count.declined_no_memory, 1);
	assert_int_equal(f.s.count.aborted, 0);
}

static void a_taken_slot_is_nobodys_and_comes_back_uncounted(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	assert_int_equal(ta_slots_take(&f.s, 2), 0);
	assert_int_equal(ta_slots_take(&f.s, 2), -EAGAIN);
	assert_int_equal(f.s.nr_state[TA_SLOT_WRITING], 1);
	assert_int_equal(ta_slots_abort(&f.s, 2, 1), -ESTALE);
	ta_slots_untake(&f.s, 2);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
	assert_int_equal(f.s.count.aborted, 0);
	/* The writer may die between; the slot is still the taker's. */
	assert_int_equal(ta_slots_take(&f.s, 2), 0);
	assert_int_equal(ta_slots_writer_gone(&f.s), 0);
	assert_int_equal(ta_slots_take(&f.s, 2), -EAGAIN);
	ta_slots_untake(&f.s, 2);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
}

static void
a_slot_being_built_outlives_the_writer_until_its_builder(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	memset(f.slot, 0, sizeof(f.slot));
	assert_int_equal(ta_slots_acquire(&f.s, 5), 0);
	assert_int_equal(ta_slots_writer_gone(&f.s), 0);
	/* Nobody else may touch memory that is half there. */
	assert_int_equal(ta_slots_take(&f.s, 0), -EAGAIN);
	assert_int_equal(ta_slots_built(&f.s, 0, 5), -EPIPE);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
	assert_int_equal(ta_slots_take(&f.s, 0), 0);
}

static void publish_hands_over_bytes_meta_and_time(void **state)
{
	__u8 meta[TENSORARENA_META_BYTES];
	struct fixture f;
	uint32_t i;

	(void)state;
	fixture_init(&f, 3);
	memset(meta, 0xee, sizeof(meta));
	assert_int_equal(ta_slots_acquire(&f.s, 50), 0);
	assert_int_equal(ta_slots_publish(&f.s, 0, 1, 40, EVERYBODY, meta,
					  sizeof(meta), 99),
			 3);
	assert_int_equal(f.slot[0].nbytes, 40);
	assert_int_equal(f.slot[0].stamp, 99);
	assert_int_equal(f.slot[0].meta_bytes, sizeof(meta));
	assert_memory_equal(f.slot[0].meta, meta, sizeof(meta));

	/* Bytes of an earlier publication never show behind shorter ones. */
	for (i = 0; i < 3; i++)
		ta_slots_close_unclaimed(&f.s, i);
	fixture_attach(&f, NULL);
	assert_int_equal(ta_slots_acquire(&f.s, 50), 0);
	assert_int_equal(
		ta_slots_publish(&f.s, 0, 2, 0, EVERYBODY, "abc", 3, 100), 1);
	assert_memory_equal(f.slot[0].meta, "abc", 3);
	for (i = 3; i < TENSORARENA_META_BYTES; i++)
		assert_int_equal(f.slot[0].meta[i], 0);
	assert_int_equal(f.s.count.puts, 2);
	assert_int_equal(f.s.count.put_bytes, 40);
}

static void a_failed_publish_changes_nothing(void **state)
{
	struct fixture f, before;
	__u8 meta[1] = { 1 };

	(void)state;
	fixture_init(&f, 1);
	assert_int_equal(ta_slots_acquire(&f.s, 50), 0);
	before = f;
	assert_int_equal(ta_slots_publish(&f.s, 0, 1, 51, EVERYBODY, meta, 1,
					  0),
			 -EINVAL);
	assert_int_equal(ta_slots_publish(&f.s, 0, 1, 50, EVERYBODY, meta,
					  TENSORARENA_META_BYTES + 1, 0),
			 -EINVAL);
	assert_int_equal(ta_slots_publish(&f.s, NR_SLOTS, 1, 50, EVERYBODY,
					  meta, 1, 0),
			 -EINVAL);
	assert_int_equal(ta_slots_publish(&f.s, 0, 0, 50, EVERYBODY, meta, 1,
					  0),
			 -ESTALE);
	assert_int_equal(ta_slots_publish(&f.s, 0, 2, 50, EVERYBODY, meta, 1,
					  0),
			 -ESTALE);
	assert_int_equal(ta_slots_publish(&f.s, 1, 0, 0, EVERYBODY, meta, 1, 0),
			 -ESTALE);
	assert_memory_equal(&f, &before, sizeof(f));
	assert_int_equal(ta_slots_abort(&f.s, 0, 1), 0);
}

static void a_publication_for_nobody_frees_the_slot(void **state)
{
	struct fixture f;
	__u8 meta = 0;

	(void)state;
	fixture_init(&f, 0);
	assert_int_equal(ta_slots_acquire(&f.s, 50), 0);
	assert_int_equal(
		ta_slots_publish(&f.s, 0, 1, 50, EVERYBODY, &meta, 1, 0), 0);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
	assert_int_equal(f.s.count.unaddressed, 1);
	assert_int_equal(f.s.count.puts, 0);
	/* A named seat that is not open counts for nobody, too. */
	fixture_attach(&f, NULL);
	assert_int_equal(ta_slots_acquire(&f.s, 50), 0);
	assert_int_equal(ta_slots_publish(&f.s, 0, 2, 50, 1 << 5, &meta, 1, 0),
			 0);
	assert_int_equal(f.s.count.unaddressed, 2);
}

static void retract_takes_it_from_who_has_not_seen_it(void **state)
{
	struct tensorarena_ticket t;
	struct fixture f, before;
	uint32_t pending = 7;

	(void)state;
	fixture_init(&f, 3);
	assert_int_equal(fixture_attach(&f, NULL), 0);
	assert_int_equal(fixture_attach(&f, NULL), 1);
	t = fixture_put(&f, 5, EVERYBODY);
	assert_int_equal(ta_slots_next(&f.s, 0), t.slot);
	assert_int_equal(ta_slots_retract(&f.s, t.slot, t.generation, &pending),
			 2);
	assert_int_equal(pending, 1);
	assert_int_equal(f.slot[t.slot].pending, 1);
	assert_int_equal(f.s.count.retracted, 2);
	assert_int_equal(ta_slots_borrow(&f.s, 1, &t), -ESTALE);
	assert_int_equal(ta_slots_release(&f.s, 1, t.slot, t.generation),
			 -ESTALE);
	/* What was not delivered comes again to who had it, to nobody else. */
	ta_slots_unsee(&f.s, 0, t.slot, t.generation);
	ta_slots_unsee(&f.s, 1, t.slot, t.generation);
	assert_int_equal(f.slot[t.slot].unseen, 1);
	assert_int_equal(ta_slots_retract(&f.s, t.slot, t.generation, &pending),
			 1);
	assert_int_equal(pending, 0);
	assert_int_equal(f.s.nr_state[TA_SLOT_FREE], NR_SLOTS);
	before = f;
	assert_int_equal(ta_slots_retract(&f.s, t.slot, t.generation, &pending),
			 -ESTALE);
	assert_int_equal(ta_slots_retract(&f.s, NR_SLOTS, t.generation,
					  &pending),
			 -EINVAL);
	assert_memory_equal(&f, &before, sizeof(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acquire_takes_the_slot_that_fits_best),
		cmocka_unit_test(acquire_declines_and_counts),
		cmocka_unit_test(every_acquire_is_a_new_generation),
		cmocka_unit_test(a_slot_without_memory_yet_is_nobodys),
		cmocka_unit_test(
			a_taken_slot_is_nobodys_and_comes_back_uncounted),
		cmocka_unit_test(
			a_slot_being_built_outlives_the_writer_until_its_builder),
		cmocka_unit_test(publish_hands_over_bytes_meta_and_time),
		cmocka_unit_test(a_failed_publish_changes_nothing),
		cmocka_unit_test(a_publication_for_nobody_frees_the_slot),
		cmocka_unit_test(retract_takes_it_from_who_has_not_seen_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("slots_writer", tests, NULL, NULL);
}
