// SPDX-License-Identifier: MIT
/* A slot is free when the GPU is done with it: not earlier, and not later. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

static void expect_slot_taken(struct gpu *gpu)
{
	assert_err(put_pattern(gpu->writer, 1, 99, NULL), -EAGAIN);
}

static void slot_is_not_used_again_while_a_copy_runs(void **state)
{
	struct ta_stats st;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	{
		struct ta_view *view = gpu_view(&gpu, SOME_BYTES, 1);

		assert_ok(gpu_copy(&gpu, view, gpu.stream));
		assert_ok(ta_release(view));
	}
	expect_slot_taken(&gpu);
	assert_int_equal(gpu_stats(&gpu).pending, 1);
	expect_slot_taken(&gpu);
	gpu.standin->complete(gpu.stream);
	/* Nobody calls the reader now. */
	await_stats(gpu.writer, st, st.free == 1);
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(gpu_view(&gpu, SOME_BYTES, 2)));
	assert_int_equal(gpu_stats(&gpu).deferred, 1);
	assert_int_equal(gpu_stats(&gpu).copies, 1);
	assert_int_equal(gpu_stats(&gpu).copied_bytes, SOME_BYTES);
	gpu_close(&gpu);
}

static void any_later_call_frees_what_is_done(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_release(view));
	gpu.standin->complete(gpu.stream);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_close(&gpu);
}

static void release_after_the_copy_is_immediate(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu.standin->complete(gpu.stream);
	assert_ok(ta_release(view));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	assert_int_equal(gpu_stats(&gpu).deferred, 0);
	gpu_close(&gpu);
}

static void slot_waits_for_every_stream(void **state)
{
	struct standin_stream *side;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	side = gpu.standin->stream(0);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	/* A copy of the caller's own, and another after it. */
	assert_ok(gpu_copy(&gpu, view, side));
	assert_ok(ta_release_after(view, side));
	assert_ok(ta_release(view));
	gpu.standin->complete(side);
	assert_int_equal(gpu_stats(&gpu).pending, 1);
	expect_slot_taken(&gpu);
	gpu.standin->complete(gpu.stream);
	assert_int_equal(gpu_stats(&gpu).pending, 0);
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_close(&gpu);
	gpu.standin->discard(side);
}

static void last_of_several_views_frees_the_slot(void **state)
{
	struct ta_view *first, *second;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	first = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(ta_view(gpu.reader, &first->ticket, &second));
	assert_ok(gpu_copy(&gpu, first, gpu.stream));
	assert_ok(ta_release(first));
	gpu.standin->complete(gpu.stream);
	assert_int_equal(gpu_stats(&gpu).pending, 0);
	expect_slot_taken(&gpu);
	/* What departed does not keep a ticket from being looked at. */
	assert_ok(ta_view(gpu.reader, &second->ticket, &first));
	assert_ok(ta_release(first));
	assert_ok(ta_release(second));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_close(&gpu);
}

/* With ids of streams one event a stream; without, those not reached yet. */
static void many_copies_of_one_view_take_few_events(void **state)
{
	struct ta_view *view;
	struct gpu gpu;
	int ids, i;

	(void)state;
	for (ids = 0; ids < 2; ids++) {
		gpu_open(&gpu, 1, MIB, true);
		gpu.state->stream_ids = ids;
		view = gpu_view(&gpu, SOME_BYTES, 1);
		for (i = 0; i < 100; i++) {
			assert_ok(ta_copy_to_device(view, gpu.device_memory + i,
						    i, 1, gpu.stream));
			if (!ids && i < 99)
				gpu.standin->complete(gpu.stream);
		}
		assert_true(gpu_stats(&gpu).events <= 2);
		assert_ok(ta_release(view));
		expect_slot_taken(&gpu);
		gpu.standin->complete(gpu.stream);
		gpu_check(&gpu, 100, 1);
		gpu_close(&gpu);
	}
}

static void thousands_of_tensors_need_no_more_than_the_first(void **state)
{
	struct ta_view *view;
	struct gpu gpu;
	int i;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	for (i = 0; i < 3000; i++) {
		view = gpu_view(&gpu, 1000, i);
		assert_ok(gpu_copy(&gpu, view, gpu.stream));
		assert_ok(ta_release(view));
		gpu.standin->complete(gpu.stream);
		gpu_check(&gpu, 1000, i);
	}
	assert_true(gpu.state->registered <= 2);
	assert_true(gpu_stats(&gpu).events <= 2);
	assert_int_equal(gpu_stats(&gpu).copies, 3000);
	gpu_close(&gpu);
}

static void capturing_stream_is_refused(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	gpu.standin->capture(gpu.stream, true);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EINPROGRESS);
	assert_err(ta_release_after(view, gpu.stream), -EINPROGRESS);
	assert_int_equal(gpu_stats(&gpu).copies, 0);
	/* The legacy stream, while another is being captured. */
	gpu.state->fail = "cuStreamIsCapturing";
	gpu.state->fail_with = 906;
	assert_err(gpu_copy(&gpu, view, NULL), -EINPROGRESS);
	gpu.standin->capture(gpu.stream, false);
	gpu.standin->run(gpu.stream);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

static void stream_of_another_device_is_served_there(void **state)
{
	struct standin_stream *other;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.standin->set_current(1);
	gpu.standin->set_current(0);
	other = gpu.standin->stream(1);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, other));
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_release(view));
	gpu.standin->complete(gpu.stream);
	assert_int_equal(gpu_stats(&gpu).pending, 1);
	gpu.standin->complete(other);
	assert_int_equal(gpu_stats(&gpu).pending, 0);
	assert_int_equal(gpu_stats(&gpu).errors, 0);
	gpu_close(&gpu);
	gpu.standin->discard(other);
}

static void device_error_releases_the_slot_and_is_told(void **state)
{
	struct ta_view *view;
	struct ta_stats st;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_release(view));
	gpu.state->device_error = 700;
	await_stats(gpu.writer, st, st.free == 1);
	assert_int_equal(gpu_stats(&gpu).error, 700);
	assert_non_null(strstr(gpu_stats(&gpu).error_text,
			       "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
	view = gpu_view(&gpu, SOME_BYTES, 2);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
	assert_ok(ta_release(view));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu.state->device_error = 0;
	gpu_close(&gpu);
}

/* As from a host function, which CUDA answers nothing. */
static void unanswered_query_keeps_the_slot(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	gpu.state->fail = "cuEventQuery";
	gpu.state->fail_with = 800;
	assert_ok(ta_release(view));
	expect_slot_taken(&gpu);
	gpu.standin->complete(gpu.stream);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu_close(&gpu);
}

static void failed_calls_harm_nothing(void **state)
{
	static const char *const calls[] = { "cuMemcpyHtoDAsync_v2",
					     "cuEventCreate", "cuEventRecord",
					     "cuStreamIsCapturing" };
	struct ta_view *view;
	struct gpu gpu;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		gpu_open(&gpu, 1, MIB, true);
		view = gpu_view(&gpu, SOME_BYTES, 1);
		gpu.standin->run(gpu.stream);
		gpu.state->fail = calls[i];
		gpu.state->fail_with = 1;
		assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
		assert_true(!strncmp(gpu_stats(&gpu).error_text, calls[i], 12));
		assert_ok(gpu_copy(&gpu, view, gpu.stream));
		gpu_check(&gpu, SOME_BYTES, 1);
		assert_ok(ta_release(view));
		assert_int_equal(stats_of(gpu.writer).free, 1);
		gpu_close(&gpu);
	}
}

/* What no event tells of must be over when the call fails. */
static void copy_that_cannot_be_marked_is_waited_for(void **state)
{
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	view = gpu_view(&gpu, SOME_BYTES, 1);
	gpu.standin->run(gpu.stream);
	gpu.state->fail = "cuEventRecord";
	gpu.state->fail_with = 1;
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
	assert_int_equal(gpu.state->synced, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

static void ranges_outside_the_view_are_refused(void **state)
{
	struct ta_view *view;
	struct gpu gpu;
	char byte;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.standin->run(gpu.stream);
	view = gpu_view(&gpu, 100, 1);
	assert_err(ta_copy_to_device(view, &byte, 101, 0, gpu.stream), -EINVAL);
	assert_err(ta_copy_to_device(view, &byte, 100, 1, gpu.stream), -EINVAL);
	assert_err(ta_copy_to_device(view, &byte, 1, SIZE_MAX, gpu.stream),
		   -EINVAL);
	assert_err(ta_copy_to_device(view, NULL, 0, 1, gpu.stream), -EINVAL);
	assert_ok(ta_copy_to_device(view, &byte, 99, 1, gpu.stream));
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

static void close_waits_for_copies(void **state)
{
	struct ta_view *departed, *open;
	pthread_t thread;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	departed = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, departed, gpu.stream));
	assert_ok(ta_release(departed));
	open = gpu_view(&gpu, SOME_BYTES, 2);
	assert_ok(ta_copy_to_device(open, gpu.device_memory + MIB / 2, 0,
				    SOME_BYTES, gpu.stream));
	thread = gpu_complete_later(&gpu);
	gpu_close_reader(&gpu);
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_true(is_pattern(gpu.device_memory + MIB / 2, SOME_BYTES, 2));
	assert_int_equal(gpu.state->regions, 0);
	assert_int_equal(stats_of(gpu.writer).free, 2);
	pthread_join(thread, NULL);
	gpu_close(&gpu);
}

/* In the child: 0, or the line that went wrong. */
static int use_in_child(struct gpu *gpu, struct ta_view *view)
{
	int calls = gpu->state->driver_calls;
	struct ta_cuda_stats stats;

	if (gpu_copy(gpu, view, gpu->stream) != -EIO)
		return 1;
	if (ta_release_after(view, gpu->stream) != -EIO)
		return 2;
	if (ta_cuda_prepare(gpu->reader, NULL) != -EIO)
		return 3;
	if (ta_cuda_stats(gpu->reader, &stats, NULL, 0) != -EIO)
		return 4;
	if (ta_cuda_pin_budget(gpu->reader, 0) != -EIO)
		return 5;
	ta_reader_close(gpu->reader);
	ta_writer_close(gpu->writer);
	return gpu->state->driver_calls == calls ? 0 : 6;
}

static void forked_child_touches_nothing_of_cuda(void **state)
{
	struct ta_view *departed, *view;
	struct gpu gpu;
	int status;
	pid_t pid;

	(void)state;
	gpu_open(&gpu, 2, MIB, true);
	departed = gpu_view(&gpu, SOME_BYTES, 1);
	assert_ok(gpu_copy(&gpu, departed, gpu.stream));
	assert_ok(ta_release(departed));
	view = gpu_view(&gpu, SOME_BYTES, 2);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(use_in_child(&gpu, view));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	gpu.standin->complete(gpu.stream);
	gpu_check(&gpu, SOME_BYTES, 1);
	assert_ok(ta_release(view));
	gpu_close(&gpu);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_is_not_used_again_while_a_copy_runs),
		cmocka_unit_test(any_later_call_frees_what_is_done),
		cmocka_unit_test(release_after_the_copy_is_immediate),
		cmocka_unit_test(slot_waits_for_every_stream),
		cmocka_unit_test(last_of_several_views_frees_the_slot),
		cmocka_unit_test(many_copies_of_one_view_take_few_events),
		cmocka_unit_test(
			thousands_of_tensors_need_no_more_than_the_first),
		cmocka_unit_test(capturing_stream_is_refused),
		cmocka_unit_test(stream_of_another_device_is_served_there),
		cmocka_unit_test(device_error_releases_the_slot_and_is_told),
		cmocka_unit_test(unanswered_query_keeps_the_slot),
		cmocka_unit_test(failed_calls_harm_nothing),
		cmocka_unit_test(copy_that_cannot_be_marked_is_waited_for),
		cmocka_unit_test(ranges_outside_the_view_are_refused),
		cmocka_unit_test(close_waits_for_copies),
		cmocka_unit_test(forked_child_touches_nothing_of_cuda),
	};

	return run_cases(argc, argv, tests);
}
