// SPDX-License-Identifier: MIT
/*
 * A file to load from: which descriptors to read it by, what direct reads have
 * to be aligned to, and whether the page cache has it.
 *
 * The caller's descriptor is used as it is.  Where reads need it otherwise (past
 * the page cache, or not), the file is opened once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

/*
 * What logical blocks are at most, almost everywhere.  Where a file system does
 * not say, and wants more, it refuses the reads.
 */
#define USUAL_ALIGN 4096

/* Linux 6.5; the C library's headers may be older. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct cachestat_range {
	uint64_t offset;
	uint64_t bytes;
};

/* Of the kernel's structure, which may grow, what it has had from the start. */
struct cachestat_pages {
	uint64_t cached;
	uint64_t dirty;
	uint64_t writeback;
	uint64_t evicted;
	uint64_t recently_evicted;
};

/* Pages that are looked for in a range, each somewhere in its own part of it. */
#define PROBES 4

/*
 * Opens the same file anew.  The thread's own table of descriptors is looked
 * into, which may not be the process's; and /proc may be anything, so that what
 * was opened is compared.
 */
static int reopen(int fd, int flags)
{
	char path[sizeof("/proc/thread-self/fd/") + 10];
	struct stat old, new;
	int again;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
	if (again < 0)
		return -errno;
	if (!fstat(fd, &old) && !fstat(again, &new) &&
	    old.st_dev == new.st_dev &&
	    old.st_ino == new.st_ino &&old.st_rdev == new.st_rdev)
		return again;
	close(again);
	return -ESTALE;
}

/* Whether the file system keeps its files in the page cache and nowhere else. */
static bool is_in_memory(int fd, const struct stat *st)
{
	struct statfs fs;

	/* Of a disk it is the node that is there. */
	if (!S_ISREG(st->st_mode) || fstatfs(fd, &fs))
		return false;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
	       fs.f_type == HUGETLBFS_MAGIC;
}

/* 0, or why the descriptor cannot be read at an offset. */
static int find_kind(struct ta_load_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st))
		return -errno;
	file->seekable = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	file->in_memory = is_in_memory(file->fd, &st);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return -ESPIPE;
	return 0;
}

int ta_load_file_open(struct ta_load_file *file, int fd)
{
	struct timespec now;
	int flags, err;

	*file = (struct ta_load_file){
		.fd = fd,
		.direct = -1,
		.buffered = -1,
	};
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	err = find_kind(file);
	if (err)
		return err;
	/* Looking at what else there is could take it. */
	file->no_wait = file->seekable;
	file->cachestat = file->seekable;
	/* Opened anew it might be readable, but that is not what we were given. */
	if ((flags & O_ACCMODE) == O_WRONLY || flags & O_PATH)
		return -EBADF;
	if (flags & O_DIRECT) {
		file->direct = fd;
		if (file->seekable)
			file->buffered = reopen(fd, 0);
	} else {
		file->buffered = fd;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	file->random = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ULL + 1;
	return 0;
}

static void close_other(const struct ta_load_file *file, int fd)
{
	if (fd >= 0 && fd != file->fd)
		close(fd);
}

void ta_load_file_close(struct ta_load_file *file)
{
	close_other(file, file->direct);
	close_other(file, file->buffered);
}

static bool usable(uint32_t align)
{
	return align && align <= TA_LOAD_MAX_ALIGN && !(align & (align - 1));
}

/* False: no direct reads, although the file could be opened for them. */
static bool find_alignment(struct ta_load_file *file)
{
	struct statx stx = { 0 };

	file->mem_align = USUAL_ALIGN;
	file->offset_align = USUAL_ALIGN;
	if (statx(file->direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) ||
	    !(stx.stx_mask & STATX_DIOALIGN))
		return true;
	if (!usable(stx.stx_dio_mem_align) || !usable(stx.stx_dio_offset_align))
		return false;
	file->mem_align = stx.stx_dio_mem_align;
	file->offset_align = stx.stx_dio_offset_align;
	return true;
}

void ta_load_file_refused(struct ta_load_file *file, int err)
{
	file->refused = true;
	file->direct_error = err;
	/* The only one there is; whoever reads by it hears why it cannot. */
	if (file->buffered < 0)
		file->buffered = file->fd;
}

bool ta_load_file_direct(struct ta_load_file *file)
{
	if (file->asked)
		return !file->refused;
	file->asked = true;
	if (file->direct < 0 && file->seekable && !file->in_memory)
		file->direct = reopen(file->fd, O_DIRECT);
	if (!file->seekable || file->in_memory)
		ta_load_file_refused(file, -EINVAL);
	else if (file->direct < 0)
		ta_load_file_refused(file, file->direct);
	else if (!find_alignment(file))
		ta_load_file_refused(file, -EINVAL);
	return !file->refused;
}

/* A number below @below, which is not 0. */
static uint64_t random_below(struct ta_load_file *file, uint64_t below)
{
	file->random ^= file->random << 13;
	file->random ^= file->random >> 7;
	file->random ^= file->random << 17;
	return file->random % below;
}

/*
 * Where there is no cachestat(2).  Looking for a page that is not there makes the
 * kernel read it, in the background, and on a disk that is quicker than the
 * processor finds it.  Always looking at the same pages, the next load would find
 * just these and think that it has them all.
 */
static bool probe(struct ta_load_file *file, uint64_t offset, uint64_t nbytes)
{
	uint64_t part = nbytes / PROBES + 1;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	uint64_t at;
	ssize_t n;
	int i;

	if (!file->no_wait)
		return false;
	for (i = 0; i < PROBES; i++) {
		at = (uint64_t)i * part + random_below(file, part);
		if (at >= nbytes)
			at = nbytes - 1;
		n = preadv2(file->buffered, &iov, 1, (off_t)(offset + at),
			    RWF_NOWAIT);
		if (n < 0 && errno != EAGAIN)
			file->no_wait = false;
		if (n != 1)
			return false;
	}
	return true;
}

bool ta_load_file_cached(struct ta_load_file *file, uint64_t offset,
			 uint64_t nbytes)
{
	struct cachestat_range range = { .offset = offset, .bytes = nbytes };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct cachestat_pages pages;

	if (file->buffered < 0)
		return false;
	if (file->in_memory)
		return true;
	if (file->cachestat &&
	    !syscall(SYS_cachestat, file->buffered, &range, &pages, 0))
		return pages.cached >=
		       (offset + nbytes - 1) / page - offset / page + 1;
	file->cachestat = false;
	return probe(file, offset, nbytes);
}
