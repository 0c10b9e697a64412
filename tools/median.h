/* SPDX-License-Identifier: MIT */
#ifndef TARENA_MEDIAN_H
#define TARENA_MEDIAN_H

#include <stddef.h>

/* The median of @n values, at least one, which it puts in order. */
double median(double *values, size_t n);

#endif /* TARENA_MEDIAN_H */
