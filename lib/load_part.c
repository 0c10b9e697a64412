// SPDX-License-Identifier: MIT
/*
 * A part of a range: how it is read.
 *
 *	DIRECT		past the page cache, right into the slot
 *	BOUNCED		past the page cache into a buffer, and copied from there:
 *			the ends of a range that are less than a block, and
 *			everything where file and slot are not aligned alike
 *	CACHED		out of the page cache, which has it already
 *	BUFFERED	through the page cache, for want of a better way
 */
#include <errno.h>

#include "copy_kernel.h"
#include "load_read.h"

/* What is looked for in the page cache as a whole. */
#define SPAN_BYTES (16U << 20)
/* Below this, stores that bypass the cache gain nothing. */
#define STREAM_BYTES (64U << 10)
/* Made one after the other, reads have to be large for a device to be busy. */
#define LONE_CHUNK (8U << 20)

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Where in the slot a byte of the file belongs. */
static uint64_t place(const struct ta_load_reading *r, uint64_t from)
{
	return r->range->at + (from - r->range->offset);
}

static uint8_t *address(const struct ta_load_reading *r, uint64_t from)
{
	const struct ta_loader *loader = r->range->loader;

	return loader->base + r->range->slot * loader->stride + place(r, from);
}

static uint8_t *bounce_of(const struct ta_load_reading *r,
			  const struct ta_load_part *part)
{
	return r->ring->bounce + (size_t)(part - r->part) * TA_LOAD_BOUNCE;
}

/* Through the page cache, that is by copying. */
static bool is_copied(const struct ta_load_part *part)
{
	return part->way == TA_LOAD_CACHED || part->way == TA_LOAD_BUFFERED;
}

/* ---- planning ---- */

static void enter_span(struct ta_load_reading *r)
{
	uint64_t end = (r->next / SPAN_BYTES + 1) * SPAN_BYTES;

	r->span_end = min(end, r->end);
	r->cached = ta_load_file_cached(r->range->file, r->next,
					r->span_end - r->next);
}

/* How to read past the page cache from @from on, and how far. */
static enum ta_load_way plan_direct(const struct ta_load_reading *r,
				    uint64_t from, uint64_t *nbytes)
{
	const struct ta_load_file *file = r->range->file;
	uint64_t align = file->offset_align;
	uint64_t before = from % align;
	uint64_t first = before ? align - before : 0;
	uint64_t rest = r->span_end - from;
	bool alike = (uintptr_t)address(r, from + first) % file->mem_align == 0;

	if (alike && !before && rest >= align) {
		*nbytes = min(r->by_hand ? LONE_CHUNK : TA_LOAD_CHUNK,
			      rest / align * align);
		return TA_LOAD_DIRECT;
	}
	/* Bounced one after the other, reads would not keep the device busy. */
	if (!alike && r->by_hand && file->buffered >= 0)
		return TA_LOAD_BUFFERED;
	*nbytes = alike && before ? first : TA_LOAD_BOUNCE - before;
	return TA_LOAD_BOUNCED;
}

void ta_load_plan(struct ta_load_reading *r, struct ta_load_part *part)
{
	struct ta_load_file *file = r->range->file;
	uint64_t nbytes = TA_LOAD_CHUNK;

	part->way = TA_LOAD_BUFFERED;
	if (r->range->nbytes < TA_LOAD_SMALL && file->buffered >= 0) {
		r->span_end = r->end;
	} else {
		if (r->next == r->span_end)
			enter_span(r);
		if (r->cached)
			part->way = TA_LOAD_CACHED;
		else if (ta_load_file_direct(file))
			part->way = plan_direct(r, r->next, &nbytes);
	}
	part->from = r->next;
	part->end = min(part->from + nbytes, r->span_end);
	r->next = part->end;
	r->busy++;
}

/* ---- preparing ---- */

/* Whether what is left of a direct read can be read like that. */
static bool still_direct(const struct ta_load_reading *r,
			 const struct ta_load_part *part)
{
	const struct ta_load_file *file = r->range->file;

	return part->from % file->offset_align == 0 &&
	       (part->end - part->from) % file->offset_align == 0 &&
	       (uintptr_t)address(r, part->from) % file->mem_align == 0;
}

/*
 * The index of the registered slot, or -1.  Registered memory is read into page
 * by page, and each piece has to be whole blocks.
 */
static int slot_index(struct ta_load_reading *r, const struct ta_load_io *io)
{
	const struct ta_load_range *range = r->range;
	uint64_t at = place(r, io->offset);

	if (r->by_hand || !r->ring->shared)
		return -1;
	if (r->registered < 0)
		r->registered = (int64_t)ta_loader_register(
			range->loader, range->slot, range->loan_bytes,
			r->end - io->offset);
	if (at + io->nbytes > (uint64_t)r->registered ||
	    (uintptr_t)io->to % range->file->offset_align)
		return -1;
	return ta_loader_index(range->loader, range->slot, at, io->nbytes);
}

static void prepare_in_place(struct ta_load_reading *r,
			     struct ta_load_part *part, struct ta_load_io *io)
{
	const struct ta_load_file *file = r->range->file;
	bool direct = part->way == TA_LOAD_DIRECT;

	io->fd = direct ? file->direct : file->buffered;
	io->to = address(r, part->from);
	io->nbytes = (uint32_t)(part->end - part->from);
	io->offset = part->from;
	io->index = direct ? slot_index(r, io) : -1;
	part->fixed = io->index >= 0;
}

static void prepare_bounced(const struct ta_load_reading *r,
			    struct ta_load_part *part, struct ta_load_io *io)
{
	uint32_t align = r->range->file->offset_align;
	uint64_t nbytes;

	part->skip = (uint32_t)(part->from % align);
	nbytes = min(part->skip + (part->end - part->from), TA_LOAD_BOUNCE);
	io->fd = r->range->file->direct;
	io->to = bounce_of(r, part);
	io->nbytes = (uint32_t)((nbytes + align - 1) / align * align);
	io->offset = part->from - part->skip;
	io->index = r->by_hand ? -1 : r->ring->bounce_index;
	part->fixed = false;
}

/* Who is to make the read. */
static void assign(struct ta_load_reading *r, struct ta_load_part *part)
{
	bool copied = is_copied(part);

	part->queued = !r->by_hand && (!copied || r->helping < r->helpers);
	part->helped = part->queued && copied;
	r->helping += part->helped;
}

int ta_load_prepare(struct ta_load_reading *r, struct ta_load_part *part,
		    struct ta_load_io *io)
{
	int err;

	/* A short read may have left off anywhere. */
	if (part->way == TA_LOAD_DIRECT && !still_direct(r, part))
		part->way = TA_LOAD_BOUNCED;
	if (part->way == TA_LOAD_BOUNCED) {
		err = ta_load_ring_bounce(r->range->loader, r->ring);
		if (err && r->range->file->buffered < 0)
			return err;
		if (err)
			part->way = TA_LOAD_BUFFERED;
	}
	if (part->way == TA_LOAD_BOUNCED)
		prepare_bounced(r, part, io);
	else
		prepare_in_place(r, part, io);
	assign(r, part);
	return 0;
}

/* ---- finishing ---- */

static void count(struct ta_load_reading *r, const struct ta_load_part *part,
		  uint64_t n)
{
	struct ta_load_stats *stats = r->stats;

	switch (part->way) {
	case TA_LOAD_DIRECT:
		stats->direct_bytes += n;
		stats->fixed_bytes += part->fixed ? n : 0;
		break;
	case TA_LOAD_BOUNCED:
		stats->bounced_bytes += n;
		break;
	case TA_LOAD_CACHED:
		stats->cached_bytes += n;
		break;
	case TA_LOAD_BUFFERED:
		stats->buffered_bytes += n;
		break;
	}
}

/*
 * Out of a buffer that a device has just written to, into a slot that nobody here
 * will read.
 */
static void bounce(void *dst, const void *src, size_t n)
{
	const struct ta_copy_kernel *kernel =
		n < STREAM_BYTES ? &ta_copy_plain : ta_copy_best();

	kernel->copy(dst, src, n);
	kernel->fence();
}

/* Of the bytes that were read, those that were asked for. */
static uint64_t take(const struct ta_load_reading *r,
		     const struct ta_load_part *part, uint64_t n)
{
	if (part->way != TA_LOAD_BOUNCED)
		return n;
	n = n > part->skip ? min(n - part->skip, part->end - part->from) : 0;
	bounce(address(r, part->from), bounce_of(r, part) + part->skip, n);
	return n;
}

/* Whether there is another way, after an error that is not about the bytes. */
static bool detour(struct ta_load_reading *r, struct ta_load_part *part,
		   int err)
{
	switch (err) {
	case -EINVAL:
	case -EOPNOTSUPP:
		if (!is_copied(part)) {
			ta_load_file_refused(r->range->file, err);
			part->way = TA_LOAD_BUFFERED;
			return true;
		}
		break;
	case -EAGAIN:
	case -EINTR:
	case -ECANCELED: /* no kernel thread to be had */
		break;
	default:
		return false;
	}
	/* What the ring cannot do may be done without; that is not asked twice. */
	r->by_hand = true;
	return part->queued;
}

void ta_load_finish(struct ta_load_reading *r, struct ta_load_part *part,
		    int result)
{
	uint64_t n;

	r->helping -= part->helped;
	part->helped = false;
	if (r->err)
		return;
	if (result < 0) {
		if (!detour(r, part, result))
			r->err = result;
		return;
	}
	n = take(r, part, (uint64_t)result);
	if (!n)
		r->err = -ENODATA;
	count(r, part, n);
	part->from += n;
}
