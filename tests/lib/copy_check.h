/* SPDX-License-Identifier: MIT */
/*
 * Checks a kernel byte by byte.  It needs nothing but the C library, so that it
 * can also be built for a processor that is only emulated here.
 */
#ifndef TA_TEST_COPY_CHECK_H
#define TA_TEST_COPY_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include <lib/copy_kernel.h>

/*
 * Each returns NULL, or a sentence that says what was wrong, in a static buffer.
 */

/* Every length up to a few lines, at every alignment of both ends. */
const char *check_short_copies(const struct ta_copy_kernel *kernel);
/* Lengths around blocks of several pages, at some alignments. */
const char *check_long_copies(const struct ta_copy_kernel *kernel);
/* Not a byte is read or written beyond the ends: no page is there. */
const char *check_page_ends(const struct ta_copy_kernel *kernel);

#endif /* TA_TEST_COPY_CHECK_H */
