// SPDX-License-Identifier: MIT
/* A made-up machine; see machine.h. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"
#include "test.h"

static char root[] = "/tmp/tensorarena-test-XXXXXX";

const char *machine_root(void)
{
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int machine_make(void **state)
{
	(void)state;
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

int machine_remove(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void put_file(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;
	char *p;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(full, 0755) && errno != EEXIST)
			fail_msg("mkdir %s", full);
		*p = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}
