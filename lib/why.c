// SPDX-License-Identifier: MIT
/* Sentences for people; see why.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "why.h"

void ta_why(char *why, size_t size, const char *format, ...)
{
	va_list args;

	if (!why)
		return;
	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
}

const char *ta_size(uint64_t bytes, char buf[static TA_SIZE_TEXT])
{
	static const char *const unit[] = { "KiB", "MiB", "GiB",
					    "TiB", "PiB", "EiB" };
	uint64_t whole = bytes;
	uint64_t rest = 0;
	size_t i;

	if (bytes < 1024) {
		snprintf(buf, TA_SIZE_TEXT, "%" PRIu64 " byte%s", bytes,
			 bytes == 1 ? "" : "s");
		return buf;
	}
	/* Cut, never rounded up: "64 MiB left" must not promise more. */
	for (i = 0; whole >= 1024; i++) {
		rest = whole % 1024;
		whole /= 1024;
	}
	if (rest)
		snprintf(buf, TA_SIZE_TEXT, "%" PRIu64 ".%" PRIu64 " %s", whole,
			 rest * 10 / 1024, unit[i - 1]);
	else
		snprintf(buf, TA_SIZE_TEXT, "%" PRIu64 " %s", whole,
			 unit[i - 1]);
	return buf;
}
