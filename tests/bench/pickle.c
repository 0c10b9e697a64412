// SPDX-License-Identifier: MIT
/*
 * The in-band baseline: Python on both ends, the tensor inside the pickle.  The
 * processes are a program of their own; see pickle_peer.py.
 */
#include <stdio.h>
#include <stdlib.h>

#include "contender.h"
#include "pickle.h"

/* Debian's packages serve Debian's Python. */
static const char *const pythons[] = { "/usr/bin/python3", "python3" };

const char *pickle_python(void)
{
	static const char *found;
	char command[200];
	size_t i;

	/* Processes that are forked later know it, too. */
	for (i = 0; !found && i < sizeof(pythons) / sizeof(pythons[0]); i++) {
		snprintf(command, sizeof(command),
			 "exec %s -c 'import zmq' 2>/dev/null", pythons[i]);
		if (!system(command))
			found = pythons[i];
	}
	return found;
}

static const char *absent(void)
{
	return pickle_python() ? NULL : "no Python here has the module zmq";
}

const struct contender contender_pickle = {
	.name = "pickle",
	.about = "in-band baseline: pickle protocol 5 with the tensor inside, "
		 "through the same socket, Python on both ends",
	/* Into the pickle; into and out of the kernel, and out of the pickle. */
	.copies_put = 1,
	.copies_take = 3,
	.copies_gpu = 1,
	.absent = absent,
	.program = "pickle_peer.py",
};
