// SPDX-License-Identifier: MIT
/*
 * Opening and reading a file exactly.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "input_kinds.h"
#include "stop.h"

/* Between looks at the stop descriptor: a few milliseconds of reading. */
#define CHUNK_BYTES (16UL << 20)

static int check_regular(const struct stat *st, struct reason *why)
{
	if (S_ISDIR(st->st_mode))
		return reason_set(why, "is a directory");
	if (!S_ISREG(st->st_mode))
		return reason_set(why, "is not a regular file");
	if (!st->st_size)
		return reason_set(why, "is empty");
	return 0;
}

int input_file_open(struct input *in, const char *path, struct reason *why)
{
	struct stat st;

	/* O_NONBLOCK, or opening a pipe would wait for somebody to write. */
	in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (in->fd < 0)
		return reason_set(why, "cannot be opened: %s", strerror(errno));
	if (fstat(in->fd, &st)) {
		reason_set(why, "cannot be examined: %s", strerror(errno));
		goto err_close;
	}
	if (check_regular(&st, why))
		goto err_close;
	in->file_bytes = st.st_size;
	return 0;

err_close:
	close(in->fd);
	return -1;
}

int input_file_read(const struct input *in, void *dst, uint64_t offset,
		    uint64_t nbytes, int stop, struct reason *why)
{
	uint8_t *to = dst;

	while (nbytes) {
		size_t want = nbytes < CHUNK_BYTES ? nbytes : CHUNK_BYTES;
		ssize_t got = pread(in->fd, to, want, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return reason_set(why, "cannot be read: %s",
					  strerror(errno));
		if (!got)
			return reason_set(why, "became shorter while being "
					       "read");
		if (stop_requested(stop))
			return reason_set(why, "interrupted");
		to += got;
		offset += got;
		nbytes -= got;
	}
	return 0;
}

int input_file_checksum(const struct input *in, uint64_t offset,
			uint64_t nbytes, int stop, uint64_t *digest,
			struct reason *why)
{
	struct checksum_state *state = checksum_begin();
	uint8_t *chunk = malloc(CHUNK_BYTES);
	int err = 0;

	if (!state || !chunk)
		err = reason_set(why, "no memory to read it");
	while (nbytes && !err) {
		size_t n = nbytes < CHUNK_BYTES ? nbytes : CHUNK_BYTES;

		err = input_file_read(in, chunk, offset, n, stop, why);
		if (!err)
			checksum_add(state, chunk, n);
		offset += n;
		nbytes -= n;
	}
	free(chunk);
	if (state)
		*digest = checksum_end(state);
	return err;
}
