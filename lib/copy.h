/* SPDX-License-Identifier: MIT */
/* The one copy of the bytes that a put makes. */
#ifndef TA_COPY_H
#define TA_COPY_H

#include <stddef.h>

/*
 * Copies @n bytes from @src to @dst, which do not overlap.  When it returns,
 * every byte is visible to whoever the publication is handed to.
 *
 * All of the library's bulk copying goes through here, so that how it is done
 * (stores that bypass the cache, several cores at once) is decided in one
 * place and by the size alone.  @src may be NULL when @n is 0.
 */
void ta_copy(void *dst, const void *src, size_t n);

#endif /* TA_COPY_H */
