/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BROADCAST_H
#define BENCH_BROADCAST_H

/* The whole benchmark as a command; returns an exit code. */
int broadcast_bench(int argc, char **argv);

#endif /* BENCH_BROADCAST_H */
