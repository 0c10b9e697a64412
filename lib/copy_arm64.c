// SPDX-License-Identifier: MIT
/* The streaming kernel for 64-bit Arm; see copy_kernel.h. */
#if defined(__aarch64__)

#include "copy_stream.h"

/* No intrinsic makes STNP, the store that bypasses the cache. */
static inline void line(uint8_t *to, const uint8_t *from)
{
	asm volatile("ldp q0, q1, [%1]\n\t"
		     "ldp q2, q3, [%1, #32]\n\t"
		     "stnp q0, q1, [%0]\n\t"
		     "stnp q2, q3, [%0, #32]"
		     :
		     : "r"(to), "r"(from)
		     : "v0", "v1", "v2", "v3", "memory");
}

TA_DEFINE_STREAM(copy_stnp, , line)

/* Part of every AArch64 processor that Linux runs on. */
static bool has_stnp(void)
{
	return true;
}

/* All stores may overtake each other here, and STNP's are no exception. */
static void fence(void)
{
	asm volatile("dmb ishst" : : : "memory");
}

const struct ta_copy_kernel ta_copy_streaming[] = {
	{ "stnp", has_stnp, copy_stnp, fence },
	{ .name = NULL },
};

#endif /* __aarch64__ */
