/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An arena for tests: the uAPI's commands with the parts filled in that the
 * test at hand is not about.
 *
 * Calls under test return 0 or a negative error number.  What merely has to
 * work for the test to begin is wrapped in MUST(), which ends the process, so
 * that these helpers serve child processes, too.
 */
#ifndef SELFTEST_ARENA_H
#define SELFTEST_ARENA_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uapi/tensorarena.h"

#define MIB (1UL << 20)
#define CHUNK (2 * MIB) /* what slot memory comes in */

#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "# %s:%d: %s: %s\n", __FILE__,         \
				__LINE__, #condition, strerror(errno));        \
			abort();                                               \
		}                                                              \
	} while (0)

struct arena {
	int fd; /* the writer */
	struct tensorarena_create made;
	uint8_t *map;
	size_t bytes;
};

struct reader {
	int fd;
	struct tensorarena_attach made;
	uint8_t *map;
	size_t bytes;
};

static inline int request(int fd, unsigned long command, void *args)
{
	return ioctl(fd, command, args) ? -errno : 0;
}

static inline int control_open(void)
{
	int fd = open("/dev/tensorarena", O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

static inline int control_request(unsigned long command, void *args)
{
	int fd = control_open();
	int err = request(fd, command, args);

	MUST(!close(fd));
	return err;
}

static inline struct tensorarena_info info_get(void)
{
	struct tensorarena_info info = { 0 };

	MUST(!control_request(TENSORARENA_INFO, &info));
	return info;
}

/* ---- the writer's side ---- */

static inline int arena_try(struct arena *a, uint32_t slots,
			    uint64_t slot_bytes, uint32_t seats, uint32_t flags)
{
	int err;

	memset(a, 0, sizeof(*a));
	a->made.slot_bytes = slot_bytes;
	a->made.slots = slots;
	a->made.seats = seats;
	a->made.flags = flags;
	a->made.node = TENSORARENA_NODE_LOCAL;
	err = control_request(TENSORARENA_CREATE, &a->made);
	a->fd = err ? -1 : a->made.fd;
	a->bytes = slots * a->made.stride;
	return err;
}

static inline void arena_create(struct arena *a, uint32_t slots,
				uint64_t slot_bytes, uint32_t seats)
{
	MUST(!arena_try(a, slots, slot_bytes, seats, 0));
}

static inline void arena_map(struct arena *a)
{
	a->map = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd,
		      0);
	MUST(a->map != MAP_FAILED);
}

static inline int acquire(const struct arena *a, uint64_t nbytes,
			  struct tensorarena_acquire *args)
{
	memset(args, 0, sizeof(*args));
	args->nbytes = nbytes;
	return request(a->fd, TENSORARENA_ACQUIRE, args);
}

/*
 * A search for one extent takes at most a quarter of a second, on a slow machine
 * too short; the next goes on where it ended.
 */
static inline int acquire_patiently(const struct arena *a, uint64_t nbytes,
				    struct tensorarena_acquire *args)
{
	int err, tries = 40;

	do {
		err = acquire(a, nbytes, args);
	} while (err == -ENOMEM &&
		 a->made.flags & TENSORARENA_CREATE_CONTIGUOUS && --tries);
	return err;
}

static inline int publish(const struct arena *a, uint32_t slot,
			  uint64_t generation, uint64_t nbytes)
{
	struct tensorarena_publish args = {
		.generation = generation,
		.nbytes = nbytes,
		.slot = slot,
	};
	int err = request(a->fd, TENSORARENA_PUBLISH, &args);

	return err ? err : (int)args.addressed;
}

static inline int publish_to(const struct arena *a, uint32_t slot,
			     uint64_t generation, uint64_t nbytes,
			     const uint64_t *readers, uint32_t nr_readers)
{
	struct tensorarena_publish args = {
		.generation = generation,
		.nbytes = nbytes,
		.readers = (uintptr_t)readers,
		.nr_readers = nr_readers,
		.slot = slot,
	};
	int err = request(a->fd, TENSORARENA_PUBLISH, &args);

	return err ? err : (int)args.addressed;
}

static inline int abort_slot(const struct arena *a, uint32_t slot,
			     uint64_t generation)
{
	struct tensorarena_slot_ref args = { .generation = generation,
					     .slot = slot };

	return request(a->fd, TENSORARENA_ABORT, &args);
}

/* The readers that have it still, or an error. */
static inline int retract(const struct arena *a, uint32_t slot,
			  uint64_t generation)
{
	struct tensorarena_retract args = { .generation = generation,
					    .slot = slot };
	int err = request(a->fd, TENSORARENA_RETRACT, &args);

	return err ? err : (int)args.pending;
}

static inline int evict(const struct arena *a, uint64_t reader, uint32_t flags)
{
	struct tensorarena_evict args = { .reader = reader, .flags = flags };
	int err = request(a->fd, TENSORARENA_EVICT, &args);

	return err ? err : (int)args.freed;
}

static inline struct tensorarena_stats stats_get(const struct arena *a)
{
	struct tensorarena_stats st = { 0 };

	MUST(!request(a->fd, TENSORARENA_STATS, &st));
	return st;
}

/* ---- bytes ---- */

/* Every seed gives other bytes in every place. */
static inline uint32_t pattern_word(uint32_t seed, size_t i)
{
	return ((uint32_t)i + seed * 0x01000193U) * 0x9e3779b1U;
}

static inline void pattern_fill(void *dst, size_t nbytes, uint32_t seed)
{
	size_t i, words = nbytes / 4;
	uint32_t last = pattern_word(seed, words);

	for (i = 0; i < words; i++)
		((uint32_t *)dst)[i] = pattern_word(seed, i);
	memcpy((uint8_t *)dst + words * 4, &last, nbytes % 4);
}

static inline bool pattern_matches(const void *src, size_t nbytes,
				   uint32_t seed)
{
	size_t i, words = nbytes / 4;
	uint32_t last = pattern_word(seed, words);

	for (i = 0; i < words; i++)
		if (((const uint32_t *)src)[i] != pattern_word(seed, i))
			return false;
	return !memcmp((const uint8_t *)src + words * 4, &last, nbytes % 4);
}

/* A put to every open seat; the pattern's seed travels as the meta bytes. */
static inline struct tensorarena_ticket put(struct arena *a, uint64_t nbytes,
					    uint32_t seed)
{
	struct tensorarena_ticket ticket = { .arena = a->made.arena,
					     .nbytes = nbytes };
	struct tensorarena_publish pub = { .nbytes = nbytes,
					   .meta_bytes = sizeof(seed) };
	struct tensorarena_acquire acq;

	if (!a->map)
		arena_map(a);
	MUST(!acquire_patiently(a, nbytes, &acq));
	pattern_fill(a->map + acq.offset, nbytes, seed);
	memcpy(pub.meta, &seed, sizeof(seed));
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	MUST(!request(a->fd, TENSORARENA_PUBLISH, &pub));
	ticket.slot = acq.slot;
	ticket.generation = acq.generation;
	return ticket;
}

/* ---- the reader's side ---- */

static inline int attach(const struct arena *a, struct reader *r)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->made.arena = a->made.arena;
	memcpy(r->made.cookie, a->made.cookie, sizeof(r->made.cookie));
	err = control_request(TENSORARENA_ATTACH, &r->made);
	r->fd = err ? -1 : r->made.fd;
	r->bytes = r->made.slots * r->made.stride;
	return err;
}

static inline void reader_map(struct reader *r)
{
	r->map = mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, r->fd, 0);
	MUST(r->map != MAP_FAILED);
}

static inline void reader_attach(const struct arena *a, struct reader *r)
{
	MUST(!attach(a, r));
}

static inline int next(const struct reader *r, struct tensorarena_borrow *args)
{
	memset(args, 0, sizeof(*args));
	return request(r->fd, TENSORARENA_NEXT, args);
}

static inline int borrow(const struct reader *r,
			 const struct tensorarena_ticket *ticket,
			 struct tensorarena_borrow *args)
{
	memset(args, 0, sizeof(*args));
	args->ticket = *ticket;
	return request(r->fd, TENSORARENA_BORROW, args);
}

static inline int release(const struct reader *r,
			  const struct tensorarena_ticket *ticket)
{
	struct tensorarena_slot_ref args = { .generation = ticket->generation,
					     .slot = ticket->slot };

	return request(r->fd, TENSORARENA_RELEASE, &args);
}

static inline int detach(const struct reader *r)
{
	struct tensorarena_detach args = { 0 };
	int err = request(r->fd, TENSORARENA_DETACH, &args);

	return err ? err : (int)args.freed;
}

/* Whether the bytes of a borrowed publication are those that put() wrote. */
static inline bool delivered(const struct reader *r,
			     const struct tensorarena_borrow *b)
{
	uint32_t seed;

	memcpy(&seed, b->meta, sizeof(seed));
	return b->meta_bytes == sizeof(seed) &&
	       pattern_matches(r->map + b->offset, b->ticket.nbytes, seed);
}

#endif /* SELFTEST_ARENA_H */
