// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints' code; see trace.h. */
#include <linux/errno.h>

#define CREATE_TRACE_POINTS
#include "trace.h"
