// SPDX-License-Identifier: MIT
/*
 * Publications that are no tensors: whoever can open the device can make them,
 * so readers must get rid of them without harm.
 */
#include <errno.h>
#include <string.h>

#include <lib/tensor.h>
#include <lib/writer.h>

#include "harness.h"

/* Publishes as a program would that knows the engine but not this library. */
static void publish_raw(struct ta_writer *writer, const void *meta,
			uint32_t meta_bytes, uint64_t nbytes,
			struct ta_ticket *ticket)
{
	struct tensorarena_acquire slot = { .nbytes = nbytes };
	struct tensorarena_publish publish = { .nbytes = nbytes };

	assert_ok(ta_writer_call(writer, TENSORARENA_ACQUIRE, &slot));
	publish.slot = slot.slot;
	publish.generation = slot.generation;
	publish.meta_bytes = meta_bytes;
	memcpy(publish.meta, meta, meta_bytes);
	assert_ok(ta_writer_call(writer, TENSORARENA_PUBLISH, &publish));
	*ticket = (struct ta_ticket){
		.arena = writer->arena,
		.generation = slot.generation,
		.nbytes = nbytes,
		.slot = slot.slot,
	};
}

static void expect_refused(const void *meta, uint32_t meta_bytes)
{
	struct ta_options o = test_options(2, MIB, 1);
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct arena arena;

	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	publish_raw(arena.writer, meta, meta_bytes, 1000, &ticket);
	assert_ok(put_pattern(arena.writer, 1000, 1, NULL));
	assert_err(ta_next(reader, HANG_MS, &view), -EPROTO);
	assert_int_equal(stats_of(arena.writer).free, 1);
	assert_err(ta_view(reader, &ticket, &view), -ESTALE);
	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_true(is_pattern(view->data, 1000, 1));
	assert_ok(ta_release(view));

	publish_raw(arena.writer, meta, meta_bytes, 1000, &ticket);
	assert_err(ta_view(reader, &ticket, &view), -EPROTO);
	assert_err(ta_next(reader, 0, &view), -EAGAIN);
	assert_int_equal(stats_of(arena.writer).free, 2);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void a_publication_without_a_descriptor_is_refused(void **state)
{
	(void)state;
	expect_refused("", 0);
}

static void a_publication_of_other_words_is_refused(void **state)
{
	unsigned char meta[TENSORARENA_META_BYTES];

	(void)state;
	expect_refused("hello, world", 12);
	memset(meta, 0xff, sizeof(meta));
	expect_refused(meta, sizeof(meta));
	memset(meta, 0, sizeof(meta));
	expect_refused(meta, sizeof(meta));
}

static void a_descriptor_of_another_size_is_refused(void **state)
{
	uint8_t meta[TENSORARENA_META_BYTES];
	int used;

	(void)state;
	used = ta_tensor_encode(NULL, 999, meta);
	assert_true(used > 0);
	expect_refused(meta, (uint32_t)used);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_publication_without_a_descriptor_is_refused),
		cmocka_unit_test(a_publication_of_other_words_is_refused),
		cmocka_unit_test(a_descriptor_of_another_size_is_refused),
	};

	return run_cases(argc, argv, tests);
}
