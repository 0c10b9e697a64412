// SPDX-License-Identifier: MIT
/*
 * Operations that do not change the state: figures, malformed requests,
 * mappings, processes that the arena does not belong to.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

/* Of a device port: the file itself. */
static int file_of(struct ta_port *port)
{
	short events;

	return port->ops->poll_fd(port, &events);
}

static int request(int fd, unsigned long command, void *args)
{
	return ioctl(fd, command, args) ? -errno : 0;
}

/* Some end of the arena that is here; NULL: there is none. */
static struct ta_port *some_port(struct stage *s, uint32_t choice, bool *writer)
{
	uint32_t i, nr = choice % (MODEL_SEATS + 1);

	*writer = false;
	for (i = 0; i <= MODEL_SEATS; i++, nr = (nr + 1) % (MODEL_SEATS + 1)) {
		if (nr == MODEL_SEATS && s->writer) {
			*writer = true;
			return s->writer;
		}
		if (nr < MODEL_SEATS && s->seat[nr].port)
			return s->seat[nr].port;
	}
	return NULL;
}

/* ---- figures ---- */

static const char *compare_stats(struct stage *s,
				 const struct tensorarena_stats *st)
{
	const struct ta_counters *c = &s->w.m.count;
	struct tensorarena_stats want = { 0 };
	uint64_t built = 0;
	uint32_t i;

	ta_slots_stats(&s->w.s, &want);
	for (i = 0; i < MODEL_SLOTS; i++)
		built += s->w.m.writing[i].built;
	if (st->slots != want.slots || st->free != want.free ||
	    st->writing != want.writing || st->published != want.published)
		return disagree(s, "STATS: %u free, %u writing, %u published",
				st->free, st->writing, st->published);
	if (st->nr_readers != ta_slots_open(&s->w.s))
		return disagree(s, "STATS: %u open seats", st->nr_readers);
	if (st->allocated_bytes != built * s->made.stride)
		return disagree(s, "STATS: %llu bytes allocated, %llu built",
				(unsigned long long)st->allocated_bytes,
				(unsigned long long)built);
	if (st->puts != c->puts || st->put_bytes != c->put_bytes ||
	    st->unaddressed != c->unaddressed || st->aborted != c->aborted ||
	    st->released != c->released ||
	    st->declined_no_slot != c->declined_no_slot ||
	    st->declined_oversize != c->declined_oversize ||
	    st->declined_no_memory != c->declined_no_memory ||
	    st->attached != c->attached || st->detached != c->detached ||
	    st->evicted != c->evicted ||
	    st->reclaimed_dead_readers != c->reclaimed_dead_readers ||
	    st->retracted != c->retracted)
		return disagree(s, "STATS: a counter");
	return NULL;
}

static const char *compare_rows(struct stage *s,
				const struct tensorarena_reader_stats *row)
{
	__u64 oldest = 0;
	uint32_t seat;

	for (seat = 0; seat < MODEL_SEATS; seat++) {
		if (!s->w.m.seat[seat].tenure)
			continue;
		if (row->seat != seat ||
		    row->reader != s->w.m.seat[seat].reader ||
		    row->pending != ta_slots_pending(&s->w.s, seat, &oldest))
			return disagree(s, "STATS: the row of seat %u", seat);
		row++;
	}
	return NULL;
}

static const char *compare_poll(struct stage *s, uint32_t seat)
{
	struct pollfd pfd = { .events = POLLIN | POLLOUT };
	short want = 0;

	pfd.fd = file_of(s->seat[seat].port);
	if (ta_slots_has_unseen(&s->w.s, seat))
		want = POLLIN;
	else if (!s->writer)
		want = POLLHUP;
	MUST(poll(&pfd, 1, 0) >= 0);
	if (pfd.revents != want)
		return disagree(s, "poll of seat %u: %x, not %x", seat,
				pfd.revents, want);
	return NULL;
}

const char *observe(struct stage *s, bool *good)
{
	struct tensorarena_reader_stats row[MODEL_SEATS] = { 0 };
	struct tensorarena_stats st = {
		.readers = (uintptr_t)row,
		.nr_readers = MODEL_SEATS,
		.row_bytes = sizeof(row[0]),
	};
	const char *why = NULL;
	uint32_t seat;
	int err;

	*good = true;
	if (s->writer) {
		err = s->writer->ops->call(s->writer, TENSORARENA_STATS, &st);
		if (err)
			return disagree(s, "STATS: %d", err);
		why = compare_stats(s, &st) ?: compare_rows(s, row);
	}
	/* Of the embedded engine it may report what it has not looked at. */
	for (seat = 0; s->device && seat < MODEL_SEATS && !why; seat++)
		if (s->seat[seat].port)
			why = compare_poll(s, seat);
	return why;
}

/* ---- malformed requests ---- */

/* The offset of the flags in each command's structure. */
static const struct shape {
	unsigned int command;
	uint32_t size;
	uint32_t flags;
	bool writer, reader;
} shapes[] = {
#define SHAPE(command, type, writer, reader)                                   \
	{                                                                      \
		command, sizeof(struct type), offsetof(struct type, flags),    \
			writer, reader                                         \
	}
	SHAPE(TENSORARENA_DETACH, tensorarena_detach, true, true),
	SHAPE(TENSORARENA_ACQUIRE, tensorarena_acquire, true, false),
	SHAPE(TENSORARENA_PUBLISH, tensorarena_publish, true, false),
	SHAPE(TENSORARENA_ABORT, tensorarena_slot_ref, true, false),
	SHAPE(TENSORARENA_POPULATE, tensorarena_populate, true, false),
	SHAPE(TENSORARENA_TRIM, tensorarena_trim, true, false),
	SHAPE(TENSORARENA_EVICT, tensorarena_evict, true, false),
	SHAPE(TENSORARENA_STATS, tensorarena_stats, true, false),
	SHAPE(TENSORARENA_RETRACT, tensorarena_retract, true, false),
	SHAPE(TENSORARENA_NEXT, tensorarena_borrow, false, true),
	SHAPE(TENSORARENA_BORROW, tensorarena_borrow, false, true),
	SHAPE(TENSORARENA_RELEASE, tensorarena_slot_ref, false, true),
};

#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static unsigned long resized(unsigned int command, uint32_t size)
{
	return (command & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       (unsigned long)size << _IOC_SIZESHIFT;
}

const char *malformed_op(struct stage *s, uint32_t choice)
{
	const struct shape *shape = &shapes[choice % NR_SHAPES];
	uint8_t bytes[1024] = { 0 };
	uint32_t bad = 0x80000000;
	struct ta_port *port;
	int err, want;
	bool writer;

	choice /= NR_SHAPES;
	port = some_port(s, choice, &writer);
	if (!port || !s->device)
		return NULL;
	choice /= 4;
	if (writer ? !shape->writer : !shape->reader) {
		err = request(file_of(port), shape->command, bytes);
		want = -ENOTTY;
	} else if (choice % 5 == 0) {
		err = request(file_of(port), resized(shape->command, 4), bytes);
		want = -EINVAL;
	} else if (choice % 5 == 1) {
		bytes[shape->size + 3] = 1;
		err = request(file_of(port),
			      resized(shape->command, shape->size + 8), bytes);
		want = -E2BIG;
	} else if (choice % 5 == 2) {
		err = request(file_of(port), shape->command, NULL);
		want = -EFAULT;
	} else if (choice % 5 == 3) {
		err = request(file_of(port),
			      _IOWR(TENSORARENA_IOC_MAGIC, 0x7f, int), bytes);
		want = -ENOTTY;
	} else {
		memcpy(bytes + shape->flags, &bad, sizeof(bad));
		err = request(file_of(port),
			      resized(shape->command, shape->size + 8), bytes);
		want = -EINVAL;
	}
	return err == want ? NULL :
			     disagree(s, "malformed %x: %d, not %d",
				      shape->command, err, want);
}

/* ---- mappings ---- */

static sigjmp_buf no_memory;

static void on_no_memory(int sig)
{
	(void)sig;
	siglongjmp(no_memory, 1);
}

/* Whether a byte can be read: not where no memory has been built. */
static bool can_read(const uint8_t *p)
{
	struct sigaction action = { .sa_handler = on_no_memory }, old;
	volatile bool can = false;

	MUST(!sigaction(SIGBUS, &action, &old));
	if (!sigsetjmp(no_memory, 1)) {
		(void)*(const volatile uint8_t *)p;
		can = true;
	}
	MUST(!sigaction(SIGBUS, &old, NULL));
	return can;
}

static int map_error(bool writer, int prot, int flags, uint64_t bytes,
		     uint64_t size)
{
	/* In this order the kernel asks. */
	if (prot & PROT_WRITE && flags == MAP_SHARED && !writer)
		return EACCES;
	if (prot & PROT_EXEC)
		return EPERM;
	if (flags != MAP_SHARED || bytes > size)
		return EINVAL;
	return 0;
}

const char *mapping_op(struct stage *s, uint32_t choice, bool *good)
{
	static const int prots[] = { PROT_READ, PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_EXEC, PROT_NONE };
	uint64_t size = MODEL_SLOTS * s->made.stride;
	int prot = prots[choice % 4];
	int flags = choice / 4 % 4 ? MAP_SHARED : MAP_PRIVATE;
	uint64_t bytes = choice / 16 % 8 ? s->made.stride : size + 4096;
	uint32_t slot = choice / 128 % MODEL_SLOTS;
	struct ta_port *port;
	const char *why = NULL;
	bool writer, built;
	uint8_t *p;
	int want;

	port = some_port(s, choice / 256, &writer);
	if (!port || !s->device)
		return NULL;
	want = map_error(writer, prot, flags, bytes, size);
	p = mmap(NULL, bytes, prot, flags, file_of(port),
		 bytes > size ? 0 : (off_t)(slot * s->made.stride));
	if ((p == MAP_FAILED ? errno : 0) != want) {
		why = disagree(s, "mmap of %d, %x: %m, not %s", prot, flags,
			       strerror(want));
	} else if (p != MAP_FAILED && prot != PROT_NONE) {
		built = s->w.m.writing[slot].built;
		/* When the writer has gone, idle memory goes as it likes. */
		if (s->writer && can_read(p + 4096) != built)
			why = disagree(s, "slot %u is %sbuilt", slot,
				       built ? "" : "not ");
	}
	if (p != MAP_FAILED)
		MUST(!munmap(p, bytes));
	*good = !want;
	return why;
}

/* ---- another process ---- */

const char *foreign_op(struct stage *s, uint32_t choice)
{
	struct tensorarena_detach args = { 0 };
	struct ta_port *port;
	bool writer;
	int status;
	pid_t pid;

	port = some_port(s, choice, &writer);
	if (!port || !s->device)
		return NULL;
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		_exit(request(file_of(port), TENSORARENA_DETACH, &args) !=
		      -EIO);
	MUST(waitpid(pid, &status, 0) == pid);
	return status ? disagree(s, "a child may detach its parent") : NULL;
}
