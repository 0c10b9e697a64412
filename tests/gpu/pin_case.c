// SPDX-License-Identifier: MIT
/* When slots are pinned, how, and when they are not any more. */
#include <errno.h>
#include <poll.h>

#include "fixture.h"

static void without_cuda_nothing_is_pinned_and_nothing_fails(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_cuda_stats stats;
	struct ta_writer *writer;
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	char byte;

	(void)state;
	assert_ok(ta_create(&o, &writer, NULL, 0));
	assert_ok(ta_attach(ta_handle(writer), &reader));
	assert_ok(put_pattern(writer, 1000, 1, &ticket));
	assert_ok(ta_view(reader, &ticket, &view));
	assert_err(ta_cuda_prepare(reader, NULL), -ENODEV);
	assert_err(ta_copy_to_device(view, &byte, 0, 1, NULL), -ENODEV);
	assert_err(ta_release_after(view, NULL), -ENODEV);
	assert_ok(ta_cuda_stats(reader, &stats, NULL, 0));
	assert_int_equal(stats.cuda_version, 0);
	assert_int_equal(stats.pins + stats.pin_failures + stats.errors, 0);
	assert_ok(ta_release(view));
	assert_int_equal(stats_of(writer).free, 1);
	ta_reader_close(reader);
	ta_writer_close(writer);
}

/* Without a driver that is initialised, and with one but no context. */
static void no_context_is_made_where_there_is_none(void **state)
{
	struct ta_view *view;
	struct gpu gpu;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		gpu_open(&gpu, 1, MIB, false);
		gpu.state->initialised = i;
		view = gpu_view(&gpu, SOME_BYTES, 1);
		assert_err(gpu_copy(&gpu, view, NULL), -ENODEV);
		assert_err(ta_cuda_prepare(gpu.reader, NULL), -ENODEV);
		assert_ok(ta_release(view));
		gpu_close(&gpu);
	}
}

static void first_view_pins_the_slot_read_only_and_once(void **state)
{
	const struct standin_region *region;
	struct ta_view *view, *again;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, 8 * MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_int_equal(gpu.state->regions, 1);
	region = &gpu.state->region[0];
	assert_ptr_equal(region->ptr, view->data);
	assert_int_equal(region->size, 2 * MIB);
	assert_int_equal(region->flags, READ_ONLY_FLAG | PORTABLE_FLAG);
	assert_ok(ta_view(gpu.reader, &view->ticket, &again));
	assert_ok(ta_release(again));
	assert_ok(ta_release(view));
	assert_ok(ta_release(gpu_view(&gpu, 2 * MIB, 2)));
	assert_int_equal(gpu.state->registered, 1);
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 1);
	assert_int_equal(gpu_stats(&gpu).pinned_bytes, 2 * MIB);
	assert_int_equal(gpu_stats(&gpu).cuda_version, 13099);
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PINNED);
	gpu_close(&gpu);
}

static void writable_mappings_are_pinned_writable(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	ta_writer_close(gpu.writer);
	gpu_close_reader(&gpu);
	o.flags |= TA_WRITABLE_READERS;
	assert_ok(ta_create(&o, &gpu.writer, NULL, 0));
	assert_ok(ta_attach(ta_handle(gpu.writer), &reader));
	assert_ok(put_pattern(gpu.writer, 10, 1, &ticket));
	assert_ok(ta_view(reader, &ticket, &view));
	assert_int_equal(gpu.state->region[0].flags, PORTABLE_FLAG);
	gpu.reader = reader;
	gpu_close(&gpu);
}

static void prepare_pins_what_populate_has_built(void **state)
{
	struct ta_view *view[3];
	struct gpu gpu;
	uint32_t pinned;
	int i;

	(void)state;
	gpu_open(&gpu, 4, 8 * MIB, true);
	assert_ok(ta_cuda_prepare(gpu.reader, &pinned));
	assert_int_equal(pinned, 0);
	assert_ok(ta_populate(gpu.writer, 3, 4 * MIB));
	assert_ok(ta_cuda_prepare(gpu.reader, &pinned));
	assert_int_equal(pinned, 3);
	assert_int_equal(gpu.state->registered, 3);
	assert_int_equal(gpu_stats(&gpu).pinned_bytes, 12 * MIB);
	for (i = 0; i < 3; i++)
		view[i] = gpu_view(&gpu, 4 * MIB, i);
	assert_int_equal(gpu.state->registered, 3);
	for (i = 0; i < 3; i++) {
		assert_true(is_pattern(view[i]->data, 4 * MIB, i));
		assert_ok(ta_release(view[i]));
	}
	assert_ok(ta_cuda_prepare(gpu.reader, &pinned));
	assert_int_equal(gpu.state->registered, 3);
	gpu_close(&gpu);
}

static void grown_slot_is_registered_anew_as_a_whole(void **state)
{
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, 8 * MIB, true);
	assert_ok(ta_release(gpu_view(&gpu, MIB, 1)));
	assert_int_equal(gpu.state->region[0].size, 2 * MIB);
	assert_ok(ta_release(gpu_view(&gpu, 5 * MIB, 2)));
	assert_int_equal(gpu.state->regions, 1);
	assert_int_equal(gpu.state->region[0].size, 8 * MIB);
	assert_int_equal(gpu.state->unregistered, 1);
	assert_ok(ta_release(gpu_view(&gpu, MIB, 3)));
	assert_int_equal(gpu.state->registered, 2);
	gpu_close(&gpu);
}

static void budget_keeps_the_slots_used_last(void **state)
{
	struct ta_view *held, *second, *third;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 3, MIB, true);
	assert_ok(ta_cuda_pin_budget(gpu.reader, 4 * MIB));
	held = gpu_view(&gpu, SOME_BYTES, 1);
	second = gpu_view(&gpu, SOME_BYTES, 2);
	/* No slot is idle, so the third stays as it is. */
	third = gpu_view(&gpu, SOME_BYTES, 3);
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 2);
	assert_int_equal(gpu_stats(&gpu).over_budget, 1);
	assert_int_equal(gpu_pin_state(&gpu, third->ticket.slot), TA_UNPINNED);
	assert_ok(ta_release(second));
	/* A copy would like it pinned, and now there is an idle one. */
	gpu.standin->run(gpu.stream);
	assert_ok(gpu_copy(&gpu, third, gpu.stream));
	assert_int_equal(gpu_pin_state(&gpu, third->ticket.slot), TA_PINNED);
	assert_int_equal(gpu_pin_state(&gpu, held->ticket.slot), TA_PINNED);
	assert_int_equal(gpu_stats(&gpu).pinned_bytes, 4 * MIB);
	assert_ok(ta_release(third));
	/* Less: what is in use stays until it is not. */
	assert_ok(ta_cuda_pin_budget(gpu.reader, 0));
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 1);
	assert_ok(ta_release(held));
	assert_int_equal(gpu.state->regions, 0);
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 4)));
	assert_int_equal(gpu.state->regions, 0);
	gpu_close(&gpu);
}

/* The last of several views, whose release waits for a copy. */
static void budget_is_kept_when_the_copy_is_done(void **state)
{
	struct ta_view *view, *other;
	struct ta_stats st;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(ta_view(gpu.reader, &view->ticket, &other));
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_cuda_pin_budget(gpu.reader, MIB));
	assert_ok(ta_release(view));
	assert_ok(ta_release(other));
	assert_int_equal(gpu.state->regions, 1);
	gpu.standin->complete(gpu.stream);
	await_stats(gpu.writer, st, st.free == 1);
	assert_int_equal(gpu_stats(&gpu).pinned_bytes, 0);
	assert_int_equal(gpu.state->regions, 0);
	gpu_close(&gpu);
}

static void prepare_pins_what_the_budget_has_room_for(void **state)
{
	uint32_t pinned;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 4, MIB, true);
	assert_ok(ta_populate(gpu.writer, 4, MIB));
	assert_ok(ta_cuda_pin_budget(gpu.reader, 5 * MIB));
	assert_ok(ta_cuda_prepare(gpu.reader, &pinned));
	assert_int_equal(pinned, 2);
	assert_int_equal(gpu.state->regions, 2);
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 2);
	/* Those that are pinned stay so. */
	assert_int_equal(gpu.state->unregistered, 0);
	assert_ok(ta_cuda_prepare(gpu.reader, &pinned));
	assert_int_equal(pinned, 2);
	assert_int_equal(gpu.state->registered, 2);
	gpu_close(&gpu);
}

static void slot_registered_by_somebody_else_does_not_fail(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.state->fail = "cuMemHostRegister_v2";
	gpu.state->fail_with = 712;
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PINNED_ELSEWHERE);
	assert_int_equal(gpu_stats(&gpu).pin_failures, 0);
	assert_int_equal(gpu_stats(&gpu).errors, 0);
	gpu.standin->run(gpu.stream);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	/* Nor is it ours to unregister. */
	gpu_close_reader(&gpu);
	assert_int_equal(gpu.state->unregistered, 0);
	gpu_close(&gpu);
}

static void process_may_attach_twice(void **state)
{
	struct ta_reader *second;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	assert_ok(ta_attach(ta_handle(gpu.writer), &second));
	assert_ok(put_pattern(gpu.writer, SOME_BYTES, 1, &ticket));
	assert_ok(ta_view(gpu.reader, &ticket, &view));
	assert_ok(ta_release(view));
	assert_ok(ta_view(second, &ticket, &view));
	assert_ok(ta_release(view));
	assert_int_equal(gpu.state->regions, 2);
	ta_reader_close(second);
	assert_int_equal(gpu.state->regions, 1);
	gpu_close(&gpu);
}

static void failed_registration_is_told_and_tried_once(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, 8 * MIB, true);
	gpu.state->fail = "cuMemHostRegister_v2";
	gpu.state->fail_with = 1;
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_true(is_pattern(view->data, SOME_BYTES, 1));
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PIN_FAILED);
	assert_int_equal(gpu_stats(&gpu).pin_failures, 1);
	assert_int_equal(gpu_stats(&gpu).error, 1);
	assert_string_equal(gpu_stats(&gpu).error_text,
			    "cuMemHostRegister: CUDA_ERROR_INVALID_VALUE (1)");
	assert_ok(ta_release(view));
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 2)));
	assert_int_equal(gpu.state->registered, 0);
	/* A larger tensor is another chance. */
	assert_ok(ta_release(gpu_view(&gpu, 4 * MIB, 3)));
	assert_int_equal(gpu.state->registered, 1);
	gpu_close(&gpu);
}

static void device_without_read_only_registration_copies_unpinned(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.state->read_only_supported = false;
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_int_equal(gpu.state->registered, 0);
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PIN_FAILED);
	assert_string_equal(gpu_stats(&gpu).error_text,
			    "this device cannot register read-only memory");
	gpu.standin->run(gpu.stream);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

/*
 * The stand-in touches what it unregisters, so the order shows.  The device
 * engine does not trim what is pinned, but has the readers asked to unpin it.
 */
static void trimmed_slot_is_unregistered_before_it_is_unmapped(void **state)
{
	struct ta_view *view[3];
	struct gpu gpu;
	uint64_t freed;
	int i, err;

	(void)state;
	gpu_open(&gpu, 3, MIB, true);
	for (i = 0; i < 3; i++)
		view[i] = gpu_view(&gpu, SOME_BYTES, i);
	assert_int_equal(gpu.state->regions, 3);
	for (i = 1; i < 3; i++)
		assert_ok(ta_release(view[i]));
	err = ta_trim(gpu.writer, 0, &freed);
	assert_true(!err || err == -EBUSY);
	assert_int_equal(freed, err ? 0 : 4 * MIB);

	assert_ok(put_pattern(gpu.writer, SOME_BYTES, 3, NULL));
	assert_ok(ta_next(gpu.reader, HANG_MS, &view[1]));
	assert_true(is_pattern(view[1]->data, SOME_BYTES, 3));
	assert_true(is_pattern(view[0]->data, SOME_BYTES, 0));
	/* What is in use stays registered. */
	assert_int_equal(gpu.state->regions, 2);
	if (err) {
		ta_trim(gpu.writer, 0, &freed);
		assert_int_equal(freed, 2 * MIB);
	}
	assert_ok(ta_release(view[0]));
	assert_ok(ta_release(view[1]));
	gpu_close(&gpu);
}

/* Which has nothing to come for but that. */
static void idle_reader_unpins_what_a_trim_wants(void **state)
{
	struct pollfd pfd = { 0 };
	struct ta_view *view;
	struct gpu gpu;
	int err;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	assert_int_equal(gpu.state->regions, 1);
	err = ta_trim(gpu.writer, 0, NULL);
	assert_true(!err || err == -EBUSY);
	pfd.fd = ta_reader_poll_fd(gpu.reader, &pfd.events);
	assert_int_equal(poll(&pfd, 1, HANG_MS), 1);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	assert_int_equal(gpu.state->regions, 0);
	assert_ok(ta_trim(gpu.writer, 0, NULL));
	gpu_close(&gpu);
}

static void thread_without_a_context_uses_one_that_exists(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.standin->set_current(-1);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PINNED);
	gpu.standin->run(gpu.stream);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		/* First, before the stand-in is loaded. */
		cmocka_unit_test(
			without_cuda_nothing_is_pinned_and_nothing_fails),
		cmocka_unit_test(no_context_is_made_where_there_is_none),
		cmocka_unit_test(first_view_pins_the_slot_read_only_and_once),
		cmocka_unit_test(writable_mappings_are_pinned_writable),
		cmocka_unit_test(prepare_pins_what_populate_has_built),
		cmocka_unit_test(grown_slot_is_registered_anew_as_a_whole),
		cmocka_unit_test(budget_keeps_the_slots_used_last),
		cmocka_unit_test(budget_is_kept_when_the_copy_is_done),
		cmocka_unit_test(prepare_pins_what_the_budget_has_room_for),
		cmocka_unit_test(
			slot_registered_by_somebody_else_does_not_fail),
		cmocka_unit_test(process_may_attach_twice),
		cmocka_unit_test(failed_registration_is_told_and_tried_once),
		cmocka_unit_test(
			device_without_read_only_registration_copies_unpinned),
		cmocka_unit_test(
			trimmed_slot_is_unregistered_before_it_is_unmapped),
		cmocka_unit_test(idle_reader_unpins_what_a_trim_wants),
		cmocka_unit_test(thread_without_a_context_uses_one_that_exists),
	};

	return run_cases(argc, argv, tests);
}
