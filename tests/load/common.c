// SPDX-License-Identifier: MIT
/* See common.h. */
#include <stdio.h>
#include <string.h>

#include "common.h"

int scene_open(struct scene *s)
{
	struct ta_options o;

	ta_options_init(&o);
	o.engine = TA_ENGINE_EMBEDDED;
	o.slots = 1;
	o.slot_bytes = SCENE_BYTES;
	o.seats = 1;
	CHECK(!ta_create(&o, &s->writer, NULL, 0));
	CHECK(!ta_loan(s->writer, SCENE_BYTES, &s->loan));
	return 0;
}

void scene_close(struct scene *s)
{
	ta_writer_close(s->writer);
}

int scene_load(struct scene *s, size_t at, int fd, uint64_t offset,
	       size_t nbytes)
{
	uint8_t *data = s->loan->data;
	int err;

	file_evict(&s->file);
	memset(data, 0xee, SCENE_BYTES);
	err = ta_load(s->loan, at, fd, offset, nbytes);
	if (err)
		printf("# %zu bytes at %llu to %zu: %s\n", nbytes,
		       (unsigned long long)offset, at, ta_strerror(err));
	CHECK(!err);
	CHECK(!memcmp(data + at, s->file.bytes + offset, nbytes));
	CHECK(!at || data[at - 1] == 0xee);
	CHECK(at + nbytes == SCENE_BYTES || data[at + nbytes] == 0xee);
	return 0;
}

int scene_load_all(struct scene *s, int fd)
{
	static const struct {
		size_t at;
		uint64_t offset;
		size_t nbytes;
	} range[] = {
		{ 0, 0, SCENE_BYTES }, { 0, 512, 4 * MIB },
		{ 8, 8, 5 * MIB + 3 }, { 1, 7, 3 * MIB + 1 },
		{ 4096, 100, MIB },    { 13, 4096, 700 * KIB },
		{ 5, 5, 100 * KIB },   { 0, SCENE_BYTES - 5, 5 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(range); i++)
		CHECK(!scene_load(s, range[i].at, fd, range[i].offset,
				  range[i].nbytes));
	return 0;
}

struct ta_load_stats scene_stats(struct scene *s)
{
	struct ta_load_stats st = { 0 };

	ta_load_stats(s->writer, &st);
	return st;
}
