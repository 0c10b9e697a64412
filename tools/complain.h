/* SPDX-License-Identifier: MIT */
/*
 * How the tool says what went wrong: one line on stderr, and a place to build
 * the reason where the trouble is found.
 */
#ifndef TARENA_COMPLAIN_H
#define TARENA_COMPLAIN_H

#include <stdbool.h>

/* Why something failed, without the name of the file or process concerned. */
struct reason {
	char text[512];
};

/* Returns -1, so that a failing function can end with it. */
int reason_set(struct reason *reason, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Prints "tarena: ..." as exactly one line on stderr, whatever control
 * characters a file name or a library's message brings along.
 */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether arguments are left over behind the options of @command: a complaint. */
bool complain_arguments(int left, const char *command);

#endif /* TARENA_COMPLAIN_H */
