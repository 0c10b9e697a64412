// SPDX-License-Identifier: MIT
/*
 * The copy on another processor than this one: its kernels byte by byte, then
 * copies by several threads.  TAP without a library, of which there would have
 * to be one for that processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lib/copy.h>

#include "tests/lib/copy_check.h"

#define BYTES ((size_t)3 << 20)

static int points, failures;

static void point(const char *wrong, const char *kernel, const char *what)
{
	points++;
	failures += !!wrong;
	if (wrong)
		printf("# %s\n", wrong);
	printf("%s %d - %s: %s\n", wrong ? "not ok" : "ok", points, kernel,
	       what);
}

/* What one thread wrote is there for another to see. */
static const char *check_threads(const struct ta_copy_kernel *kernel)
{
	const struct ta_copy_plan plan = { 0, 4, 64 << 10, true };
	uint8_t *src = malloc(BYTES + 3), *dst = malloc(BYTES + 3);
	struct ta_copier copier;
	const char *wrong = NULL;
	size_t i, round;

	if (!src || !dst)
		return "no memory";
	ta_copier_init(&copier, 4, -1);
	copier.forced = &plan;
	copier.kernel = kernel;
	for (i = 0; i < BYTES + 3; i++)
		src[i] = (uint8_t)(i * 7 + i / 251 + i / 65521);
	for (round = 0; round < 20 && !wrong; round++) {
		memset(dst, 0xa5, BYTES + 3);
		ta_copy(&copier, dst + round % 3, src + round % 2, BYTES);
		if (memcmp(dst + round % 3, src + round % 2, BYTES))
			wrong = "wrong bytes";
	}
	if (!wrong && atomic_load(&copier.threads) != 4)
		wrong = "not four threads";
	ta_copier_destroy(&copier, false);
	free(src);
	free(dst);
	return wrong;
}

static void check_kernel(const struct ta_copy_kernel *kernel)
{
	const char *name = kernel->name;

	point(check_short_copies(kernel), name, "short copies are exact");
	point(check_long_copies(kernel), name, "long copies are exact");
	point(check_page_ends(kernel), name, "nothing beyond is touched");
	point(check_threads(kernel), name, "several threads copy exactly");
}

int main(void)
{
	const struct ta_copy_kernel *kernel;

	check_kernel(&ta_copy_plain);
	for (kernel = ta_copy_streaming; kernel->name; kernel++)
		if (kernel->usable())
			check_kernel(kernel);
	point(ta_copy_best() == &ta_copy_plain ? "there is none" : NULL,
	      ta_copy_best()->name, "a streaming kernel is chosen");
	printf("1..%d\n", points);
	return failures ? 1 : 0;
}
