// SPDX-License-Identifier: MIT
/*
 * Reading a range of a file into a slot: many reads in flight, by io_uring.
 * Without it the same reads are made one after the other.
 */
#include <errno.h>
#include <liburing.h>
#include <time.h>
#include <unistd.h>

#include "copy_cpus.h"
#include "load_read.h"

/*
 * Threads of the kernel's that copy out of the page cache along with ours: half
 * as many as there are processors, though more than these gain nothing, and none
 * where it would be over before they are there.  On two processors they gain
 * little, and when these are busy the wait for the last of them costs far more.
 */
#define MAX_HELPERS 7
#define HELP_BYTES (8U << 20)
#define HELP_PROCESSORS 4

static int read_by_hand(const struct ta_load_io *io)
{
	ssize_t n;

	do
		n = pread(io->fd, io->to, io->nbytes, (off_t)io->offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

static void queue(struct ta_load_reading *r, struct ta_load_part *part,
		  const struct ta_load_io *io)
{
	/* There are as many entries as parts. */
	struct io_uring_sqe *sqe = io_uring_get_sqe(r->ring->uring);

	if (io->index >= 0)
		io_uring_prep_read_fixed(sqe, io->fd, io->to, io->nbytes,
					 io->offset, io->index);
	else
		io_uring_prep_read(sqe, io->fd, io->to, io->nbytes, io->offset);
	if (part->helped)
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data(sqe, part);
}

/* Takes a part to its next read in flight, or to its end. */
static void drive(struct ta_load_reading *r, struct ta_load_part *part)
{
	struct ta_load_io io;

	while (!r->err && part->from < part->end) {
		r->err = ta_load_prepare(r, part, &io);
		if (r->err)
			break;
		if (part->queued) {
			queue(r, part, &io);
			return;
		}
		/* What fails here fails again where it is looked at. */
		if (!r->by_hand && io_uring_sq_ready(r->ring->uring))
			io_uring_submit(r->ring->uring);
		ta_load_finish(r, part, read_by_hand(&io));
	}
	part->end = part->from;
	r->busy--;
}

static struct ta_load_part *unused_part(struct ta_load_reading *r)
{
	uint32_t i;

	for (i = 0; i < TA_LOAD_DEPTH; i++)
		if (r->part[i].from == r->part[i].end)
			return &r->part[i];
	return NULL;
}

static void fill(struct ta_load_reading *r)
{
	struct ta_load_part *part;

	while (!r->err && r->next < r->end) {
		part = unused_part(r);
		if (!part)
			return;
		ta_load_plan(r, part);
		drive(r, part);
	}
}

static void collect(struct ta_load_reading *r)
{
	struct ta_load_part *part;
	struct io_uring_cqe *cqe;
	int result;

	while (!io_uring_peek_cqe(r->ring->uring, &cqe)) {
		part = io_uring_cqe_get_data(cqe);
		result = cqe->res;
		io_uring_cqe_seen(r->ring->uring, cqe);
		ta_load_finish(r, part, result);
		drive(r, part);
	}
}

static void pause_briefly(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	nanosleep(&moment, NULL);
}

/*
 * The kernel lets us ask for nothing any more.  What it has already, it still
 * writes to the slot and tells us without being asked; the rest is read by hand.
 */
static void abandon(struct ta_load_reading *r, int err)
{
	uint32_t i;

	r->by_hand = true;
	r->ring->broken = err;
	while (r->busy > io_uring_sq_ready(r->ring->uring)) {
		collect(r);
		pause_briefly();
	}
	for (i = 0; i < TA_LOAD_DEPTH; i++)
		if (r->part[i].from != r->part[i].end)
			drive(r, &r->part[i]);
}

/* Waits for a read to be done. */
static void await(struct ta_load_reading *r)
{
	int n = io_uring_submit_and_wait(r->ring->uring, 1);

	switch (n < 0 ? n : 0) {
	case -EAGAIN:
	case -EBUSY:
	case -ENOMEM:
		/* The kernel is short of memory; what it has goes on. */
		pause_briefly();
		break;
	case 0:
	case -EINTR:
		break;
	default:
		abandon(r, n);
		return;
	}
	collect(r);
}

static uint32_t count_helpers(uint64_t nbytes)
{
	uint32_t processors;

	if (nbytes < HELP_BYTES)
		return 0;
	processors = ta_cpus_allowed();
	if (processors < HELP_PROCESSORS)
		return 0;
	return processors / 2 < MAX_HELPERS ? processors / 2 : MAX_HELPERS;
}

int ta_load_read(const struct ta_load_range *range, struct ta_load_ring *ring,
		 struct ta_load_stats *stats)
{
	struct ta_load_reading r = {
		.range = range,
		.stats = stats,
		.ring = ring,
		.by_hand = !ring->uring,
		.helpers = count_helpers(range->nbytes),
		.registered = -1,
		.next = range->offset,
		.end = range->offset + range->nbytes,
		.span_end = range->offset,
	};

	do {
		fill(&r);
		if (r.busy)
			await(&r);
	} while (r.busy || (!r.err && r.next < r.end));
	return r.err;
}
