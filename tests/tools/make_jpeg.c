// SPDX-License-Identifier: MIT
/* make-jpeg WIDTH HEIGHT: writes a JPEG of the test picture to stdout. */
#include <stdio.h>
#include <stdlib.h>

#include "files.h"

int main(int argc, char **argv)
{
	uint8_t *data;
	size_t n;
	int err;

	if (argc != 3) {
		fputs("usage: make-jpeg WIDTH HEIGHT\n", stderr);
		return 2;
	}
	data = jpeg_make(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
			 JPEG_BASELINE, &n);
	err = fwrite(data, 1, n, stdout) != n || fflush(stdout);
	free(data);
	return err;
}
