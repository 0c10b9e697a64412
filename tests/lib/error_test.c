// SPDX-License-Identifier: MIT
/* Error texts and what counts as a decline. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <tensorarena.h>

#include "test.h"

static const int contract[] = {
	EINVAL,	    E2BIG,  EFAULT,  ENOTTY, EOPNOTSUPP, EAGAIN,    EMSGSIZE,
	ENOMEM,	    EDQUOT, ESTALE,  ENXIO,  EUSERS,	 EACCES,    EPIPE,
	EOWNERDEAD, EBUSY,  EIO,     EINTR,  ENOTCONN,	 ESHUTDOWN, EPROTO,
	EADDRINUSE, ENOENT, ENODATA, EBADF,  EISDIR,	 ESPIPE,
};

static void every_error_of_the_contract_has_its_own_sentence(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(contract); i++) {
		const char *text = ta_strerror(contract[i]);

		assert_string_not_equal(text, strerrordesc_np(contract[i]));
		assert_true(ta_strerror(-contract[i]) == text);
		for (k = 0; k < i; k++)
			assert_string_not_equal(text, ta_strerror(contract[k]));
	}
}

static void other_numbers_have_some_text(void **state)
{
	(void)state;
	assert_string_equal(ta_strerror(-EXDEV), strerrordesc_np(EXDEV));
	assert_string_equal(ta_strerror(123456), "unknown error");
	assert_string_equal(ta_strerror(INT_MAX), "unknown error");
	assert_string_equal(ta_strerror(INT_MIN), "unknown error");
	assert_string_equal(ta_strerror(0), "success");
}

static void declines_are_exactly_those_documented(void **state)
{
	int err, declines = 0;

	(void)state;
	for (err = -200; err <= 200; err++)
		declines += ta_is_decline(err);
	assert_int_equal(declines, 5);
	assert_true(ta_is_decline(-EAGAIN));
	assert_true(ta_is_decline(-EMSGSIZE));
	assert_true(ta_is_decline(-ENOMEM));
	assert_true(ta_is_decline(-EDQUOT));
	assert_true(ta_is_decline(-ENOTCONN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_error_of_the_contract_has_its_own_sentence),
		cmocka_unit_test(other_numbers_have_some_text),
		cmocka_unit_test(declines_are_exactly_those_documented),
	};

	return run_all(tests, NULL, NULL);
}
