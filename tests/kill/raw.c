// SPDX-License-Identifier: MIT
/* See raw.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uapi/tensorarena.h>

#include "lib/handle.h"
#include "raw.h"

#define SLOT_BYTES (2 * MIB)

/**
 * struct scene - an arena of the victim's own, with a reader in it
 * @writer: file
 * @reader: file
 * @made: what CREATE said
 * @joined: what ATTACH said
 * @unseen: what has been published
 * @held: a slot being written
 */
struct scene {
	int writer;
	int reader;
	struct tensorarena_create made;
	struct tensorarena_attach joined;
	struct tensorarena_acquire unseen;
	struct tensorarena_acquire held;
};

static int control(void)
{
	int fd = open(TA_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

static void acquire(int writer, struct tensorarena_acquire *args)
{
	*args = (struct tensorarena_acquire){ .nbytes = SLOT_BYTES };
	MUST(!ioctl(writer, TENSORARENA_ACQUIRE, args));
}

static void set_scene(struct scene *s)
{
	struct tensorarena_publish publish = { .nbytes = SLOT_BYTES };

	s->made = (struct tensorarena_create){
		.slot_bytes = SLOT_BYTES,
		.slots = 4,
		.node = TENSORARENA_NODE_LOCAL,
	};
	MUST(!ioctl(control(), TENSORARENA_CREATE, &s->made));
	s->writer = s->made.fd;
	s->joined = (struct tensorarena_attach){ .arena = s->made.arena };
	memcpy(s->joined.cookie, s->made.cookie, sizeof(s->made.cookie));
	MUST(!ioctl(control(), TENSORARENA_ATTACH, &s->joined));
	s->reader = s->joined.fd;
	acquire(s->writer, &s->unseen);
	publish.slot = s->unseen.slot;
	publish.generation = s->unseen.generation;
	MUST(!ioctl(s->writer, TENSORARENA_PUBLISH, &publish));
	acquire(s->writer, &s->held);
}

/* A reader's file in the director's arena. */
static int join(const struct victim *v)
{
	struct tensorarena_attach args = { 0 };
	struct ta_handle handle;

	MUST(!ta_handle_parse(v->handle, &handle));
	args.arena = handle.arena;
	memcpy(args.cookie, handle.cookie, sizeof(args.cookie));
	MUST(!ioctl(control(), TENSORARENA_ATTACH, &args));
	return args.fd;
}

/* Does not come back. */
static void sleep_in(int fd, unsigned long command, const void *args,
		     size_t size, bool out)
{
	void *page = out ? sleeping_page_to_write(args, size) :
			   sleeping_page(args, size);

	MUST(page);
	ioctl(fd, command, page);
	MUST(!out);
	MUST(false);
}

#define SLEEP_IN(fd, command, args, out)                                       \
	sleep_in(fd, command, &(args), sizeof(args), out)

static void create(struct victim *v, bool out)
{
	struct tensorarena_create args = {
		.slot_bytes = SLOT_BYTES,
		.slots = 4,
		.node = TENSORARENA_NODE_LOCAL,
	};

	(void)v;
	SLEEP_IN(control(), TENSORARENA_CREATE, args, out);
}

static void attach(struct victim *v, bool out)
{
	struct tensorarena_attach args = { 0 };
	struct ta_handle handle;

	MUST(!ta_handle_parse(v->handle, &handle));
	args.arena = handle.arena;
	memcpy(args.cookie, handle.cookie, sizeof(args.cookie));
	SLEEP_IN(control(), TENSORARENA_ATTACH, args, out);
}

static void acquire_slot(struct victim *v, bool out)
{
	struct tensorarena_acquire args = { .nbytes = SLOT_BYTES };
	struct scene s;

	(void)v;
	set_scene(&s);
	SLEEP_IN(s.writer, TENSORARENA_ACQUIRE, args, out);
}

static void publish(struct victim *v, bool out)
{
	struct tensorarena_publish args = { .nbytes = SLOT_BYTES };
	struct scene s;

	set_scene(&s);
	args.slot = s.held.slot;
	args.generation = s.held.generation;
	/* In one of two cases it is the list of readers that does not come. */
	if (!out && random_below(&v->random, 2)) {
		args.readers = (uintptr_t)sleeping_page(NULL, 8);
		args.nr_readers = 1;
		ioctl(s.writer, TENSORARENA_PUBLISH, &args);
	}
	SLEEP_IN(s.writer, TENSORARENA_PUBLISH, args, out);
}

void raw_abort_in(struct victim *v)
{
	struct tensorarena_slot_ref args = { 0 };
	struct scene s;

	(void)v;
	set_scene(&s);
	args.slot = s.held.slot;
	args.generation = s.held.generation;
	SLEEP_IN(s.writer, TENSORARENA_ABORT, args, false);
}

static void retract(struct victim *v, bool out)
{
	struct tensorarena_retract args = { 0 };
	struct scene s;

	(void)v;
	set_scene(&s);
	args.slot = s.unseen.slot;
	args.generation = s.unseen.generation;
	SLEEP_IN(s.writer, TENSORARENA_RETRACT, args, out);
}

static void populate(struct victim *v, bool out)
{
	struct tensorarena_populate args = { .nbytes = SLOT_BYTES, .slots = 3 };
	struct scene s;

	(void)v;
	set_scene(&s);
	SLEEP_IN(s.writer, TENSORARENA_POPULATE, args, out);
}

static void trim(struct victim *v, bool out)
{
	struct tensorarena_trim args = { 0 };
	struct scene s;

	(void)v;
	set_scene(&s);
	SLEEP_IN(s.writer, TENSORARENA_TRIM, args, out);
}

static void evict(struct victim *v, bool out)
{
	struct tensorarena_evict args = { 0 };
	struct scene s;

	(void)v;
	set_scene(&s);
	args.reader = s.joined.reader;
	SLEEP_IN(s.writer, TENSORARENA_EVICT, args, out);
}

static void stats(struct victim *v, bool out)
{
	struct tensorarena_reader_stats row = { 0 };
	struct tensorarena_stats args = { 0 };
	struct scene s;

	set_scene(&s);
	if (out && random_below(&v->random, 2)) {
		args.readers =
			(uintptr_t)sleeping_page_to_write(&row, sizeof(row));
		args.nr_readers = 1;
		args.row_bytes = sizeof(row);
		ioctl(s.writer, TENSORARENA_STATS, &args);
	}
	SLEEP_IN(s.writer, TENSORARENA_STATS, args, out);
}

static void writer_detach(struct victim *v, bool out)
{
	struct tensorarena_detach args = { 0 };
	struct scene s;

	(void)v;
	set_scene(&s);
	SLEEP_IN(s.writer, TENSORARENA_DETACH, args, out);
}

/* Takes the oldest publication; when it returns there is one more to take. */
static void take_first(int reader, struct tensorarena_borrow *args)
{
	struct pollfd pfd = { .fd = reader, .events = POLLIN };

	MUST(poll(&pfd, 1, (int)(HANG_SECONDS * 500)) == 1);
	*args = (struct tensorarena_borrow){ .flags = 0 };
	MUST(!ioctl(reader, TENSORARENA_NEXT, args));
	MUST(poll(&pfd, 1, (int)(HANG_SECONDS * 500)) == 1);
}

static void next(struct victim *v, bool out)
{
	struct tensorarena_borrow args;
	int reader = join(v);

	take_first(reader, &args);
	memset(&args, 0, sizeof(args));
	SLEEP_IN(reader, TENSORARENA_NEXT, args, out);
}

static void borrow(struct victim *v, bool out)
{
	struct tensorarena_borrow args, again = { .flags = 0 };
	int reader = join(v);

	take_first(reader, &args);
	again.ticket = args.ticket;
	SLEEP_IN(reader, TENSORARENA_BORROW, again, out);
}

void raw_release_in(struct victim *v)
{
	struct tensorarena_slot_ref args = { 0 };
	struct tensorarena_borrow held;
	int reader = join(v);

	take_first(reader, &held);
	args.slot = held.ticket.slot;
	args.generation = held.ticket.generation;
	SLEEP_IN(reader, TENSORARENA_RELEASE, args, false);
}

static void reader_detach(struct victim *v, bool out)
{
	struct tensorarena_detach args = { 0 };
	struct tensorarena_borrow held;
	int reader = join(v);

	take_first(reader, &held);
	SLEEP_IN(reader, TENSORARENA_DETACH, args, out);
}

#define RAW(name, function)                                                    \
	void name##_in(struct victim *v)                                       \
	{                                                                      \
		function(v, false);                                            \
	}                                                                      \
	void name##_out(struct victim *v)                                      \
	{                                                                      \
		function(v, true);                                             \
	}

RAW(raw_create, create)
RAW(raw_attach, attach)
RAW(raw_acquire, acquire_slot)
RAW(raw_publish, publish)
RAW(raw_retract, retract)
RAW(raw_populate, populate)
RAW(raw_trim, trim)
RAW(raw_evict, evict)
RAW(raw_stats, stats)
RAW(raw_writer_detach, writer_detach)
RAW(raw_next, next)
RAW(raw_borrow, borrow)
RAW(raw_reader_detach, reader_detach)
