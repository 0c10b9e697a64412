// SPDX-License-Identifier: MIT
/* What CUDA may do to the library, and the library not to the program. */
#include <errno.h>
#include <string.h>

#include "fixture.h"

#define PENDING 35

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
	gpu.standin->run(gpu.stream);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EREMOTEIO);
	gpu.standin->capture(gpu.stream, true);
	assert_err(gpu_copy(&gpu, view, gpu.stream), -EINPROGRESS);
	gpu.standin->capture(gpu.stream, false);
	gpu.standin->hold(gpu.stream);
	assert_ok(gpu_copy(&gpu, view, gpu.stream));
	assert_ok(ta_release(view));
	assert_int_equal(gpu_stats(&gpu).pending, 1);
	gpu.standin->complete(gpu.stream);
	await_stats(gpu.writer, st, st.free == 2);
	gpu_close_reader(&gpu);
	assert_int_equal(gpu.state->runtime_error, PENDING);
	gpu_close(&gpu);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_own_error_stays_for_it_to_find),
	};

	return run_cases(argc, argv, tests);
}
