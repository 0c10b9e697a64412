/* SPDX-License-Identifier: MIT */
/* Sentences for people: why something failed, with sizes they can read. */
#ifndef TA_WHY_H
#define TA_WHY_H

#include <stddef.h>
#include <stdint.h>

/* printf into @why; nothing when @why is NULL. */
__attribute__((format(printf, 3, 4))) void ta_why(char *why, size_t size,
						  const char *format, ...);

/* Room for any ta_size() result. */
#define TA_SIZE_TEXT 32

/* "17 bytes", "512 KiB", "2.5 GiB"; returns @buf. */
const char *ta_size(uint64_t bytes, char buf[static TA_SIZE_TEXT]);

#endif /* TA_WHY_H */
