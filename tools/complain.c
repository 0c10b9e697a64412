// SPDX-License-Identifier: MIT
/*
 * Error lines; see complain.h.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "complain.h"

int reason_set(struct reason *reason, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason->text, sizeof(reason->text), format, args);
	va_end(args);
	return -1;
}

void complain(const char *format, ...)
{
	/* Room for the longest path and a reason. */
	char line[PATH_MAX + 1024];
	va_list args;
	char *c;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	for (c = line; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	fprintf(stderr, "tarena: %s\n", line);
}

bool complain_arguments(int left, const char *command)
{
	if (left)
		complain("%s takes no arguments; see tarena %s --help", command,
			 command);
	return left;
}
