// SPDX-License-Identifier: MIT
/*
 * What the doctor's parts have in common; see doctor.h.
 */
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

static void say(const char *word, const char *format, va_list args)
{
	printf("%-4s  ", word);
	vprintf(format, args);
	putchar('\n');
}

void doctor_say(enum verdict verdict, const char *format, ...)
{
	static const char *const word[] = { "ok", "note", "bad" };
	va_list args;

	va_start(args, format);
	say(word[verdict], format, args);
	va_end(args);
}

void doctor_advise(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("do", format, args);
	va_end(args);
}

static const char *below_root(const char *path, char *buf, size_t size)
{
	const char *root = secure_getenv("TENSORARENA_ROOT");

	snprintf(buf, size, "%s%s", root ? root : "", path);
	return buf;
}

void doctor_read_line(const char *path, char *line, size_t size)
{
	char full[PATH_MAX];
	FILE *file = fopen(below_root(path, full, sizeof(full)), "re");

	line[0] = '\0';
	if (!file)
		return;
	if (!fgets(line, (int)size, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

size_t doctor_read(const char *path, void *bytes, size_t size)
{
	char full[PATH_MAX];
	FILE *file = fopen(below_root(path, full, sizeof(full)), "re");
	size_t n;

	if (!file)
		return 0;
	n = fread(bytes, 1, size, file);
	fclose(file);
	return n;
}

bool doctor_exists(const char *path)
{
	char full[PATH_MAX];

	return !access(below_root(path, full, sizeof(full)), F_OK);
}

bool doctor_matches(const char *pattern)
{
	char full[PATH_MAX];
	glob_t found;
	bool any;

	any = !glob(below_root(pattern, full, sizeof(full)), GLOB_NOSORT, NULL,
		    &found);
	if (any)
		globfree(&found);
	return any;
}
