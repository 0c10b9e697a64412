/* SPDX-License-Identifier: GPL-2.0-only */
/* As little io_uring as tests need: one request at a time, no library. */
#ifndef SELFTEST_URING_H
#define SELFTEST_URING_H

#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arena.h"

struct uring {
	int fd;
	uint32_t *sq_tail, *sq_mask, *sq_array;
	uint32_t *cq_head, *cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static inline void *uring_map(int fd, size_t bytes, off_t offset)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       offset);

	MUST(p != MAP_FAILED);
	return p;
}

/* 0, or -errno where the kernel has no io_uring. */
static inline int uring_open(struct uring *u)
{
	struct io_uring_params p = { 0 };
	uint8_t *sq, *cq;

	u->fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	if (u->fd < 0)
		return -errno;
	sq = uring_map(u->fd, p.sq_off.array + p.sq_entries * 4,
		       IORING_OFF_SQ_RING);
	cq = uring_map(u->fd, p.cq_off.cqes + p.cq_entries * sizeof(*u->cqe),
		       IORING_OFF_CQ_RING);
	u->sqe = uring_map(u->fd, p.sq_entries * sizeof(*u->sqe),
			   IORING_OFF_SQES);
	u->sq_tail = (uint32_t *)(sq + p.sq_off.tail);
	u->sq_mask = (uint32_t *)(sq + p.sq_off.ring_mask);
	u->sq_array = (uint32_t *)(sq + p.sq_off.array);
	u->cq_head = (uint32_t *)(cq + p.cq_off.head);
	u->cq_mask = (uint32_t *)(cq + p.cq_off.ring_mask);
	u->cqe = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	return 0;
}

/* Registers one buffer, which pins its pages as CUDA would. */
static inline int uring_register(const struct uring *u, void *p, size_t nbytes)
{
	struct iovec iov = { .iov_base = p, .iov_len = nbytes };

	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS,
		       &iov, 1) ?
		       -errno :
		       0;
}

static inline int uring_register_file(const struct uring *u, int fd)
{
	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_FILES, &fd,
		       1) ?
		       -errno :
		       0;
}

/* IORING_OP_READ_FIXED or IORING_OP_WRITE_FIXED, to its end. */
static inline int uring_io(struct uring *u, uint8_t opcode, int fd, void *p,
			   uint32_t nbytes)
{
	uint32_t tail = *u->sq_tail;
	uint32_t index = tail & *u->sq_mask;
	struct io_uring_sqe *sqe = &u->sqe[index];
	uint32_t head = *u->cq_head;
	int result;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)p;
	sqe->len = nbytes;
	u->sq_array[index] = index;
	__atomic_store_n(u->sq_tail, tail + 1, __ATOMIC_RELEASE);
	MUST(syscall(SYS_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS,
		     NULL, 0) == 1);
	result = u->cqe[head & *u->cq_mask].res;
	__atomic_store_n(u->cq_head, head + 1, __ATOMIC_RELEASE);
	return result;
}

#endif /* SELFTEST_URING_H */
