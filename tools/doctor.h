/* SPDX-License-Identifier: MIT */
/* The parts of tarena doctor, each of which looks at one thing and says so. */
#ifndef TARENA_DOCTOR_H
#define TARENA_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum verdict {
	OK,
	NOTE,
	BAD
};

/* One line about what is. */
void doctor_say(enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* One line about what to do, after a NOTE or BAD. */
void doctor_advise(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/*
 * A file of the system, below TENSORARENA_ROOT where that is set, for tests.
 * Its first line, empty when it cannot be had.
 */
void doctor_read_line(const char *path, char *line, size_t size);
bool doctor_exists(const char *path);
/* Bytes of it; how many there are. */
size_t doctor_read(const char *path, void *bytes, size_t size);
/* Whether anything matches, as glob(3). */
bool doctor_matches(const char *pattern);

/* Whether the module may be used. */
bool doctor_module(void);
/* What it takes to load the module, which is built, into this kernel. */
void doctor_signature(void);
/* What it has given out, and up to what it will. */
void doctor_limits(void);
void doctor_gpu(void);

#endif /* TARENA_DOCTOR_H */
