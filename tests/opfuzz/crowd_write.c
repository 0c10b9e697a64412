// SPDX-License-Identifier: MIT
/* What the writer's threads do in a crowd. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "crowd.h"

struct author {
	struct crowd *c;
	struct ta_port *port;
	uint64_t stride;
	uint64_t random;
};

#define ERRORS(...) ((const int[]){ __VA_ARGS__, 0 })

static int call(struct author *a, unsigned int command, void *args)
{
	return a->port->ops->call(a->port, command, args);
}

static void remember(struct crowd *c, const struct tensorarena_publish *pub)
{
	struct tensorarena_ticket *t =
		&c->ticket[atomic_fetch_add(&c->last_ticket, 1) % CROWD_TICKETS];

	t->arena = c->handle.arena;
	t->slot = pub->slot;
	t->generation = pub->generation;
	t->nbytes = pub->nbytes;
}

static void publish(struct author *a, const struct tensorarena_acquire *acq)
{
	struct tensorarena_publish pub = {
		.generation = acq->generation,
		.nbytes = acq->nbytes,
		.slot = acq->slot,
		.meta_bytes = 8,
	};
	struct tensorarena_retract retract = { .flags = 0 };
	volatile uint64_t *p = (uint64_t *)(a->port->base + acq->offset);

	/* The first and the last word say whose it is. */
	p[0] = acq->generation;
	p[acq->nbytes / 8 - 1] = acq->generation;
	memcpy(pub.meta, &acq->generation, 8);
	crowd_count(a->c, "PUBLISH", call(a, TENSORARENA_PUBLISH, &pub),
		    ERRORS(-ESTALE));
	remember(a->c, &pub);
	if (random_below(&a->random, 8))
		return;
	retract.slot = acq->slot;
	retract.generation = acq->generation;
	/* Its readers may have released it, or it had none. */
	crowd_count(a->c, "RETRACT", call(a, TENSORARENA_RETRACT, &retract),
		    ERRORS(-ESTALE));
}

static void write_one(struct author *a)
{
	struct tensorarena_acquire acq = {
		.nbytes = 64 + random_below(&a->random, 4) * 0x100000 +
			  random_below(&a->random, 256) * 8,
	};
	struct tensorarena_slot_ref ref;
	int err;

	if (acq.nbytes > CROWD_SLOT_BYTES)
		acq.nbytes = CROWD_SLOT_BYTES;
	err = call(a, TENSORARENA_ACQUIRE, &acq);
	crowd_count(a->c, "ACQUIRE", err, ERRORS(-EAGAIN, -ENOMEM));
	if (err) {
		/* As in crowd_read.c: somebody has to release. */
		sched_yield();
		return;
	}
	if (random_below(&a->random, 8)) {
		publish(a, &acq);
		return;
	}
	ref = (struct tensorarena_slot_ref){ .slot = acq.slot,
					     .generation = acq.generation };
	crowd_count(a->c, "ABORT", call(a, TENSORARENA_ABORT, &ref),
		    ERRORS(-ESTALE));
}

static void evict_some(struct author *a)
{
	struct tensorarena_reader_stats row[16];
	struct tensorarena_stats st = {
		.readers = (uintptr_t)row,
		.nr_readers = 16,
		.row_bytes = sizeof(row[0]),
	};
	struct tensorarena_evict evict = { .flags = 0 };
	int err = call(a, TENSORARENA_STATS, &st);

	crowd_count(a->c, "STATS", err, ERRORS(-ENOMEM));
	if (err)
		return;
	if (st.free + st.writing + st.published != CROWD_SLOTS)
		crowd_wrong(a->c, "a slot is in no state, or in two");
	if (!st.nr_readers || random_below(&a->random, 8))
		return;
	evict.reader = row[0].reader;
	if (!evict.reader) {
		evict.reader = row[0].seat;
		evict.flags = TENSORARENA_EVICT_SEAT;
	}
	crowd_count(a->c, "EVICT", call(a, TENSORARENA_EVICT, &evict),
		    ERRORS(-ESTALE));
}

static void rework(struct author *a)
{
	struct tensorarena_populate populate = {
		.nbytes = random_below(&a->random, CROWD_SLOT_BYTES),
		.slots = (uint32_t)random_below(&a->random, CROWD_SLOTS),
	};
	struct tensorarena_trim trim = {
		.keep_bytes = random_below(&a->random, CROWD_SLOTS) * a->stride,
	};

	if (random_below(&a->random, 2))
		crowd_count(a->c, "POPULATE",
			    call(a, TENSORARENA_POPULATE, &populate),
			    ERRORS(-ENOMEM));
	else
		crowd_count(a->c, "TRIM", call(a, TENSORARENA_TRIM, &trim),
			    ERRORS(-EBUSY));
}

/* Nobody's slots, at nobody's generations, and worse. */
static void guess(struct author *a)
{
	struct tensorarena_slot_ref ref = {
		.slot = (uint32_t)random_below(&a->random, CROWD_SLOTS + 1),
		.generation = random_below(&a->random, 1000),
		.flags = !random_below(&a->random, 8),
	};
	struct tensorarena_acquire acq = {
		.nbytes = random_next(&a->random) | CROWD_SLOT_BYTES << 1,
	};
	struct tensorarena_slot_ref taken = ref;

	/* It may guess right. */
	crowd_count(a->c, "ABORT", call(a, TENSORARENA_ABORT, &taken),
		    ERRORS(-EINVAL, -ESTALE));
	crowd_count(a->c, "ACQUIRE", call(a, TENSORARENA_ACQUIRE, &acq),
		    ERRORS(-EMSGSIZE));
}

static void look(struct author *a)
{
	short events;
	struct pollfd pfd = { .fd = a->port->ops->poll_fd(a->port, &events),
			      .events = POLLOUT };
	void *p;

	crowd_count(a->c, "poll", poll(&pfd, 1, 0) < 0 ? -errno : 0,
		    ERRORS(-EINTR));
	if (!a->c->device)
		return;
	p = mmap(NULL, a->stride, PROT_READ, MAP_SHARED, pfd.fd,
		 (off_t)(random_below(&a->random, CROWD_SLOTS) * a->stride));
	crowd_count(a->c, "mmap", p == MAP_FAILED ? -errno : 0,
		    ERRORS(-ENOMEM));
	if (p == MAP_FAILED)
		return;
	madvise(p, a->stride, MADV_POPULATE_READ);
	crowd_count(a->c, "munmap", munmap(p, a->stride) ? -errno : 0,
		    ERRORS(-ENOMEM));
}

void crowd_write(struct crowd *c, struct ta_port *port, uint64_t stride,
		 uint64_t random)
{
	struct author a = { c, port, stride, random };

	while (!c->enough) {
		switch (random_below(&a.random, 32)) {
		case 0:
			evict_some(&a);
			break;
		case 1:
			rework(&a);
			break;
		case 2:
			guess(&a);
			break;
		case 3:
			look(&a);
			break;
		default:
			write_one(&a);
		}
	}
}
