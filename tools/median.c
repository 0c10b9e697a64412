// SPDX-License-Identifier: MIT
/*
 * The median.
 */
#include <stdlib.h>

#include "median.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), ascending);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}
