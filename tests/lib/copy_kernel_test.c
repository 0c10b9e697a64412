// SPDX-License-Identifier: MIT
/* Every kernel that works on this processor copies every byte and no other. */
#include <string.h>

#include "copy_check.h"
#include "test.h"

/* Runs @check on all kernels there are here. */
static void every_kernel(const char *(*check)(const struct ta_copy_kernel *))
{
	const struct ta_copy_kernel *kernel = &ta_copy_plain;
	const struct ta_copy_kernel *next = ta_copy_streaming;
	const char *text;

	do {
		if (!kernel->usable()) {
			print_message("# %s: not on this processor\n",
				      kernel->name);
		} else {
			print_message("# %s\n", kernel->name);
			text = check(kernel);
			if (text)
				fail_msg("%s", text);
		}
		kernel = next++;
	} while (kernel->name);
}

static void short_copies_are_exact_at_every_alignment(void **state)
{
	(void)state;
	every_kernel(check_short_copies);
}

static void long_copies_are_exact_around_lines_and_pages(void **state)
{
	(void)state;
	every_kernel(check_long_copies);
}

static void nothing_beyond_the_ends_is_touched(void **state)
{
	(void)state;
	every_kernel(check_page_ends);
}

static void the_best_kernel_is_the_first_that_is_usable(void **state)
{
	const struct ta_copy_kernel *best = ta_copy_best();
	const struct ta_copy_kernel *kernel;

	(void)state;
	assert_true(best->usable());
	for (kernel = ta_copy_streaming; kernel->name && kernel != best;
	     kernel++)
		assert_false(kernel->usable());
	assert_true(kernel == best || best == &ta_copy_plain);
	print_message("# %s\n", best->name);
#if defined(__x86_64__) || defined(__aarch64__)
	assert_true(best != &ta_copy_plain);
#endif
}

static void kernels_have_names_of_their_own(void **state)
{
	const struct ta_copy_kernel *a, *b;

	(void)state;
	for (a = ta_copy_streaming; a->name; a++) {
		assert_string_not_equal(a->name, ta_copy_plain.name);
		for (b = ta_copy_streaming; b < a; b++)
			assert_string_not_equal(a->name, b->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_copies_are_exact_at_every_alignment),
		cmocka_unit_test(long_copies_are_exact_around_lines_and_pages),
		cmocka_unit_test(nothing_beyond_the_ends_is_touched),
		cmocka_unit_test(the_best_kernel_is_the_first_that_is_usable),
		cmocka_unit_test(kernels_have_names_of_their_own),
	};

	return run_all(tests, NULL, NULL);
}
