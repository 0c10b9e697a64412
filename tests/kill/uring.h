/* SPDX-License-Identifier: MIT */
/* As much io_uring as it takes to pin pages. */
#ifndef TA_KILL_URING_H
#define TA_KILL_URING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A descriptor, or -errno. */
static inline int uring_make(void)
{
	struct io_uring_params p = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);

	return fd < 0 ? -errno : fd;
}

/* 0, or -errno: before 6.5 no mapping of a file but of hugetlb and tmpfs. */
static inline int uring_register(int fd, void *data, size_t bytes)
{
	struct iovec iov = { .iov_base = data, .iov_len = bytes };

	return syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &iov,
		       1) ?
		       -errno :
		       0;
}

#endif /* TA_KILL_URING_H */
