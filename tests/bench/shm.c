// SPDX-License-Identifier: MIT
/*
 * A POSIX shared memory segment and one memcpy: what one writes oneself in an
 * afternoon.  One tensor at a time, nobody notices who dies, and it is pageable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus.h"

/**
 * struct segment - an end's state
 * @bus: where the readers are told
 * @data: the mapping
 * @note: what they are told
 */
struct segment {
	void *bus;
	void *data;
	struct note note;
};

static void name_of(const struct end *end, char *name, size_t size)
{
	/* The directory's last part is this run's own. */
	snprintf(name, size, "/%s-%u", strrchr(end->dir, '/') + 1, end->group);
}

static struct segment *map(const struct end *end, int flags, int prot)
{
	struct segment *s = calloc(1, sizeof(*s));
	char name[64];
	int fd;

	name_of(end, name, sizeof(name));
	fd = shm_open(name, flags, 0600);
	if (!s || fd < 0)
		die("shm_open", errno);
	if (flags & O_CREAT && ftruncate(fd, (off_t)end->max_bytes))
		die("ftruncate", errno);
	s->data = mmap(NULL, end->max_bytes, prot, MAP_SHARED, fd, 0);
	if (s->data == MAP_FAILED)
		die("mmap", errno);
	close(fd);
	return s;
}

static void open_writer(struct end *end)
{
	struct segment *s =
		map(end, O_RDWR | O_CREAT | O_EXCL, PROT_READ | PROT_WRITE);

	s->bus = bus_bind(end);
	end->state = s;
}

static void meet(struct end *end)
{
	struct segment *s = end->state;
	char name[64];

	bus_meet(end, s->bus);
	/* All have it mapped; now nothing can be left behind. */
	name_of(end, name, sizeof(name));
	shm_unlink(name);
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	struct segment *s = end->state;

	memcpy(s->data, src, nbytes);
	s->note.nbytes = nbytes;
}

static void announce(struct end *end)
{
	struct segment *s = end->state;

	bus_tell(s->bus, &s->note);
}

static void open_reader(struct end *end)
{
	struct segment *s = map(end, O_RDONLY, PROT_READ);

	s->bus = bus_connect(end);
	end->state = s;
}

static void take(struct end *end, struct bytes *bytes)
{
	struct segment *s = end->state;

	bus_hear(s->bus, &s->note);
	*bytes = (struct bytes){ s->data, s->note.nbytes, NULL };
}

static void drop(struct end *end, struct bytes *bytes)
{
	(void)end;
	(void)bytes;
}

static void close_end(struct end *end)
{
	struct segment *s = end->state;

	bus_close(s->bus);
}

const struct contender contender_shm = {
	.name = "shm",
	.about = "POSIX shared memory and one memcpy(), pageable",
	.copies_put = 1,
	.copies_gpu = 1,
	.open_writer = open_writer,
	.meet = meet,
	.put = put,
	.announce = announce,
	.close_writer = close_end,
	.open_reader = open_reader,
	.take = take,
	.drop = drop,
	.close_reader = close_end,
};
