// SPDX-License-Identifier: MIT
/* Streaming kernels for x86-64; see copy_kernel.h. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "copy_stream.h"

#define LINE_AVX512(to, from)                                                  \
	_mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))

#define LINE_AVX2(to, from)                                                    \
	do {                                                                   \
		const __m256i *from_ = (const void *)(from);                   \
		__m256i *to_ = (void *)(to);                                   \
		__m256i a_ = _mm256_loadu_si256(from_);                        \
		__m256i b_ = _mm256_loadu_si256(from_ + 1);                    \
                                                                               \
		_mm256_stream_si256(to_, a_);                                  \
		_mm256_stream_si256(to_ + 1, b_);                              \
	} while (0)

#define LINE_SSE2(to, from)                                                    \
	do {                                                                   \
		const __m128i *from_ = (const void *)(from);                   \
		__m128i *to_ = (void *)(to);                                   \
		__m128i a_ = _mm_loadu_si128(from_);                           \
		__m128i b_ = _mm_loadu_si128(from_ + 1);                       \
		__m128i c_ = _mm_loadu_si128(from_ + 2);                       \
		__m128i d_ = _mm_loadu_si128(from_ + 3);                       \
                                                                               \
		_mm_stream_si128(to_, a_);                                     \
		_mm_stream_si128(to_ + 1, b_);                                 \
		_mm_stream_si128(to_ + 2, c_);                                 \
		_mm_stream_si128(to_ + 3, d_);                                 \
	} while (0)

#define TARGET(isa) __attribute__((target(isa)))

TA_DEFINE_STREAM(copy_avx512, TARGET("avx512f"), LINE_AVX512)
TA_DEFINE_STREAM(copy_avx2, TARGET("avx2"), LINE_AVX2)
TA_DEFINE_STREAM(copy_sse2, TARGET("sse2"), LINE_SSE2)

/* These also ask whether the operating system keeps the registers. */
static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_sse2(void)
{
	return true;
}

/* Streaming stores are the only ones on x86 that later stores may overtake. */
static void fence(void)
{
	_mm_sfence();
}

const struct ta_copy_kernel ta_copy_streaming[] = {
	{ "avx512", has_avx512, copy_avx512, fence },
	{ "avx2", has_avx2, copy_avx2, fence },
	{ "sse2", has_sse2, copy_sse2, fence },
	{ .name = NULL },
};

#endif /* __x86_64__ */
