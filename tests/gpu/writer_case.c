// SPDX-License-Identifier: MIT
/* A tensor goes from the GPU into a loan, and is published when it is there. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fixture.h"

static struct ta_loan *loan_with_copy(struct gpu *gpu, uint64_t seed)
{
	struct ta_loan *loan;

	fill_pattern(gpu->device_memory, SOME_BYTES, seed);
	assert_ok(ta_loan(gpu->writer, SOME_BYTES, &loan));
	assert_ok(ta_copy_from_device(loan, 0, gpu->device_memory, SOME_BYTES,
				      gpu->stream));
	return loan;
}

static void expect_next(struct gpu *gpu, uint64_t seed)
{
	struct ta_view *view;

	assert_ok(ta_next(gpu->reader, HANG_MS, &view));
	assert_true(is_pattern(view->data, SOME_BYTES, seed));
	assert_ok(ta_release(view));
}

static void commit_waits_for_the_copy(void **state)
{
	struct ta_cuda_stats stats;
	struct ta_loan *loan;
	struct gpu gpu;
	pthread_t thread;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu, 1);
	assert_int_equal(gpu.state->regions, 1);
	assert_int_equal(gpu.state->region[0].flags, PORTABLE_FLAG);
	thread = gpu_complete_later(&gpu);
	assert_ok(ta_commit(loan, SOME_BYTES, NULL, NULL));
	expect_next(&gpu, 1);
	pthread_join(thread, NULL);
	assert_ok(ta_cuda_writer_stats(gpu.writer, &stats, NULL, 0));
	assert_int_equal(stats.copies, 1);
	assert_int_equal(stats.pinned_slots, 1);
	gpu_close(&gpu);
}

static void commit_after_waits_for_the_callers_own_work(void **state)
{
	struct ta_loan *loan;
	struct gpu gpu;
	pthread_t thread;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu, 1);
	thread = gpu_complete_later(&gpu);
	assert_ok(ta_commit_after(loan, gpu.stream, SOME_BYTES, NULL, NULL));
	assert_true(gpu.state->synced > 0);
	expect_next(&gpu, 1);
	pthread_join(thread, NULL);
	gpu_close(&gpu);
}

static void abort_and_close_wait_too(void **state)
{
	struct ta_loan *loan;
	struct gpu gpu;
	pthread_t thread;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu, 1);
	thread = gpu_complete_later(&gpu);
	assert_ok(ta_abort(loan));
	pthread_join(thread, NULL);
	assert_int_equal(gpu.state->synced, 1);
	loan_with_copy(&gpu, 2);
	thread = gpu_complete_later(&gpu);
	/* Does what is left of the copy before the memory goes. */
	ta_writer_close(gpu.writer);
	pthread_join(thread, NULL);
	assert_int_equal(gpu.state->synced, 2);
	gpu.writer = NULL;
	gpu_close(&gpu);
}

static void failed_copy_is_never_published(void **state)
{
	struct ta_loan *loan;
	struct ta_view *view;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	loan = loan_with_copy(&gpu, 1);
	gpu.state->device_error = 700;
	assert_err(ta_commit(loan, SOME_BYTES, NULL, NULL), -EREMOTEIO);
	gpu.state->device_error = 0;
	/* The error is over, what it did to the bytes is not. */
	assert_err(ta_commit(loan, SOME_BYTES, NULL, NULL), -EREMOTEIO);
	assert_err(ta_next(gpu.reader, 0, &view), -EAGAIN);
	assert_ok(ta_abort(loan));
	assert_int_equal(stats_of(gpu.writer).free, 1);
	gpu.standin->run(gpu.stream);
	assert_ok(ta_commit(loan_with_copy(&gpu, 2), SOME_BYTES, NULL, NULL));
	expect_next(&gpu, 2);
	gpu_close(&gpu);
}

static void impossible_copies_are_refused(void **state)
{
	struct ta_loan *loan;
	struct gpu gpu;

	(void)state;
	gpu_open(&gpu, 1, MIB, false);
	assert_ok(ta_loan(gpu.writer, 100, &loan));
	assert_err(ta_copy_from_device(loan, 0, gpu.device_memory, 1, NULL),
		   -ENODEV);
	assert_err(ta_commit_after(loan, NULL, 100, NULL, NULL), -ENODEV);
	gpu.state->initialised = true;
	gpu.standin->set_current(0);
	assert_err(ta_copy_from_device(loan, 1, gpu.device_memory, 100,
				       gpu.stream),
		   -EINVAL);
	assert_err(ta_copy_from_device(loan, 0, NULL, 1, gpu.stream), -EINVAL);
	gpu.standin->capture(gpu.stream, true);
	assert_err(ta_copy_from_device(loan, 0, gpu.device_memory, 1,
				       gpu.stream),
		   -EINPROGRESS);
	gpu.state->fail = "cuMemcpyDtoHAsync_v2";
	gpu.state->fail_with = 1;
	gpu.standin->capture(gpu.stream, false);
	assert_err(ta_copy_from_device(loan, 0, gpu.device_memory, 1,
				       gpu.stream),
		   -EREMOTEIO);
	/* Nothing was sent, so there is nothing that could be wrong. */
	fill_pattern(loan->data, 100, 5);
	assert_ok(ta_commit(loan, 100, NULL, NULL));
	gpu_close(&gpu);
}

static void writers_own_pins_do_not_keep_trim_from_freeing(void **state)
{
	struct gpu gpu;
	uint64_t freed;

	(void)state;
	gpu_open(&gpu, 1, MIB, true);
	gpu.standin->run(gpu.stream);
	assert_ok(ta_abort(loan_with_copy(&gpu, 1)));
	assert_int_equal(gpu.state->regions, 1);
	assert_ok(ta_trim(gpu.writer, 0, &freed));
	assert_int_equal(freed, 2 * MIB);
	assert_int_equal(gpu.state->regions, 0);
	assert_ok(ta_commit(loan_with_copy(&gpu, 2), SOME_BYTES, NULL, NULL));
	expect_next(&gpu, 2);
	gpu_close(&gpu);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commit_waits_for_the_copy),
		cmocka_unit_test(commit_after_waits_for_the_callers_own_work),
		cmocka_unit_test(abort_and_close_wait_too),
		cmocka_unit_test(failed_copy_is_never_published),
		cmocka_unit_test(impossible_copies_are_refused),
		cmocka_unit_test(
			writers_own_pins_do_not_keep_trim_from_freeing),
	};

	return run_cases(argc, argv, tests);
}
