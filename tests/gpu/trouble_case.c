// SPDX-License-Identifier: MIT
/*
 * What CUDA may do to the library, and the library not to the program: a slot is
 * kept while it is not known that no copy is running, and not longer.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define PENDING 35

static void expect_slot_taken(struct gpu *gpu)
{
	assert_err(put_pattern(gpu->writer, 1, 99, NULL), -EAGAIN);
}

/* A view on the only slot, released while a copy of it is under way. */
static void release_during_copy(struct gpu *gpu)
{
	struct ta_view *view = gpu_view(gpu, SOME_BYTES, 1);

	assert_ok(gpu_copy(gpu, view, gpu->stream));
	assert_ok(ta_release(view));
	expect_slot_taken(gpu);
}

static void expect_slot_pending(struct gpu *gpu)
{
	assert_int_equal(gpu_stats(gpu).pending, 1);
}

/* Long enough for the helper to look a few times. */
static void let_helper_look(void)
{
	usleep(5000);
}

/* All that the library asks of CUDA, what fails and what is not ready too. */
static void programs_own_error_stays_for_it_to_find(void **state)
{
	struct ta_view *view;
	struct ta_stats st;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	gpu.state->runtime_error = PENDING;
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(ta_cuda_prepare(gpu.reader, NULL));
	gpu.state->fail = "cuMemcpyHtoDAsync_v2";
	gpu.state->fail_with = 1;
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
	gpu.standin->capture(gpu.stream, true);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EINPROGRESS);
	gpu.standin->capture(gpu.stream, false);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_release(view));
	assert_int_equal(gpu_stats(&gpu).pending, 1);
	gpu.standin->complete(gpu.stream);
	await_stats(gpu.writer, st, st.free == 2);
	gpu_close_reader(&gpu);
	assert_int_equal(gpu.state->runtime_error, PENDING);
	gpu_close(&gpu);
}

/* No memory, a device taken away, a host function's call, captures, unknown. */
static void answers_that_say_nothing_of_the_copy_keep_the_slot(void **state)
{
	static const int answers[] = { 1,   2,	 3,   46,  100, 101, 304, 712,
				       713, 801, 800, 802, 805, 806, 807, 900,
				       901, 904, 906, 908, 909, 910, 999 };
	struct ta_stats st;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		gpu_open(&gpu, 1, MIB, true);
		gpu.state->fail_with = answers[i];
		gpu.state->fail_always = true;
		gpu.state->fail = "cuEventQuery";
		release_during_copy(&gpu);
		let_helper_look();
		expect_slot_taken(&gpu);
		/* Told, but not at every look. */
		assert_int_equal(gpu_stats(&gpu).error, answers[i]);
		assert_int_equal(gpu_stats(&gpu).errors, 1);
		gpu.state->fail = NULL;
		gpu.standin->complete(gpu.stream);
		await_stats(gpu.writer, st, st.free == 1);
		gpu_check(&gpu, SOME_BYTES, 1);
		gpu_close(&gpu);
	}
}

static void answers_that_end_everything_free_the_slot(void **state)
{
	static const int answers[] = { 4,   201, 214, 220, 226, 400, 700,
				       702, 709, 710, 714, 715, 716, 717,
				       718, 719, 721, 810, 911 };
	struct ta_stats st;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		gpu_open(&gpu, 1, MIB, true);
		release_during_copy(&gpu);
		gpu.state->fail_with = answers[i];
		gpu.state->fail_always = true;
		gpu.state->fail = "cuEventQuery";
		await_stats(gpu.writer, st, st.free == 1);
		assert_int_equal(gpu_stats(&gpu).error, answers[i]);
		gpu.state->fail = NULL;
		gpu_close(&gpu);
	}
}

/* The helper has no context of its own, so it enters the event's. */
static void context_that_cannot_be_entered_now_keeps_the_slot(void **state)
{
	struct ta_stats st;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.state->fail_with = 2;
	gpu.state->fail_always = true;
	gpu.state->fail = "cuCtxPushCurrent_v2";
	release_during_copy(&gpu);
	await_stats(gpu.writer, st, gpu_stats(&gpu).error == 2);
	expect_slot_taken(&gpu);
	gpu.state->fail = NULL;
	gpu.standin->complete(gpu.stream);
	await_stats(gpu.writer, st, st.free == 1);
	assert_int_equal(gpu_stats(&gpu).error, 2);
	gpu_close(&gpu);
}

static void context_that_is_gone_frees_the_slot(void **state)
{
	static const int answers[] = { 0, 201, 709 };
	struct ta_stats st;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < 2 * ARRAY_SIZE(answers); i++) {
		gpu_open(&gpu, 1, MIB, true);
		gpu.state->ctx_ids = i / ARRAY_SIZE(answers);
		release_during_copy(&gpu);
		gpu.state->dead_push = answers[i % ARRAY_SIZE(answers)];
		gpu.standin->device_reset(0);
		await_stats(gpu.writer, st, st.free == 1);
		assert_int_equal(gpu_stats(&gpu).error,
				 gpu.state->dead_push && !gpu.state->ctx_ids ?
					 gpu.state->dead_push :
					 709);
		gpu_close(&gpu);
	}
}

static void device_reset_brings_no_context_back(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 1)));
	gpu.standin->device_reset(0);
	/* Pinning, copying, and undoing what went with the context. */
	assert_ok(put_pattern(gpu.writer, 2 * SOME_BYTES, 2, NULL));
	assert_ok(put_pattern(gpu.writer, SOME_BYTES, 2, NULL));
	assert_ok(ta_next(gpu.reader, HANG_MS, &view));
	assert_ok(ta_release(view));
	assert_ok(ta_next(gpu.reader, HANG_MS, &view));
	assert_err(gpu_copy(&gpu, view, NULL), -ENODEV);
	assert_err(ta_cuda_prepare(gpu.reader, NULL), -ENODEV);
	assert_ok(ta_release(view));
	assert_ok(ta_cuda_pin_budget(gpu.reader, 0));
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 0);
	assert_int_equal(gpu_stats(&gpu).errors, 0);
	gpu_close(&gpu);
}

/* Nothing that is left from before gets in the way, the first time already. */
static void go_on_after_a_device_reset(bool ctx_ids)
{
	struct standin_stream *stream;
	struct ta_view *view;
	struct gpu gpu;
	int i;

	gpu_open(&gpu, 2, MIB, true);
	gpu.state->ctx_ids = ctx_ids;
	gpu.standin->run(gpu.stream);
	for (i = 0; i < 2; i++) {
		view = gpu_view(&gpu, SOME_BYTES, i);
		assert_ok(gpu_copy(&gpu, view, gpu.stream));
		assert_ok(ta_release(view));
	}
	assert_true(gpu_stats(&gpu).events > 0);
	gpu.standin->device_reset(0);
	gpu.standin->set_current(0);
	stream = gpu.standin->stream(0);
	view = gpu_view(&gpu, SOME_BYTES, 3);
	assert_ok(gpu_copy(&gpu, view, stream));
	assert_ok(ta_release(view));
	expect_slot_pending(&gpu);
	gpu.standin->complete(stream);
	gpu_check(&gpu, SOME_BYTES, 3);
	assert_int_equal(gpu_stats(&gpu).pending, 0);
	assert_int_equal(gpu_stats(&gpu).errors, 0);
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 4)));
	assert_int_equal(gpu_stats(&gpu).pinned_slots, gpu.state->regions);
	assert_true(gpu.state->regions > 0);
	/* Without ids the first copy could not know that its slot is not pinned. */
	assert_true(gpu.state->unsafe <= !ctx_ids);
	gpu.state->unsafe = 0;
	gpu_close(&gpu);
	gpu.standin->discard(stream);
}

static void work_goes_on_after_a_device_reset(void **state)
{
	(void)state;
	go_on_after_a_device_reset(true);
	go_on_after_a_device_reset(false);
}

/* Its device has no primary context, and needs none. */
static void context_of_the_programs_own_making_is_used(void **state)
{
	struct standin_stream *stream;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, false);
	gpu.state->initialised = true;
	gpu.standin->set_current(STANDIN_OWN_CONTEXT);
	stream = gpu.standin->stream(STANDIN_OWN_CONTEXT);
	gpu.standin->run(stream);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_int_equal(gpu_pin_state(&gpu, 0), TA_PINNED);
	assert_ok(gpu_copy(&gpu, view, stream));
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
	gpu.standin->discard(stream);
}

static void registration_that_is_gone_already_is_no_error(void **state)
{
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 1)));
	gpu.standin->forget_regions();
	assert_ok(ta_cuda_pin_budget(gpu.reader, 0));
	assert_int_equal(gpu_stats(&gpu).errors, 0);
	assert_int_equal(gpu_stats(&gpu).pinned_slots, 0);
	gpu_close(&gpu);
}

/* What no event tells of must be over when the call fails. */
static void copy_that_fails_by_half_is_waited_for(void **state)
{
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	assert_ok(ta_cuda_pin_budget(gpu.reader, 0));
	view = gpu_view(&gpu, SOME_BYTES, 1);
	gpu.state->fail = "cuMemcpyHtoDAsync_v2";
	gpu.state->fail_with = 2;
	gpu.state->half_copies = true;
	thread = gpu_complete_later(&gpu);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
	assert_int_equal(gpu.state->synced, 1);
	assert_ok(ta_release(view));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	pthread_join(thread, NULL);
	gpu_close(&gpu);
}

/* Neither marked nor waited for: then only the context's rest shows its end. */
static void work_that_cannot_even_be_waited_for_keeps_the_slot(void **state)
{
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;
	int marked;

	(void)state;
	for (marked = 0; marked < 2; marked++) {
		gpu_open(&gpu, 1, MIB, true);
		view = gpu_view(&gpu, SOME_BYTES, 1);
		if (marked) {
			assert_ok(gpu_copy(&gpu, view, gpu.stream));
			assert_ok(ta_release_after(view, gpu.stream));
		}
		gpu.state->half_copies = true;
		gpu.state->fail = "cuMemcpyHtoDAsync_v2";
		gpu.state->fail_with = 2;
		gpu.state->sync_fails = 999;
		assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
		assert_ok(ta_release(view));
		let_helper_look();
		expect_slot_taken(&gpu);
		thread = gpu_complete_later(&gpu);
		gpu_close_reader(&gpu);
		assert_true(is_pattern(gpu.device_memory, SOME_BYTES / 2, 1));
		assert_int_equal(stats_of(gpu.writer).free, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

static struct ta_loan *loan_with_copy(struct gpu *gpu)
{
	struct ta_loan *loan;

	fill_pattern(gpu->device_memory, SOME_BYTES, 1);
	assert_ok(ta_loan(gpu->writer, SOME_BYTES, &loan));
	assert_ok(ta_copy_from_device(loan, 0, gpu->device_memory, SOME_BYTES,
				      gpu->stream));
	return loan;
}

static void loan_stands_while_cuda_does_not_tell(void **state)
{
	struct ta_loan *loan;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu);
	gpu.state->refuse = 999;
	assert_err(ta_commit(loan, SOME_BYTES, NULL, NULL), -EREMOTEIO);
	assert_err(ta_abort(loan), -EREMOTEIO);
	assert_int_equal(stats_of(gpu.writer).writing, 1);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	gpu.state->refuse = 0;
	gpu.standin->complete(gpu.stream);
	/* Nothing was wrong with the bytes. */
	assert_ok(ta_commit(loan, SOME_BYTES, NULL, NULL));
	assert_ok(ta_next(gpu.reader, HANG_MS, &view));
	assert_true(is_pattern(view->data, SOME_BYTES, 1));
	assert_ok(ta_release(view));

	loan = loan_with_copy(&gpu);
	gpu.state->refuse = 2;
	assert_err(ta_abort(loan), -EREMOTEIO);
	gpu.state->refuse = 0;
	gpu.standin->complete(gpu.stream);
	assert_ok(ta_abort(loan));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_close(&gpu);
}

/* An event that will not be waited for: the context is. */
static void loan_is_waited_for_another_way(void **state)
{
	struct ta_loan *loan;
	pthread_t thread;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu);
	gpu.state->fail = "cuEventSynchronize";
	gpu.state->fail_with = 999;
	thread = gpu_complete_later(&gpu);
	assert_ok(ta_abort(loan));
	assert_true(is_pattern(gpu.device_memory, SOME_BYTES, 1));
	assert_int_equal(gpu.state->synced, 1);
	pthread_join(thread, NULL);
	gpu_close(&gpu);
}

/* What may still be written to stays held, and so is nobody else's. */
static void writer_that_closes_leaves_such_pages_held(void **state)
{
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	loan_with_copy(&gpu);
	gpu.state->refuse = 999;
	ta_writer_close(gpu.writer);
	gpu.writer = NULL;
	gpu.state->refuse = 0;
	assert_int_equal(gpu.state->regions, 1);
	gpu.standin->forget_regions();
	gpu.state->events = 0;
	gpu_close(&gpu);
}

/* Reachable, so that no leak is reported. */
static struct ta_reader *volatile abandoned;

static void reader_that_closes_leaves_such_slots_taken(void **state)
{
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	release_during_copy(&gpu);
	gpu.state->refuse = 999;
	abandoned = gpu.reader;
	gpu_close_reader(&gpu);
	expect_slot_taken(&gpu);
	gpu.state->refuse = 0;
	gpu.standin->forget_regions();
	gpu.state->events = 0;
	gpu_close(&gpu);
}

/* As in drivers before 12, where marks are looked at with each copy. */
static void failed_copy_is_remembered_without_ids_of_streams(void **state)
{
	struct standin_stream *other;
	struct ta_loan *loan;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.state->stream_ids = false;
	other = gpu.standin->stream(0);
	loan = loan_with_copy(&gpu);
	gpu.state->fail = "cuEventQuery";
	gpu.state->fail_with = 719;
	gpu.standin->run(other);
	assert_ok(ta_copy_from_device(loan, 0, gpu.device_memory, 1, other));
	assert_err(ta_commit(loan, SOME_BYTES, NULL, NULL), -EREMOTEIO);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	assert_ok(ta_abort(loan));
	gpu_close(&gpu);
	gpu.standin->discard(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_own_error_stays_for_it_to_find),
		cmocka_unit_test(
			answers_that_say_nothing_of_the_copy_keep_the_slot),
		cmocka_unit_test(answers_that_end_everything_free_the_slot),
		cmocka_unit_test(
			context_that_cannot_be_entered_now_keeps_the_slot),
		cmocka_unit_test(context_that_is_gone_frees_the_slot),
		cmocka_unit_test(device_reset_brings_no_context_back),
		cmocka_unit_test(work_goes_on_after_a_device_reset),
		cmocka_unit_test(context_of_the_programs_own_making_is_used),
		cmocka_unit_test(registration_that_is_gone_already_is_no_error),
		cmocka_unit_test(copy_that_fails_by_half_is_waited_for),
		cmocka_unit_test(
			work_that_cannot_even_be_waited_for_keeps_the_slot),
		cmocka_unit_test(loan_stands_while_cuda_does_not_tell),
		cmocka_unit_test(loan_is_waited_for_another_way),
		cmocka_unit_test(writer_that_closes_leaves_such_pages_held),
		cmocka_unit_test(reader_that_closes_leaves_such_slots_taken),
		cmocka_unit_test(
			failed_copy_is_remembered_without_ids_of_streams),
	};

	return run_cases(argc, argv, tests);
}
