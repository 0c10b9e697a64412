// SPDX-License-Identifier: MIT
/*
 * Making the memory of a slot, in several threads when there is much of it.
 *
 * The kernel clears and counts page after page, which for a large slot takes
 * several times as long as the copy that waits for it.  Threads do not get in
 * each other's way there.  They exist only meanwhile: a slot grows a few times
 * in its life.
 *
 * A thread's pages come from the node it happens to run on, unless a policy says
 * otherwise.  The slot is to be where one thread would have made it, so where
 * the caller has no policy, which they would inherit, they prefer its node.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copy_cpus.h"
#include "embedded.h"
#include "thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* For less, another thread is not worth its start. */
#define SHARE ((size_t)16 << 20)
/* Then clearing is as fast as memory is. */
#define MAX_THREADS 8
/* More than any kernel has. */
#define MAX_NODES 1024

/**
 * struct share - a thread's part of the memory
 * @node: to prefer, or negative
 * @started: there is a thread for it
 * @err: 0 or -errno
 */
struct share {
	pthread_t thread;
	uint8_t *addr;
	size_t bytes;
	int node;
	bool started;
	int err;
};

static void make(struct share *share)
{
	share->err = madvise(share->addr, share->bytes, MADV_POPULATE_WRITE) ?
			     -errno :
			     0;
}

/* The thread's own policy; if it is refused, the kernel's choice will do. */
static void prefer(int node)
{
	unsigned long mask[MAX_NODES / (sizeof(long) * CHAR_BIT)] = { 0 };
	size_t bits = sizeof(mask[0]) * CHAR_BIT;

	if (node < 0 || node >= MAX_NODES)
		return;
	mask[(size_t)node / bits] = 1ul << (size_t)node % bits;
	syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask, MAX_NODES + 1);
}

static void *make_thread(void *arg)
{
	struct share *share = arg;

	prefer(share->node);
	make(share);
	return NULL;
}

/* Where the caller's memory comes from: -1 when its policy, if any, says. */
static int callers_node(void)
{
	unsigned int cpu, node;
	int mode;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) ||
	    mode != MPOL_DEFAULT || syscall(SYS_getcpu, &cpu, &node, NULL))
		return -1;
	return (int)node;
}

static size_t threads_for(size_t bytes)
{
	size_t threads = bytes / SHARE, most;

	if (threads < 2)
		return 1;
	most = ta_cpus_allowed();
	if (most > MAX_THREADS)
		most = MAX_THREADS;
	return threads < most ? threads : most;
}

static void start(struct share *share, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		share[i].started = !ta_thread_start(&share[i].thread,
						    make_thread, &share[i]);
}

int ta_memory_make(uint8_t *addr, size_t bytes)
{
	struct share share[MAX_THREADS] = { 0 };
	size_t nr = threads_for(bytes), part, i;
	int node = nr > 1 ? callers_node() : -1;
	int err = 0;

	part = bytes / nr / TENSORARENA_STRIDE_ALIGN * TENSORARENA_STRIDE_ALIGN;
	for (i = 0; i < nr; i++) {
		share[i].addr = addr + i * part;
		share[i].bytes = i < nr - 1 ? part : bytes - i * part;
		share[i].node = node;
	}
	/* The first part is the caller's, and those that got no thread. */
	start(share + 1, nr - 1);
	for (i = 0; i < nr; i++)
		if (!share[i].started)
			make(&share[i]);
	for (i = 0; i < nr; i++) {
		if (share[i].started)
			pthread_join(share[i].thread, NULL);
		if (share[i].err)
			err = share[i].err;
	}
	return err;
}
