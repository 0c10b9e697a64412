/* SPDX-License-Identifier: MIT */
#ifndef BENCH_PICKLE_H
#define BENCH_PICKLE_H

/* A Python interpreter that has the module zmq, or NULL. */
const char *pickle_python(void);

#endif /* BENCH_PICKLE_H */
