/* SPDX-License-Identifier: MIT */
/* What lies beside this program; it may have been carried to another machine. */
#ifndef BENCH_PATHS_H
#define BENCH_PATHS_H

#define PATH_BYTES 4096

/* The path of a file beside the running program. */
void path_beside(const char *name, char path[PATH_BYTES]);

#endif /* BENCH_PATHS_H */
