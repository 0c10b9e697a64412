// SPDX-License-Identifier: MIT
/*
 * A writer's io_uring, and what goes with it.  Everything here is undone by
 * ta_loader_destroy().
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load.h"

#define BOUNCE_TOTAL ((size_t)TA_LOAD_DEPTH * TA_LOAD_BOUNCE)

void ta_loader_init(struct ta_loader *loader, uint8_t *base, uint64_t stride,
		    uint32_t slots)
{
	loader->base = base;
	loader->stride = stride;
	loader->slots = slots;
	pthread_mutex_init(&loader->busy, NULL);
	pthread_mutex_init(&loader->table_lock, NULL);
}

static int set_up(struct io_uring *uring)
{
	struct io_uring_params params = { .flags = IORING_SETUP_COOP_TASKRUN };
	int err;

	err = io_uring_queue_init_params(TA_LOAD_DEPTH, uring, &params);
	if (err == -EINVAL) /* Linux before 5.19 */
		err = io_uring_queue_init(TA_LOAD_DEPTH, uring, 0);
	if (err)
		return err;
	/* A child has no use for it, and must not unmap what is elsewhere. */
	io_uring_ring_dontfork(uring);
	return 0;
}

static int make_ring(struct io_uring **uring)
{
	struct io_uring *u = malloc(sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	err = set_up(u);
	if (err)
		free(u);
	else /* Complete: ta_loader_destroy() in a forked child reads it. */
		__atomic_store_n(uring, u, __ATOMIC_RELEASE);
	return err;
}

static void end_ring(struct io_uring *uring)
{
	io_uring_queue_exit(uring);
	free(uring);
}

static void free_bounce(uint8_t *bounce)
{
	if (bounce)
		munmap(bounce, BOUNCE_TOTAL);
}

void ta_loader_destroy(struct ta_loader *loader, bool forked)
{
	if (forked) {
		/* No acquire: whose stores were in time has been copied. */
		if (loader->ring)
			close(loader->ring->ring_fd);
		free(loader->ring);
		return;
	}
	if (loader->ring) {
		ta_loader_drop_table(loader);
		end_ring(loader->ring);
	}
	free_bounce(loader->bounce);
	pthread_mutex_destroy(&loader->busy);
	pthread_mutex_destroy(&loader->table_lock);
}

static void note_ring(struct ta_loader *loader, int err)
{
	pthread_mutex_lock(&loader->table_lock);
	if (err)
		loader->stats.ring_error = err;
	else
		loader->stats.rings++;
	pthread_mutex_unlock(&loader->table_lock);
}

void ta_load_ring_take(struct ta_loader *loader, bool wanted,
		       struct ta_load_ring *ring)
{
	*ring = (struct ta_load_ring){ .bounce_index = -1 };
	if (!wanted)
		return;
	ring->shared = !pthread_mutex_trylock(&loader->busy);
	if (!ring->shared) {
		note_ring(loader, make_ring(&ring->uring));
		return;
	}
	if (!loader->ring)
		note_ring(loader, make_ring(&loader->ring));
	ring->uring = loader->ring;
}

void ta_load_ring_give(struct ta_loader *loader, struct ta_load_ring *ring)
{
	if (ring->broken)
		note_ring(loader, ring->broken);
	if (!ring->shared) {
		if (ring->uring)
			end_ring(ring->uring);
		free_bounce(ring->bounce);
		return;
	}
	if (ring->broken) {
		ta_loader_drop_table(loader);
		__atomic_store_n(&loader->ring, NULL, __ATOMIC_RELEASE);
		end_ring(ring->uring);
	}
	pthread_mutex_unlock(&loader->busy);
}

static int make_bounce(uint8_t **bounce)
{
	uint8_t *p = mmap(NULL, BOUNCE_TOTAL, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	/*
	 * Writing to memory shared with a forked child, we would get a copy, and
	 * the reads in flight would go on filling what is then the child's.
	 */
	if (madvise(p, BOUNCE_TOTAL, MADV_DONTFORK)) {
		munmap(p, BOUNCE_TOTAL);
		return -ENOMEM;
	}
	*bounce = p;
	return 0;
}

int ta_load_ring_bounce(struct ta_loader *loader, struct ta_load_ring *ring)
{
	int err;

	if (ring->bounce)
		return 0;
	if (!ring->shared)
		return make_bounce(&ring->bounce);
	if (!loader->bounce) {
		err = make_bounce(&loader->bounce);
		if (err)
			return err;
	}
	ring->bounce = loader->bounce;
	if (ring->uring)
		ring->bounce_index = ta_loader_register_bounce(
			loader, ring->bounce, BOUNCE_TOTAL);
	return 0;
}
