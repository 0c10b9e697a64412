// SPDX-License-Identifier: MIT
/* What is put arrives: every byte, at every reader, with its description. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define READERS 4
#define SLOT (4 * MIB + 3)

static void every_size_arrives_byte_exact_at_four_readers(void **state)
{
	static const size_t sizes[] = { 0,	     1,	   2 * MIB - 1,
					2 * MIB + 1, SLOT, 4097 };
	struct ta_options o = test_options(2, SLOT, READERS);
	struct ta_ticket ticket, seen;
	struct ta_tensor tensor;
	struct arena arena;
	unsigned int r;
	size_t i;

	(void)state;
	arena_open(&arena, &o, READERS);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_ok(put_pattern(arena.writer, sizes[i], i, &ticket));
		assert_int_equal(ticket.nbytes, sizes[i]);
		for (r = 0; r < READERS; r++) {
			struct actor *reader = &arena.actor[r];

			/* By either way to find it. */
			if (r % 2)
				assert_ok(actor_next(reader, 0, HANG_MS));
			else
				assert_ok(actor_view(reader, 0, &ticket));
			assert_ok(actor_check(reader, 0, i));
			actor_describe(reader, 0, &seen, &tensor);
			assert_memory_equal(&seen, &ticket, sizeof(seen));
			assert_int_equal(tensor.shape[0], sizes[i]);
			assert_ok(actor_release(reader, 0));
		}
	}
	assert_int_equal(stats_of(arena.writer).free, 2);
	assert_int_equal(stats_of(arena.writer).puts, ARRAY_SIZE(sizes));
	arena_close(&arena);
}

static void descriptors_and_tags_arrive_as_they_were_sent(void **state)
{
	static const struct ta_tensor sent[] = {
		{ TA_FLOAT, 32, 1, 2, 3, 0, { 3, 5 }, "f32" },
		{ TA_BFLOAT, 16, 1, 3, 5, 0, { 2, 3, 4 }, "\0\1\2\3\xff" },
		{ TA_FLOAT8_E4M3FN, 8, 1, 1, 0, 0, { 7 }, "" },
		{ TA_FLOAT8_E5M2, 8, 1, 4, 1, 0, { 1, 1, 1, 9 }, "x" },
		{ TA_INT, 8, 1, 0, 0, 0, { 0 }, "" },
		{ TA_BOOL, 8, 1, 1, 0, 0, { 9 }, "" },
		{ TA_FLOAT4_E2M1FN, 4, 1, 1, 0, 0, { 3 }, "" },
		{ TA_FLOAT, 64, 1, 8, 0, 0, { 1, 2, 1, 2, 1, 2, 1, 2 }, "" },
		{ TA_FLOAT, 16, 4, 2, 0, 0, { 0, 1000 }, "" },
	};
	struct ta_options o = test_options(1, MIB, 1);
	unsigned char data[1024];
	struct ta_ticket ticket;
	struct ta_tensor got;
	struct arena arena;
	uint64_t nbytes;
	size_t i;

	(void)state;
	arena_open(&arena, &o, 1);
	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		assert_ok(ta_tensor_nbytes(&sent[i], &nbytes));
		fill_pattern(data, nbytes, i);
		assert_ok(ta_put(arena.writer, data, nbytes, &sent[i], NULL));
		assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
		assert_ok(actor_check(&arena.actor[0], 0, i));
		actor_describe(&arena.actor[0], 0, &ticket, &got);
		assert_memory_equal(&got, &sent[i], sizeof(got));
		assert_ok(actor_release(&arena.actor[0], 0));
	}
	arena_close(&arena);
}

static void longest_tag_arrives(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_tensor sent = {
		.code = TA_FLOAT,
		.bits = 32,
		.lanes = 1,
		.ndim = TA_MAX_NDIM,
		.tag_bytes = TA_MAX_TAG,
		.shape = { 1, 1, 1, 1, 1, 1, 1, 1 },
	};
	struct ta_ticket ticket;
	struct ta_tensor got;
	struct arena arena;

	(void)state;
	fill_pattern(sent.tag, sizeof(sent.tag), 1);
	arena_open(&arena, &o, 1);
	assert_ok(ta_put(arena.writer, "abcd", 4, &sent, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	actor_describe(&arena.actor[0], 0, &ticket, &got);
	assert_memory_equal(&got, &sent, sizeof(got));
	arena_close(&arena);
}

static void bytes_without_a_descriptor_are_u8(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_ticket ticket;
	struct ta_tensor got;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_ok(ta_put(arena.writer, "hello", 5, NULL, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	actor_describe(&arena.actor[0], 0, &ticket, &got);
	assert_int_equal(got.code, TA_UINT);
	assert_int_equal(got.bits, 8);
	assert_int_equal(got.lanes, 1);
	assert_int_equal(got.ndim, 1);
	assert_int_equal(got.shape[0], 5);
	assert_int_equal(got.tag_bytes, 0);
	arena_close(&arena);
}

static void impossible_puts_are_refused_and_take_no_slot(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_tensor t = { TA_FLOAT, 32, 1, 1, 0, 0, { 2 }, "" };
	uint64_t reader = 1;
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 1);
	assert_err(ta_put(arena.writer, "12345678", 7, &t, NULL), -EINVAL);
	assert_err(ta_put(arena.writer, NULL, 8, &t, NULL), -EINVAL);
	assert_err(ta_put(arena.writer, NULL, 1, NULL, NULL), -EINVAL);
	t.shape[0] = -2;
	assert_err(ta_put(arena.writer, "12345678", 8, &t, NULL), -EINVAL);
	assert_err(ta_put_to(arena.writer, NULL, 0, "x", 1, NULL, NULL),
		   -EINVAL);
	assert_err(ta_put_to(arena.writer, &reader, 0, "x", 1, NULL, NULL),
		   -EINVAL);
	assert_err(ta_put_to(arena.writer, &reader, 65, "x", 1, NULL, NULL),
		   -EINVAL);
	st = stats_of(arena.writer);
	assert_int_equal(st.free, 1);
	assert_int_equal(st.aborted, 0);
	assert_int_equal(st.puts, 0);
	assert_ok(ta_put(arena.writer, NULL, 0, NULL, NULL));
	arena_close(&arena);
}

static void publications_come_in_the_order_they_were_put(void **state)
{
	struct ta_options o = test_options(5, MIB, 1);
	struct arena arena;
	uint64_t i;

	(void)state;
	arena_open(&arena, &o, 1);
	/* Freed out of order, so that slot numbers and order differ. */
	for (i = 0; i < 5; i++)
		assert_ok(put_pattern(arena.writer, 100, i, NULL));
	for (i = 0; i < 5; i++)
		assert_ok(actor_next(&arena.actor[0], (int)i, HANG_MS));
	assert_ok(actor_release(&arena.actor[0], 3));
	assert_ok(actor_release(&arena.actor[0], 1));
	assert_ok(put_pattern(arena.writer, 100, 10, NULL));
	assert_ok(put_pattern(arena.writer, 100, 11, NULL));
	assert_ok(actor_release(&arena.actor[0], 0));
	assert_ok(put_pattern(arena.writer, 100, 12, NULL));
	for (i = 10; i < 13; i++) {
		assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
		assert_ok(actor_check(&arena.actor[0], 0, i));
	}
	assert_err(actor_next(&arena.actor[0], 0, 0), -EAGAIN);
	arena_close(&arena);
}

static void nobody_to_read_is_a_decline(void **state)
{
	struct ta_options o = test_options(2, MIB, 0);
	struct ta_loan *loan;
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_err(ta_put(arena.writer, "x", 1, NULL, NULL), -ENOTCONN);
	assert_err(ta_loan(arena.writer, 1, &loan), -ENOTCONN);
	st = stats_of(arena.writer);
	assert_int_equal(st.free, 2);
	assert_int_equal(st.puts, 0);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_arrives_byte_exact_at_four_readers),
		cmocka_unit_test(descriptors_and_tags_arrive_as_they_were_sent),
		cmocka_unit_test(longest_tag_arrives),
		cmocka_unit_test(bytes_without_a_descriptor_are_u8),
		cmocka_unit_test(impossible_puts_are_refused_and_take_no_slot),
		cmocka_unit_test(publications_come_in_the_order_they_were_put),
		cmocka_unit_test(nobody_to_read_is_a_decline),
	};

	return run_cases(argc, argv, tests);
}
