// SPDX-License-Identifier: MIT
/* Which kernel to use, and the one that is everywhere; see copy_kernel.h. */
#include <stdatomic.h>
#include <string.h>

#include "copy_kernel.h"

static bool always(void)
{
	return true;
}

static void plain_copy(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
}

/*
 * A C library may stream on its own account, but must then fence: to its
 * callers memcpy() makes ordinary stores.
 */
static void plain_fence(void)
{
	atomic_thread_fence(memory_order_release);
}

const struct ta_copy_kernel ta_copy_plain = {
	.name = "memcpy",
	.usable = always,
	.copy = plain_copy,
	.fence = plain_fence,
};

#if !defined(__x86_64__) && !defined(__aarch64__)
const struct ta_copy_kernel ta_copy_streaming[] = { { .name = NULL } };
#endif

const struct ta_copy_kernel *ta_copy_best(void)
{
	const struct ta_copy_kernel *kernel;

	for (kernel = ta_copy_streaming; kernel->name; kernel++)
		if (kernel->usable())
			return kernel;
	return &ta_copy_plain;
}
