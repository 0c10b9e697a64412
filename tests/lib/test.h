/* SPDX-License-Identifier: MIT */
/* cmocka with the headers it wants before it, and results as TAP. */
#ifndef TA_TEST_H
#define TA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The functions here return 0 or -errno; a failure should say which. */
#define assert_ok(call)                                                        \
	do {                                                                   \
		int ok_err_ = (call);                                          \
		if (ok_err_)                                                   \
			fail_msg("%s: %d (%s)", #call, ok_err_,                \
				 ta_strerror(ok_err_));                        \
	} while (0)

#define assert_err(call, expected)                                             \
	do {                                                                   \
		int err_err_ = (call);                                         \
		if (err_err_ != (expected))                                    \
			fail_msg("%s: %d (%s), not %s", #call, err_err_,       \
				 ta_strerror(err_err_), #expected);            \
	} while (0)

/* One plan for the program's tests, as tests/summary expects. */
#define run_all(tests, setup, teardown)                                        \
	(cmocka_set_message_output(CM_OUTPUT_TAP),                             \
	 cmocka_run_group_tests(tests, setup, teardown))

#endif /* TA_TEST_H */
