/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's tracepoints, for tests: switched on, and what came of it.
 *
 *	trace_start();
 *	...
 *	EXPECT_TRUE(trace_saw("ta_publish: arena=%llu slot=0 ", id));
 */
#ifndef SELFTEST_TRACING_H
#define SELFTEST_TRACING_H

#include <stdarg.h>

#include "arena.h"
#include "machine.h"

#define TRACING "/sys/kernel/tracing"

static inline void trace_start(void)
{
	int fd;

	/*
	 * The names of tasks come from tracepoints in the scheduler.  To switch
	 * those patches code that all processors run all the time, which an
	 * emulated one may see half done: it dies of a breakpoint nobody set.
	 */
	MUST(!write_to(TRACING "/options/record-cmd", "0"));
	MUST(!write_to(TRACING "/events/tensorarena/enable", "0"));
	/* What was there before is not ours. */
	fd = open(TRACING "/trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
	MUST(fd >= 0);
	MUST(!close(fd));
	MUST(!write_to(TRACING "/events/tensorarena/enable", "1"));
}

static inline void trace_stop(void)
{
	MUST(!write_to(TRACING "/events/tensorarena/enable", "0"));
}

/* How many events had this text in them. */
static inline int __attribute__((format(printf, 1, 2)))
trace_count(const char *format, ...)
{
	char wanted[256], line[1024];
	va_list args;
	int found = 0;
	FILE *f;

	va_start(args, format);
	vsnprintf(wanted, sizeof(wanted), format, args);
	va_end(args);
	f = fopen(TRACING "/trace", "re");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		found += line[0] != '#' && strstr(line, wanted);
	MUST(!fclose(f));
	return found;
}

/* For people, when a test has failed. */
static inline void trace_show(void)
{
	char line[1024];
	FILE *f = fopen(TRACING "/trace", "re");

	MUST(f);
	while (fgets(line, sizeof(line), f))
		printf("# %s", line);
	MUST(!fclose(f));
}

#define trace_saw(...) (trace_count(__VA_ARGS__) == 1)

#endif /* SELFTEST_TRACING_H */
