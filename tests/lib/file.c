// SPDX-License-Identifier: MIT
/* Files to load; see file.h. */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file.h"
#include "harness.h"

static const char *directory(void)
{
	const char *dir = getenv("TENSORARENA_TEST_DIR");

	if (dir)
		return dir;
	return access("build", W_OK) ? "/tmp" : "build";
}

int file_reopen(const struct test_file *file, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	return open(path, flags | O_CLOEXEC);
}

static bool in_memory(int fd)
{
	struct statfs fs;
	struct stat st;

	assert_int_equal(fstatfs(fd, &fs), 0);
	assert_int_equal(fstat(fd, &st), 0);
	if (!S_ISREG(st.st_mode))
		return false;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

static void fill(struct test_file *file, size_t nbytes, uint64_t seed)
{
	size_t done = 0;
	ssize_t n;
	int fd;

	file->bytes = malloc(nbytes);
	assert_non_null(file->bytes);
	file->nbytes = nbytes;
	fill_pattern(file->bytes, nbytes, seed);
	while (done < nbytes) {
		n = pwrite(file->fd, file->bytes + done, nbytes - done,
			   (off_t)done);
		assert_true(n > 0);
		done += (size_t)n;
	}
	fd = file_reopen(file, O_RDONLY | O_DIRECT);
	file->in_memory = in_memory(file->fd);
	file->direct = fd >= 0 && !file->in_memory;
	if (fd >= 0)
		close(fd);
}

void file_make(struct test_file *file, size_t nbytes, uint64_t seed)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/tensorarena.XXXXXX", directory());
	file->fd = mkostemp(path, O_CLOEXEC);
	assert_true(file->fd >= 0);
	assert_int_equal(unlink(path), 0);
	fill(file, nbytes, seed);
	file->end = nbytes;
}

/* The name of a disk, or NULL; to be freed. */
static char *name_of(unsigned int disk)
{
	const char *list = getenv("TENSORARENA_TEST_DISKS");
	char *copy = strdup(list ? list : "");
	char *save, *name;

	assert_non_null(copy);
	name = strtok_r(copy, " \n", &save);
	while (name && disk--)
		name = strtok_r(NULL, " \n", &save);
	if (name)
		name = strdup(name);
	free(copy);
	return name;
}

bool file_make_on_disk(struct test_file *file, unsigned int disk, size_t nbytes,
		       uint64_t seed)
{
	char *name = name_of(disk);

	if (!name)
		return false;
	file->fd = open(name, O_RDWR | O_CLOEXEC);
	if (file->fd < 0)
		fail_msg("%s cannot be opened", name);
	free(name);
	assert_int_equal(ioctl(file->fd, BLKGETSIZE64, &file->end), 0);
	assert_true(nbytes <= file->end);
	fill(file, nbytes, seed);
	return true;
}

void file_close(struct test_file *file)
{
	assert_int_equal(close(file->fd), 0);
	free(file->bytes);
}

/* Whether the page cache has any of its bytes, if that can be told. */
static bool is_cached(const struct test_file *file)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t i, pages = (file->nbytes + page - 1) / page;
	unsigned char *present = malloc(pages);
	bool any = false;
	void *map;

	assert_non_null(present);
	map = mmap(NULL, file->nbytes, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED) {
		free(present);
		return false;
	}
	assert_int_equal(mincore(map, file->nbytes, present), 0);
	for (i = 0; i < pages && !any; i++)
		any = present[i] & 1;
	assert_int_equal(munmap(map, file->nbytes), 0);
	free(present);
	return any;
}

void file_evict(const struct test_file *file)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		assert_int_equal(fsync(file->fd), 0);
		assert_int_equal(
			posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
		/* Pages that are being read ahead, or looked at, stay. */
	} while (!file->in_memory && is_cached(file) &&
		 ms_since(&began) < HANG_MS);
}

void file_cache(const struct test_file *file)
{
	uint8_t *scratch = malloc(file->nbytes);

	assert_non_null(scratch);
	assert_int_equal(pread(file->fd, scratch, file->nbytes, 0),
			 (ssize_t)file->nbytes);
	assert_memory_equal(scratch, file->bytes, file->nbytes);
	free(scratch);
}
