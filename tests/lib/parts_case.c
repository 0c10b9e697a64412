// SPDX-License-Identifier: MIT
/* Tensors put from parts, and written into loans, arrive as one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define SLOT (12 * MIB)

/* Takes what the reader has and looks whether it is the pattern of @seed. */
static void expect_pattern(struct ta_reader *reader, size_t nbytes,
			   uint64_t seed)
{
	struct ta_view *view;

	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_int_equal(view->nbytes, nbytes);
	assert_true(is_pattern(view->data, nbytes, seed));
	assert_ok(ta_release(view));
}

static void open_with_reader(struct arena *arena, struct ta_options *o,
			     struct ta_reader **reader)
{
	arena_open(arena, o, 0);
	assert_ok(ta_attach(ta_handle(arena->writer), reader));
}

static void *make_pattern(size_t nbytes, uint64_t seed)
{
	void *data = malloc(nbytes);

	assert_non_null(data);
	fill_pattern(data, nbytes, seed);
	return data;
}

static void buffers_are_stacked_in_their_order(void **state)
{
	static const size_t sizes[] = { 1, 0, 4097, 3 * MIB + 1, 7, 5 * MIB };
	struct ta_options o = test_options(1, SLOT, 1);
	struct ta_part parts[ARRAY_SIZE(sizes)];
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct arena arena;
	size_t i, n = 0;
	uint8_t *data;

	(void)state;
	open_with_reader(&arena, &o, &reader);
	data = make_pattern(SLOT, 1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* Each in memory of its own. */
		uint8_t *own = malloc(sizes[i] + 1);

		assert_non_null(own);
		memcpy(own, data + n, sizes[i]);
		parts[i] = (struct ta_part){ own, 1, sizes[i], 0 };
		n += sizes[i];
	}
	assert_ok(ta_put_v(arena.writer, parts, ARRAY_SIZE(parts), NULL,
			   &ticket));
	assert_int_equal(ticket.nbytes, n);
	expect_pattern(reader, n, 1);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		free((void *)parts[i].data);
	free(data);
	ta_reader_close(reader);
	arena_close(&arena);
}

/* Rows as in the left part of a wider image. */
static void strided_rows_arrive_without_what_lies_between(void **state)
{
	static const struct {
		size_t rows, row_bytes, stride;
	} shape[] = {
		{ 9000, 1024, 1500 },	  { 3, 3 * MIB + 5, 4 * MIB },
		{ 100000, 3, 4 },	  { 2000, 4096, 4096 },
		{ 1, 5 * MIB, SIZE_MAX },
	};
	struct ta_options o = test_options(1, SLOT, 1);
	struct ta_reader *reader;
	struct arena arena;
	struct ta_part part;
	uint8_t *data, *wide;
	size_t i, row;

	(void)state;
	open_with_reader(&arena, &o, &reader);
	wide = malloc(16 * MIB);
	assert_non_null(wide);
	for (i = 0; i < ARRAY_SIZE(shape); i++) {
		size_t rows = shape[i].rows, row_bytes = shape[i].row_bytes;

		data = make_pattern(rows * row_bytes, i);
		memset(wide, 0xff, 16 * MIB);
		for (row = 0; row < rows; row++)
			memcpy(wide + row * shape[i].stride,
			       data + row * row_bytes, row_bytes);
		free(data);
		part = (struct ta_part){ wide, rows, row_bytes,
					 shape[i].stride };
		assert_ok(ta_put_v(arena.writer, &part, 1, NULL, NULL));
		expect_pattern(reader, rows * row_bytes, i);
	}
	free(wide);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void the_tensor_describes_all_parts_together(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_tensor t = { TA_FLOAT, 32, 1, 2, 0, 0, { 2, 3 }, "" };
	const float image[] = { 1, 2, 3, 99, 4, 5, 6, 99 };
	const struct ta_part parts[] = {
		{ image, 1, 12, 0 },
		{ image + 4, 1, 12, 0 },
	};
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;

	(void)state;
	open_with_reader(&arena, &o, &reader);
	assert_ok(ta_put_v(arena.writer, parts, 2, &t, NULL));
	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_int_equal(view->tensor.shape[0], 2);
	assert_int_equal(view->tensor.shape[1], 3);
	assert_memory_equal(view->data, ((float[]){ 1, 2, 3, 4, 5, 6 }), 24);
	assert_ok(ta_release(view));
	/* One part less is another size. */
	assert_err(ta_put_v(arena.writer, parts, 1, &t, NULL), -EINVAL);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void parts_may_be_put_to_some_readers(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	const struct ta_part parts[] = { { "ab", 1, 2, 0 }, { "c", 1, 1, 0 } };
	struct ta_reader *first, *second;
	struct ta_view *view;
	struct arena arena;
	uint64_t id;

	(void)state;
	open_with_reader(&arena, &o, &first);
	assert_ok(ta_attach(ta_handle(arena.writer), &second));
	id = ta_reader_id(second);
	assert_ok(ta_put_v_to(arena.writer, &id, 1, parts, 2, NULL, NULL));
	assert_err(ta_next(first, 0, &view), -EAGAIN);
	assert_ok(ta_next(second, HANG_MS, &view));
	assert_int_equal(view->nbytes, 3);
	assert_memory_equal(view->data, "abc", 3);
	assert_ok(ta_release(view));
	assert_err(ta_put_v_to(arena.writer, NULL, 0, parts, 2, NULL, NULL),
		   -EINVAL);
	id += 100;
	assert_err(ta_put_v_to(arena.writer, &id, 1, parts, 2, NULL, NULL),
		   -ESTALE);
	assert_int_equal(stats_of(arena.writer).free, 1);
	ta_reader_close(second);
	ta_reader_close(first);
	arena_close(&arena);
}

static void no_parts_are_an_empty_tensor(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	const struct ta_part nothing = { NULL, 0, 8, 8 };
	struct ta_reader *reader;
	struct arena arena;

	(void)state;
	open_with_reader(&arena, &o, &reader);
	assert_ok(ta_put_v(arena.writer, NULL, 0, NULL, NULL));
	expect_pattern(reader, 0, 0);
	assert_ok(ta_put_v(arena.writer, &nothing, 1, NULL, NULL));
	expect_pattern(reader, 0, 0);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void impossible_parts_are_refused_and_take_no_slot(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	const struct ta_part null = { NULL, 1, 1, 0 };
	const struct ta_part huge[] = {
		{ "", SIZE_MAX, 2, 0 },
		{ "", 2, 1, SIZE_MAX },
	};
	const struct ta_part large = { "", 2, MIB, 0 };
	struct ta_stats st;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_err(ta_put_v(arena.writer, NULL, 1, NULL, NULL), -EINVAL);
	assert_err(ta_put_v(arena.writer, &null, 1, NULL, NULL), -EINVAL);
	assert_err(ta_put_v(arena.writer, &huge[0], 1, NULL, NULL), -EOVERFLOW);
	assert_err(ta_put_v(arena.writer, &huge[1], 1, NULL, NULL), -EOVERFLOW);
	assert_err(ta_put_v(arena.writer, &large, 1, NULL, NULL), -EMSGSIZE);
	st = stats_of(arena.writer);
	assert_int_equal(st.free, 1);
	assert_int_equal(st.puts, 0);
	assert_int_equal(st.aborted, 0);
	arena_close(&arena);
}

static void a_loan_is_written_in_pieces_in_any_order(void **state)
{
	struct ta_options o = test_options(1, SLOT, 1);
	struct ta_reader *reader;
	struct ta_loan *loan;
	struct arena arena;
	uint8_t *data;

	(void)state;
	open_with_reader(&arena, &o, &reader);
	data = make_pattern(SLOT, 3);
	assert_ok(ta_loan(arena.writer, SLOT, &loan));
	assert_ok(ta_loan_write(loan, 5 * MIB + 3, data + 5 * MIB + 3,
				SLOT - 5 * MIB - 3));
	assert_ok(ta_loan_write(loan, 0, data, 1));
	assert_ok(ta_loan_write(loan, 1, data + 1, 5 * MIB + 2));
	assert_ok(ta_loan_write(loan, SLOT, NULL, 0));
	assert_ok(ta_commit(loan, SLOT, NULL, NULL));
	expect_pattern(reader, SLOT, 3);
	free(data);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void nothing_is_written_beyond_a_loan(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, 100, &loan));
	memset(loan->data, 'a', 100);
	assert_err(ta_loan_write(loan, 0, "", 101), -EINVAL);
	assert_err(ta_loan_write(loan, 100, "", 1), -EINVAL);
	assert_err(ta_loan_write(loan, 101, "", 0), -EINVAL);
	assert_err(ta_loan_write(loan, SIZE_MAX, "", 2), -EINVAL);
	assert_err(ta_loan_write(loan, 2, "", SIZE_MAX), -EINVAL);
	assert_err(ta_loan_write(loan, 0, NULL, 1), -EINVAL);
	assert_ok(ta_loan_write(loan, 99, "z", 1));
	assert_memory_equal((char *)loan->data + 97, "aaz", 3);
	assert_ok(ta_abort(loan));
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_stacked_in_their_order),
		cmocka_unit_test(strided_rows_arrive_without_what_lies_between),
		cmocka_unit_test(the_tensor_describes_all_parts_together),
		cmocka_unit_test(parts_may_be_put_to_some_readers),
		cmocka_unit_test(no_parts_are_an_empty_tensor),
		cmocka_unit_test(impossible_parts_are_refused_and_take_no_slot),
		cmocka_unit_test(a_loan_is_written_in_pieces_in_any_order),
		cmocka_unit_test(nothing_is_written_beyond_a_loan),
	};

	return run_cases(argc, argv, tests);
}
