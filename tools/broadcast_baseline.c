// SPDX-License-Identifier: MIT
/*
 * The yardstick; see broadcast_baseline.h.
 *
 * The passes of several readers share cores and memory bandwidth, in a way
 * that cannot be computed from one pass.  So they are run: in threads, which
 * need no arena to see the same bytes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "broadcast_baseline.h"
#include "checksum.h"
#include "clock.h"

/**
 * struct passes - checksum passes at the same time
 * @src: what to read
 * @nbytes: how much
 * @gate: held while the threads are being made, so that none starts early
 * @thread: the threads
 * @nr: how many there are
 */
struct passes {
	const void *src;
	size_t nbytes;
	pthread_rwlock_t gate;
	pthread_t *thread;
	uint32_t nr;
};

void *baseline_buffer(size_t nbytes)
{
	void *buffer = mmap(NULL, nbytes ? nbytes : 1, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return buffer == MAP_FAILED ? NULL : buffer;
}

void baseline_buffer_free(void *buffer, size_t nbytes)
{
	if (buffer)
		munmap(buffer, nbytes ? nbytes : 1);
}

/* Keeps the compiler from dropping a checksum that nobody looks at. */
static void pass(const void *src, size_t nbytes)
{
	volatile uint64_t digest = checksum(src, nbytes);

	(void)digest;
}

static void *pass_thread(void *arg)
{
	struct passes *p = arg;

	pthread_rwlock_rdlock(&p->gate);
	pass(p->src, p->nbytes);
	pthread_rwlock_unlock(&p->gate);
	return NULL;
}

static int time_passes(struct passes *p, uint32_t readers, double *ms,
		       struct reason *why)
{
	int err = 0;

	pthread_rwlock_wrlock(&p->gate);
	for (p->nr = 0; p->nr < readers; p->nr++) {
		err = pthread_create(&p->thread[p->nr], NULL, pass_thread, p);
		if (err)
			break;
	}
	*ms = clock_ms();
	pthread_rwlock_unlock(&p->gate);
	while (p->nr)
		pthread_join(p->thread[--p->nr], NULL);
	*ms = clock_ms() - *ms;
	if (err)
		return reason_set(why, "cannot start a thread: %s",
				  strerror(err));
	return 0;
}

int baseline_sample(struct baseline *baseline, void *dst, const void *src,
		    size_t nbytes, uint32_t readers, struct reason *why)
{
	struct passes p = {
		.src = src,
		.nbytes = nbytes,
		.gate = PTHREAD_RWLOCK_INITIALIZER,
		.thread = calloc(readers, sizeof(*p.thread)),
	};
	double start;
	int err;

	if (!p.thread)
		return reason_set(why, "no memory for threads");

	start = clock_ms();
	memcpy(dst, src, nbytes);
	baseline->memcpy_ms = clock_ms() - start;

	start = clock_ms();
	pass(src, nbytes);
	baseline->checksum_ms = clock_ms() - start;

	err = time_passes(&p, readers, &baseline->passes_ms, why);
	free(p.thread);
	return err;
}
