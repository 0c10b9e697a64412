// SPDX-License-Identifier: MIT
/*
 * Work of the caller's own in a stream that cannot be marked, whatever the reason:
 * it is waited for, or the slot is kept.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "fixture.h"

static void expect_slot_taken(struct gpu *gpu)
{
	assert_err(put_pattern(gpu->writer, 1, 99, NULL), -EAGAIN);
}

/* Long enough for the helper to look a few times. */
static void let_helper_look(void)
{
	usleep(5000);
}

/* What goes wrong before anything has been sent, and how. */
static const struct {
	const char *call;
	int answer;
} beginnings[] = {
	{ "cuEventCreate", 2 },
	{ "cuStreamIsCapturing", 800 },
};

static void fail_at(struct gpu *gpu, size_t i)
{
	gpu->state->fail_with = beginnings[i].answer;
	gpu->state->fail = beginnings[i].call;
}

/* The caller's own copy, of which only the stream knows. */
static void work_that_cannot_be_marked_is_waited_for(void **state)
{
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < 2 * ARRAY_SIZE(beginnings); i++) {
		gpu_open(&gpu, 1, MIB, true);
		view = gpu_view(&gpu, SOME_BYTES, 1);
		gpu_own_copy(&gpu, view);
		fail_at(&gpu, i / 2);
		thread = gpu_complete_later(&gpu);
		assert_err(i % 2 ? gpu_copy(&gpu, view, gpu.stream) :
				   ta_release_after(view, gpu.stream),
			   -EREMOTEIO);
		assert_int_equal(gpu.state->synced, 1);
		assert_int_equal(gpu_stats(&gpu).error,
				 beginnings[i / 2].answer);
		assert_ok(ta_release(view));
		assert_int_equal(stats_of(gpu.writer).free, 1);
		gpu_check(&gpu, SOME_BYTES, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

static void work_that_cannot_be_waited_for_either_keeps_the_slot(void **state)
{
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(beginnings); i++) {
		gpu_open(&gpu, 1, MIB, true);
		view = gpu_view(&gpu, SOME_BYTES, 1);
		gpu_own_copy(&gpu, view);
		fail_at(&gpu, i);
		gpu.state->sync_fails = 999;
		assert_err(ta_release_after(view, gpu.stream), -EREMOTEIO);
		assert_ok(ta_release(view));
		let_helper_look();
		expect_slot_taken(&gpu);
		thread = gpu_complete_later(&gpu);
		gpu_close_reader(&gpu);
		gpu_check(&gpu, SOME_BYTES, 1);
		assert_int_equal(stats_of(gpu.writer).free, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

/* Its handle is gone, what it was sent is not. */
static void work_of_a_stream_that_is_gone_is_waited_for(void **state)
{
	/* The documentation says the one, the driver the other. */
	static const int answers[] = { 400, 201 };
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		gpu_open(&gpu, 1, MIB, true);
		view = gpu_view(&gpu, SOME_BYTES, 1);
		gpu_own_copy(&gpu, view);
		gpu.state->fail_with = answers[i];
		gpu.state->fail = "cuStreamIsCapturing";
		gpu.state->sync_fails = answers[i];
		thread = gpu_complete_later(&gpu);
		assert_err(ta_release_after(view, gpu.stream), -EREMOTEIO);
		assert_ok(ta_release(view));
		assert_int_equal(stats_of(gpu.writer).free, 1);
		gpu_check(&gpu, SOME_BYTES, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

/* A view whose stream is in a context that this thread cannot enter now. */
static void release_where_none_can_enter(struct gpu *gpu, const char *call)
{
	struct ta_view *view = gpu_view(gpu, SOME_BYTES, 1);

	gpu_own_copy(gpu, view);
	gpu->standin->set_current(1);
	gpu->state->fail_with = 2;
	gpu->state->fail = call;
	assert_err(ta_release_after(view, gpu->stream), -EREMOTEIO);
	assert_ok(ta_release(view));
	let_helper_look();
	expect_slot_taken(gpu);
}

static void context_that_cannot_be_entered_keeps_the_slot(void **state)
{
	static const char *const calls[] = { "cuCtxPushCurrent_v2",
					     "cuCtxGetId" };
	struct ta_stats st;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		gpu_open(&gpu, 1, MIB, true);
		release_where_none_can_enter(&gpu, calls[i]);
		thread = gpu_complete_later(&gpu);
		gpu_close_reader(&gpu);
		gpu_check(&gpu, SOME_BYTES, 1);
		assert_int_equal(stats_of(gpu.writer).free, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);

		gpu_open(&gpu, 1, MIB, true);
		release_where_none_can_enter(&gpu, calls[i]);
		gpu.standin->device_reset(0);
		await_stats(gpu.writer, st, st.free == 1);
		gpu_close(&gpu);
	}
}

/* Reachable, so that no leak is reported. */
static struct ta_reader *volatile abandoned;

static void close_and_expect_taken(struct gpu *gpu)
{
	expect_slot_taken(gpu);
	abandoned = gpu->reader;
	gpu_close_reader(gpu);
	expect_slot_taken(gpu);
	gpu->standin->forget_regions();
	gpu_close(gpu);
}

/* Without one of its own the thread does not even learn which it is. */
static void context_that_is_not_known_leaves_the_slot_taken(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	gpu_own_copy(&gpu, view);
	gpu.standin->set_current(-1);
	gpu.state->fail_with = 2;
	gpu.state->fail = "cuCtxPushCurrent_v2";
	assert_err(ta_release_after(view, gpu.stream), -EREMOTEIO);
	assert_ok(ta_release(view));
	close_and_expect_taken(&gpu);
}

/* Sanitizers have a calloc() of their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_calloc(size_t nr, size_t size);

static __thread bool no_memory;

/* In the place of the C library's, for the library under test as well. */
void *calloc(size_t nr, size_t size)
{
	return no_memory ? NULL : __libc_calloc(nr, size);
}

static void release_without_memory(struct gpu *gpu)
{
	struct ta_view *view = gpu_view(gpu, SOME_BYTES, 1);
	int err;

	gpu_own_copy(gpu, view);
	no_memory = true;
	err = ta_release_after(view, gpu->stream);
	no_memory = false;
	assert_err(err, -ENOMEM);
	assert_ok(ta_release(view));
}

static void without_memory_for_a_mark_the_stream_is_waited_for(void **state)
{
	pthread_t thread;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	thread = gpu_complete_later(&gpu);
	release_without_memory(&gpu);
	assert_int_equal(gpu.state->synced, 1);
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_check(&gpu, SOME_BYTES, 1);
	pthread_join(thread, NULL);
	gpu_close(&gpu);
}

/* Nor can it be noted that the stream could not be. */
static void without_memory_for_a_note_the_slot_stays_taken(void **state)
{
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.state->sync_fails = 999;
	release_without_memory(&gpu);
	let_helper_look();
	close_and_expect_taken(&gpu);
}
#endif

/* What the caller's own work writes to, which only the stream knows of. */
static void loan_that_cannot_be_marked_is_waited_for(void **state)
{
	struct ta_loan *loan;
	struct ta_view *view;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(beginnings); i++) {
		gpu_open(&gpu, 1, MIB, true);
		fill_pattern(gpu.device_memory, SOME_BYTES, 1);
		assert_ok(ta_loan(gpu.writer, SOME_BYTES, &loan));
		gpu_own_copy_back(&gpu, loan);
		fail_at(&gpu, i);
		thread = gpu_complete_later(&gpu);
		assert_err(ta_commit_after(loan, gpu.stream, SOME_BYTES, NULL,
					   NULL),
			   -EREMOTEIO);
		assert_int_equal(gpu.state->synced, 1);
		assert_int_equal(stats_of(gpu.writer).writing, 1);
		assert_ok(ta_commit(loan, SOME_BYTES, NULL, NULL));
		assert_ok(ta_next(gpu.reader, HANG_MS, &view));
		assert_true(is_pattern(view->data, SOME_BYTES, 1));
		assert_ok(ta_release(view));
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

/* Nor waited for: then it is before the slot is given up. */
static void loan_that_cannot_be_waited_for_either_stands(void **state)
{
	struct ta_loan *loan;
	pthread_t thread;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(beginnings); i++) {
		gpu_open(&gpu, 1, MIB, true);
		assert_ok(ta_loan(gpu.writer, SOME_BYTES, &loan));
		gpu_own_copy_back(&gpu, loan);
		fail_at(&gpu, i);
		gpu.state->sync_fails = 999;
		assert_err(ta_commit_after(loan, gpu.stream, SOME_BYTES, NULL,
					   NULL),
			   -EREMOTEIO);
		gpu.state->refuse = 999;
		assert_err(ta_abort(loan), -EREMOTEIO);
		gpu.state->refuse = 0;
		thread = gpu_complete_later(&gpu);
		assert_ok(ta_abort(loan));
		assert_true(gpu.state->synced > 0);
		assert_int_equal(stats_of(gpu.writer).free, 1);
		pthread_join(thread, NULL);
		gpu_close(&gpu);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_that_cannot_be_marked_is_waited_for),
		cmocka_unit_test(
			work_that_cannot_be_waited_for_either_keeps_the_slot),
		cmocka_unit_test(work_of_a_stream_that_is_gone_is_waited_for),
		cmocka_unit_test(context_that_cannot_be_entered_keeps_the_slot),
		cmocka_unit_test(
			context_that_is_not_known_leaves_the_slot_taken),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(
			without_memory_for_a_mark_the_stream_is_waited_for),
		cmocka_unit_test(
			without_memory_for_a_note_the_slot_stays_taken),
#endif
		cmocka_unit_test(loan_that_cannot_be_marked_is_waited_for),
		cmocka_unit_test(loan_that_cannot_be_waited_for_either_stands),
	};

	return run_cases(argc, argv, tests);
}
