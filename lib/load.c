// SPDX-License-Identifier: MIT
/* The calls that load files, and what may be asked of them. */
#include <errno.h>

#include "load.h"
#include "writer.h"

static int read_range(struct ta_loan *loan, size_t at, int fd, uint64_t offset,
		      size_t nbytes)
{
	struct ta_loader *loader = &((struct loan *)loan)->writer->loader;
	struct ta_load_stats stats = { .loads = 1 };
	struct ta_load_file file;
	struct ta_load_ring ring;
	const struct ta_load_range range = {
		.loader = loader,
		.slot = loan->slot,
		.loan_bytes = loan->nbytes,
		.at = at,
		.file = &file,
		.offset = offset,
		.nbytes = nbytes,
	};
	int err;

	err = ta_load_file_open(&file, fd);
	ta_load_ring_take(loader,
			  !err && file.seekable && nbytes >= TA_LOAD_SMALL,
			  &ring);
	if (!err)
		err = ta_load_read(&range, &ring, &stats);
	stats.failures = err != 0;
	stats.direct_error = file.direct_error;
	ta_loader_count(loader, &stats);
	ta_load_ring_give(loader, &ring);
	ta_load_file_close(&file);
	return err;
}

/* Whether there can be such bytes in a file. */
static bool range_valid(uint64_t offset, uint64_t nbytes)
{
	return offset <= INT64_MAX && nbytes <= INT64_MAX - offset;
}

int ta_load(struct ta_loan *loan, size_t at, int fd, uint64_t offset,
	    size_t nbytes)
{
	struct ta_writer *writer = ((struct loan *)loan)->writer;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	if (at > loan->nbytes || nbytes > loan->nbytes - at ||
	    !range_valid(offset, nbytes))
		return -EINVAL;
	return read_range(loan, at, fd, offset, nbytes);
}

int ta_load_file(struct ta_writer *writer, int fd, uint64_t offset,
		 size_t nbytes, const struct ta_tensor *tensor,
		 struct ta_ticket *ticket)
{
	struct ta_loan *loan;
	uint64_t described;
	int err;

	if (!ta_is_alive(&writer->alive))
		return -EIO;
	/* Better before the file is read than after. */
	if (tensor &&
	    (ta_tensor_nbytes(tensor, &described) || described != nbytes))
		return -EINVAL;
	if (!range_valid(offset, nbytes))
		return -EINVAL;
	err = ta_loan(writer, nbytes, &loan);
	if (err)
		return err;
	err = ta_load(loan, 0, fd, offset, nbytes);
	if (!err) {
		err = ta_commit(loan, nbytes, tensor, ticket);
		/* The loan is gone with the last reader, too. */
		if (!err || err == -ENOTCONN)
			return err;
	}
	ta_abort(loan);
	return err;
}

int ta_load_stats(struct ta_writer *writer, struct ta_load_stats *stats)
{
	if (!ta_is_alive(&writer->alive))
		return -EIO;
	pthread_mutex_lock(&writer->loader.table_lock);
	*stats = writer->loader.stats;
	pthread_mutex_unlock(&writer->loader.table_lock);
	return 0;
}
