/* SPDX-License-Identifier: MIT */
/* The command line of the broadcast benchmark. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "plan.h"

/**
 * struct request - what the command line asks for
 * @path: where the record goes; NULL: standard output
 */
struct request {
	struct plan plan;
	struct setting setting;
	const char *path;
};

/* 0, or the exit code plus one: there is nothing more to do. */
int options_parse(int argc, char **argv, struct request *request);
/* What the command line left open.  -1: it asks for a GPU, and there is none. */
int options_complete(struct plan *plan, bool gpu);

#endif /* BENCH_OPTIONS_H */
