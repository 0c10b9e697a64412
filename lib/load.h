/* SPDX-License-Identifier: MIT */
/*
 * Loading files: their bytes straight into a slot.
 *
 *	load.c		the calls, and what may be asked for
 *	load_read.c	a range, by many reads in flight
 *	load_part.c	a part of it: how it is read
 *	load_file.c	a file: which descriptors, what alignment, what is cached
 *	load_ring.c	io_uring: a writer's ring
 *	load_table.c	what is registered with it
 *
 * Each writer has a ring of its own, made by its first load that is worth it.
 * A load that finds it in use by another thread makes one for itself, so loads
 * never wait for each other.
 */
#ifndef TA_LOAD_H
#define TA_LOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

struct io_uring;

/* Ranges below this are left to one read through the page cache. */
#define TA_LOAD_SMALL (256U << 10)
/* Reads in flight. */
#define TA_LOAD_DEPTH 16
/* Buffers of bounced reads, one for each; few enough to stay in a cache. */
#define TA_LOAD_BOUNCE (512U << 10)

/**
 * struct ta_load_slot - a slot, and the writer's ring
 * @read: bytes read into it past the page cache while they were not registered
 * @bytes: registered, from its start
 * @tried: registered, or tried in vain
 */
struct ta_load_slot {
	uint64_t read;
	uint64_t bytes;
	uint64_t tried;
};

/**
 * struct ta_loader - a writer's dealings with files
 * @base: where slot 0 is mapped
 * @stride: distance of slots
 * @slots: how many
 * @busy: held by the load that uses @ring; nobody waits for it
 * @ring: the writer's, or NULL; set when it is complete (release), because a
 *	forked child looks at it: a store that is too late for the child waits for
 *	the fork to end, and with it all that come after
 * @bounce: buffers for bounced reads that go with it, or NULL
 * @table_lock: guards what follows, for as long as it takes to register a slot
 * @table: the ring has room for slots: 0 not asked yet, 1 yes, -errno no
 * @bounce_registered: @bounce is in it
 * @slot: one a slot
 * @stats: what was done
 */
struct ta_loader {
	uint8_t *base;
	uint64_t stride;
	uint32_t slots;
	pthread_mutex_t busy;
	struct io_uring *ring;
	uint8_t *bounce;
	pthread_mutex_t table_lock;
	int table;
	bool bounce_registered;
	struct ta_load_slot slot[TENSORARENA_MAX_SLOTS];
	struct ta_load_stats stats;
};

/**
 * struct ta_load_ring - a ring on loan for one load
 * @uring: it, or NULL: there is none to be had
 * @shared: it is the writer's
 * @broken: why it cannot be used again, -errno, or 0
 * @bounce: buffers for bounced reads, or NULL: not asked for yet
 * @bounce_index: where they are registered, or -1
 */
struct ta_load_ring {
	struct io_uring *uring;
	bool shared;
	int broken;
	uint8_t *bounce;
	int bounce_index;
};

/* ---- load_ring.c ---- */

void ta_loader_init(struct ta_loader *loader, uint8_t *base, uint64_t stride,
		    uint32_t slots);
/* @forked: only closes a descriptor. */
void ta_loader_destroy(struct ta_loader *loader, bool forked);
/* Without a ring: there is none, or none is @wanted. */
void ta_load_ring_take(struct ta_loader *loader, bool wanted,
		       struct ta_load_ring *ring);
void ta_load_ring_give(struct ta_loader *loader, struct ta_load_ring *ring);
/* Gets it buffers for bounced reads: 0 or -ENOMEM. */
int ta_load_ring_bounce(struct ta_loader *loader, struct ta_load_ring *ring);

/* ---- load_table.c ---- */

/*
 * How many of a slot's bytes, from its start, are registered with the writer's
 * ring, which the caller has; registers them when that pays.  The slot is on
 * loan, of @loan_bytes, and @nbytes are about to be read into it.
 */
uint64_t ta_loader_register(struct ta_loader *loader, uint32_t slot,
			    uint64_t loan_bytes, uint64_t nbytes);
/*
 * The index, in the ring's table, of the part of a slot that these bytes are
 * in; -1: they straddle two.
 */
int ta_loader_index(const struct ta_loader *loader, uint32_t slot,
		    uint64_t offset, uint64_t nbytes);
/* The same for buffers: their index, or -1. */
int ta_loader_register_bounce(struct ta_loader *loader, uint8_t *bounce,
			      size_t bytes);
/* Unregisters everything. */
void ta_loader_drop_table(struct ta_loader *loader);
/* The slot's memory is going. */
void ta_loader_forget(struct ta_loader *loader, uint32_t slot);
/* Unregisters slots that @idle says are; whether there were any. */
bool ta_loader_forget_idle(struct ta_loader *loader,
			   bool (*idle)(const void *owner, uint32_t slot),
			   const void *owner);
/* Adds to the counters of @loader those of @stats. */
void ta_loader_count(struct ta_loader *loader,
		     const struct ta_load_stats *stats);

/* ---- load_file.c ---- */

/**
 * struct ta_load_file - a file to read from
 * @fd: the caller's descriptor
 * @direct: one that reads past the page cache, or negative
 * @buffered: one that reads through it, or negative; one of the two is @fd
 * @seekable: a regular file or block device, so that it may be opened anew and
 *	read by io_uring
 * @in_memory: the file system has no other place for its bytes
 * @asked: whether there is a @direct, of use, has been found out
 * @refused: there is none
 * @cachestat: the kernel tells what it has cached, as far as is known
 * @no_wait: reads that do not wait work, as far as is known
 * @mem_align: what addresses of direct reads have to be multiples of
 * @offset_align: the same for offsets and sizes
 * @random: state of a generator
 * @direct_error: why, -errno
 */
struct ta_load_file {
	int fd;
	int direct;
	int buffered;
	bool seekable;
	bool in_memory;
	bool asked;
	bool refused;
	bool cachestat;
	bool no_wait;
	uint32_t mem_align;
	uint32_t offset_align;
	uint64_t random;
	int direct_error;
};

/* Offsets and sizes that have to be multiples of more are not supported. */
#define TA_LOAD_MAX_ALIGN 65536U

/* -EBADF, -EISDIR, -ESPIPE: not a file that can be read at an offset. */
int ta_load_file_open(struct ta_load_file *file, int fd);
void ta_load_file_close(struct ta_load_file *file);
/* Whether the file can be read past the page cache; finds out. */
bool ta_load_file_direct(struct ta_load_file *file);
/*
 * It cannot after all, says @err.  What is in flight goes on: the descriptor
 * stays open until the end.
 */
void ta_load_file_refused(struct ta_load_file *file, int err);
/* Whether bytes are in the page cache, as far as a sample tells. */
bool ta_load_file_cached(struct ta_load_file *file, uint64_t offset,
			 uint64_t nbytes);

/* ---- load_read.c ---- */

/**
 * struct ta_load_range - what is to be read
 * @loader: the writer's
 * @slot: slot it goes to
 * @loan_bytes: how much of it is on loan
 * @at: where in the slot
 * @file: where it comes from
 * @offset: where in the file
 * @nbytes: how much
 */
struct ta_load_range {
	struct ta_loader *loader;
	uint32_t slot;
	uint64_t loan_bytes;
	uint64_t at;
	struct ta_load_file *file;
	uint64_t offset;
	uint64_t nbytes;
};

/*
 * Reads a range, by the ring if it is one.  Nothing is in flight any more when it
 * returns.  -ENODATA: the file ends before.
 */
int ta_load_read(const struct ta_load_range *range, struct ta_load_ring *ring,
		 struct ta_load_stats *stats);

#endif /* TA_LOAD_H */
