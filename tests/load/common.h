/* SPDX-License-Identifier: MIT */
/* A writer and a file, without readers: what both kinds of tests start from. */
#ifndef TESTS_LOAD_COMMON_H
#define TESTS_LOAD_COMMON_H

#include <sys/syscall.h>

#include <tests/lib/file.h>
#include <tests/lib/harness.h>

#define SCENE_BYTES (12 * MIB)

/* Linux 6.5; the C library's headers may be older. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* One slot, which is on loan. */
struct scene {
	struct test_file file;
	struct ta_writer *writer;
	struct ta_loan *loan;
};

/* 0, or the line that went wrong: they are also called where nothing catches. */
int scene_open(struct scene *s);
void scene_close(struct scene *s);
/* Loads a range, cold, and compares. */
int scene_load(struct scene *s, size_t at, int fd, uint64_t offset,
	       size_t nbytes);
/* Ranges of every kind. */
int scene_load_all(struct scene *s, int fd);
struct ta_load_stats scene_stats(struct scene *s);

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			return __LINE__;                                       \
	} while (0)

#endif /* TESTS_LOAD_COMMON_H */
