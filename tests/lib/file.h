/* SPDX-License-Identifier: MIT */
/* Files to load: their bytes are known, and whether they are cached. */
#ifndef TA_TEST_FILE_H
#define TA_TEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct test_file - a file without a name, or the beginning of a disk
 * @fd: open for reading and writing
 * @bytes: what is in it, or at its beginning
 * @nbytes: how much is known of it
 * @end: where it ends
 * @direct: O_DIRECT works, and goes past the page cache
 * @in_memory: it is nowhere else
 */
struct test_file {
	int fd;
	uint8_t *bytes;
	size_t nbytes;
	uint64_t end;
	bool direct;
	bool in_memory;
};

/*
 * In the directory TENSORARENA_TEST_DIR, else in build/, which is more likely to
 * be on a disk than /tmp is, else there.
 */
void file_make(struct test_file *file, size_t nbytes, uint64_t seed);
/*
 * On one of the disks TENSORARENA_TEST_DISKS, separated by white space, whose
 * contents are lost; false: there are not so many.
 */
bool file_make_on_disk(struct test_file *file, unsigned int disk, size_t nbytes,
		       uint64_t seed);
void file_close(struct test_file *file);
/* Puts all of it out of the page cache, or into it. */
void file_evict(const struct test_file *file);
void file_cache(const struct test_file *file);
/* The same file by another descriptor, with these flags. */
int file_reopen(const struct test_file *file, int flags);

#endif /* TA_TEST_FILE_H */
