// SPDX-License-Identifier: MIT
/* What an error number means here. */
#include <errno.h>
#include <string.h>

#include <tensorarena.h>

static const struct {
	int err;
	const char *text;
} sentences[] = {
	{ 0, "success" },
	{ EINVAL, "the request is malformed: an option, range, descriptor or "
		  "handle that cannot be" },
	{ E2BIG, "the request uses a feature that this engine is too old for" },
	{ EFAULT, "memory passed to the engine is not accessible" },
	{ ENOTTY, "not a tensorarena device, or not a command of this end" },
	{ EOPNOTSUPP, "this engine cannot honour a flag or call" },
	{ EAGAIN, "no slot is free, or nothing has been published yet" },
	{ EMSGSIZE, "the tensor is larger than a slot" },
	{ ENOMEM, "not enough memory for the arena or one of its slots" },
	{ EDQUOT, "a limit of the tensorarena module would be exceeded" },
	{ ENOTCONN, "no reader is there to get the tensor" },
	{ ESTALE, "the ticket, loan or reader id is no longer current" },
	{ ENXIO, "the publication was not addressed to this reader" },
	{ EUSERS, "every seat of the arena is taken" },
	{ EACCES, "no arena with this id and cookie, or no permission" },
	{ EPERM, "no permission" },
	{ EPIPE, "the writer is gone and nothing is left to read" },
	{ ECONNREFUSED, "the writer is gone" },
	{ EOWNERDEAD, "this reader was evicted by the writer" },
	{ ESHUTDOWN, "this reader or writer has detached" },
	{ EIO, "the object belongs to another process (a forked child must "
	       "attach for itself), or a file could not be read" },
	{ EBUSY, "slots could not be freed because their pages are pinned" },
	{ EINTR, "interrupted by a signal" },
	{ EPROTO, "the publication does not carry a tensor" },
	{ EOVERFLOW, "the tensor's size exceeds what can be counted" },
	{ ENODEV, "this process has no CUDA context" },
	{ EINPROGRESS, "the stream is being captured into a graph, which would "
		       "hold the slot for ever" },
	{ EREMOTEIO, "a CUDA call failed; the statistics have its name" },
	{ ENODATA, "the file ends before the bytes that were asked for" },
	{ EBADF, "the descriptor is not open, or not for reading" },
	{ EISDIR, "a directory has no bytes to load" },
	{ ESPIPE, "the descriptor cannot be read at an offset" },
	{ EADDRINUSE, "the socket path is taken" },
	{ ENOENT, "the tensorarena device node, or the writer's socket, does "
		  "not exist" },
};

const char *ta_strerror(int err)
{
	/* Negated as unsigned: there is no positive INT_MIN. */
	int number = err < 0 ? (int)-(unsigned int)err : err;
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (sentences[i].err == number)
			return sentences[i].text;
	text = number < 0 ? NULL : strerrordesc_np(number);
	return text ? text : "unknown error";
}

bool ta_is_decline(int err)
{
	switch (err) {
	case -EAGAIN:
	case -EMSGSIZE:
	case -ENOMEM:
	case -EDQUOT:
	case -ENOTCONN:
		return true;
	default:
		return false;
	}
}
