// SPDX-License-Identifier: MIT
/*
 * What is registered with a writer's io_uring: slots, and the buffers for
 * bounced reads.
 *
 * Registering a slot pins its pages once instead of at every read.  That costs
 * about what it saves when as many bytes are read, so it is done when as many
 * have been, and kept.  Memory that the kernel does not register (a device's
 * mapping before Linux 6.5, more than RLIMIT_MEMLOCK allows) is read into all
 * the same.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "load.h"

/* The kernel takes no larger buffers, nor more of them. */
#define PART_BYTES (1ULL << 30)
#define MAX_PARTS 16384U

static uint32_t parts_of(const struct ta_loader *loader)
{
	return (uint32_t)((loader->stride + PART_BYTES - 1) / PART_BYTES);
}

/* 0, or why nothing can be registered with the writer's ring. */
static int make_table(struct ta_loader *loader)
{
	uint64_t nr = (uint64_t)loader->slots * parts_of(loader) + 1;
	int err;

	if (!loader->table) {
		err = nr > MAX_PARTS ? -E2BIG :
				       io_uring_register_buffers_sparse(
					       loader->ring, (unsigned int)nr);
		loader->table = err ? err : 1;
	}
	return loader->table < 0 ? loader->table : 0;
}

/* Sets an entry of the table; to nothing, if @bytes is 0. */
static int set_entry(struct ta_loader *loader, uint32_t index, uint8_t *addr,
		     uint64_t bytes)
{
	const struct iovec iov = {
		.iov_base = bytes ? addr : NULL,
		.iov_len = bytes,
	};
	const __u64 tag = 0;
	int n;

	n = io_uring_register_buffers_update_tag(loader->ring, index, &iov,
						 &tag, 1);
	return n == 1 ? 0 : n < 0 ? n : -EAGAIN;
}

/* Sets the entries of a slot: its first @bytes, or nothing. */
static int set_slot(struct ta_loader *loader, uint32_t slot, uint64_t bytes)
{
	uint8_t *addr = loader->base + slot * loader->stride;
	uint32_t parts = parts_of(loader);
	uint32_t i;
	int err = 0;

	for (i = 0; i < parts && !err; i++) {
		uint64_t part = bytes < PART_BYTES ? bytes : PART_BYTES;

		err = set_entry(loader, slot * parts + i, addr, part);
		addr += part;
		bytes -= part;
	}
	return err;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void clear_slot(struct ta_loader *loader, uint32_t slot)
{
	struct ta_load_slot *s = &loader->slot[slot];

	if (s->bytes) {
		set_slot(loader, slot, 0);
		loader->stats.registered_bytes -= s->bytes;
	}
	memset(s, 0, sizeof(*s));
}

/* At least the first @nbytes; all that is likely to be built, if it is. */
static int try_register(struct ta_loader *loader, uint32_t slot,
			uint64_t nbytes, uint64_t *bytes)
{
	const uint64_t unit = TENSORARENA_STRIDE_ALIGN;
	int err;

	err = make_table(loader);
	if (err)
		return err;
	*bytes = ta_slot_capacity(nbytes, loader->stride);
	err = set_slot(loader, slot, *bytes);
	if (err == -EFAULT) {
		*bytes = (nbytes + unit - 1) / unit * unit;
		err = set_slot(loader, slot, *bytes);
	}
	if (err)
		set_slot(loader, slot, 0);
	return err;
}

static void register_slot(struct ta_loader *loader, uint32_t slot,
			  uint64_t nbytes)
{
	struct ta_load_slot *s = &loader->slot[slot];
	uint64_t start = now_ns();
	uint64_t bytes = 0;
	int err;

	err = try_register(loader, slot, nbytes, &bytes);
	loader->stats.register_ns += now_ns() - start;
	loader->stats.registered_bytes -= s->bytes;
	s->bytes = err ? 0 : bytes;
	s->tried = err ? nbytes : bytes;
	loader->stats.registered_bytes += s->bytes;
	if (err)
		loader->stats.register_error = err;
	else
		loader->stats.registrations++;
}

uint64_t ta_loader_register(struct ta_loader *loader, uint32_t slot,
			    uint64_t loan_bytes, uint64_t nbytes)
{
	struct ta_load_slot *s = &loader->slot[slot];
	uint64_t bytes;

	pthread_mutex_lock(&loader->table_lock);
	if (s->tried < loan_bytes && s->read >= loan_bytes)
		register_slot(loader, slot, loan_bytes);
	bytes = s->bytes;
	if (bytes < loan_bytes)
		s->read += nbytes;
	pthread_mutex_unlock(&loader->table_lock);
	return bytes;
}

int ta_loader_index(const struct ta_loader *loader, uint32_t slot,
		    uint64_t offset, uint64_t nbytes)
{
	uint64_t part = offset / PART_BYTES;

	if (part != (offset + nbytes - 1) / PART_BYTES)
		return -1;
	return (int)(slot * parts_of(loader) + part);
}

void ta_loader_forget(struct ta_loader *loader, uint32_t slot)
{
	pthread_mutex_lock(&loader->table_lock);
	clear_slot(loader, slot);
	pthread_mutex_unlock(&loader->table_lock);
}

bool ta_loader_forget_idle(struct ta_loader *loader,
			   bool (*idle)(const void *owner, uint32_t slot),
			   const void *owner)
{
	bool any = false;
	uint32_t i;

	pthread_mutex_lock(&loader->table_lock);
	for (i = 0; i < loader->slots; i++) {
		if (!loader->slot[i].bytes || !idle(owner, i))
			continue;
		clear_slot(loader, i);
		any = true;
	}
	pthread_mutex_unlock(&loader->table_lock);
	return any;
}

void ta_loader_count(struct ta_loader *loader,
		     const struct ta_load_stats *stats)
{
	struct ta_load_stats *sum = &loader->stats;

	pthread_mutex_lock(&loader->table_lock);
	sum->loads += stats->loads;
	sum->failures += stats->failures;
	sum->direct_bytes += stats->direct_bytes;
	sum->fixed_bytes += stats->fixed_bytes;
	sum->bounced_bytes += stats->bounced_bytes;
	sum->cached_bytes += stats->cached_bytes;
	sum->buffered_bytes += stats->buffered_bytes;
	if (stats->direct_error)
		sum->direct_error = stats->direct_error;
	pthread_mutex_unlock(&loader->table_lock);
}

int ta_loader_register_bounce(struct ta_loader *loader, uint8_t *bounce,
			      size_t bytes)
{
	uint32_t index = loader->slots * parts_of(loader);
	int err;

	pthread_mutex_lock(&loader->table_lock);
	err = make_table(loader);
	if (!err && !loader->bounce_registered)
		err = set_entry(loader, index, bounce, bytes);
	loader->bounce_registered = !err;
	pthread_mutex_unlock(&loader->table_lock);
	return err ? -1 : (int)index;
}

/*
 * Done explicitly, for a forked child may hold the ring open, and pages would
 * stay pinned.
 */
void ta_loader_drop_table(struct ta_loader *loader)
{
	pthread_mutex_lock(&loader->table_lock);
	if (loader->table > 0)
		io_uring_unregister_buffers(loader->ring);
	loader->table = 0;
	loader->bounce_registered = false;
	memset(loader->slot, 0, sizeof(loader->slot));
	loader->stats.registered_bytes = 0;
	pthread_mutex_unlock(&loader->table_lock);
}
