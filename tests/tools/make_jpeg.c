// SPDX-License-Identifier: MIT
/*
 * make-jpeg WIDTH HEIGHT [FORM]: writes a JPEG of the test picture to stdout,
 * baseline unless FORM says otherwise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

static const char *const forms[] = {
	[JPEG_BASELINE] = "baseline",
	[JPEG_PROGRESSIVE] = "progressive",
	[JPEG_GREY] = "grey",
	[JPEG_CMYK] = "cmyk",
	[JPEG_ARITHMETIC] = "arithmetic",
};

#define NR_FORMS (sizeof(forms) / sizeof(forms[0]))

int main(int argc, char **argv)
{
	const char *name = argc == 4 ? argv[3] : forms[JPEG_BASELINE];
	unsigned int form = 0;
	uint8_t *data;
	size_t n;
	int err;

	while (form < NR_FORMS && strcmp(forms[form], name))
		form++;
	if (argc < 3 || argc > 4 || form == NR_FORMS) {
		fputs("usage: make-jpeg WIDTH HEIGHT [FORM]\n", stderr);
		return 2;
	}
	data = jpeg_make(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
			 form, &n);
	err = fwrite(data, 1, n, stdout) != n || fflush(stdout);
	free(data);
	return err;
}
