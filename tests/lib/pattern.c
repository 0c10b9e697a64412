// SPDX-License-Identifier: MIT
/* Bytes that depend on a seed and on where they stand. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* A cheap, good mix: every bit of the input changes half of the output. */
static uint64_t word_at(uint64_t seed, size_t index)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ULL + index;

	x = (x ^ x >> 31) * 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

void fill_pattern(void *data, size_t nbytes, uint64_t seed)
{
	unsigned char *to = data;
	uint64_t word;
	size_t i;

	for (i = 0; nbytes >= sizeof(word); i++) {
		word = word_at(seed, i);
		memcpy(to, &word, sizeof(word));
		to += sizeof(word);
		nbytes -= sizeof(word);
	}
	word = word_at(seed, i);
	memcpy(to, &word, nbytes);
}

bool is_pattern(const void *data, size_t nbytes, uint64_t seed)
{
	const unsigned char *from = data;
	uint64_t word;
	size_t i;

	for (i = 0; nbytes >= sizeof(word); i++) {
		word = word_at(seed, i);
		if (memcmp(from, &word, sizeof(word)))
			return false;
		from += sizeof(word);
		nbytes -= sizeof(word);
	}
	word = word_at(seed, i);
	return !memcmp(from, &word, nbytes);
}

int put_pattern(struct ta_writer *writer, size_t nbytes, uint64_t seed,
		struct ta_ticket *ticket)
{
	struct ta_tensor tensor = {
		.code = TA_UINT,
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.tag_bytes = sizeof(seed),
		.shape = { (int64_t)nbytes },
	};
	void *data = malloc(nbytes + 1);
	int err;

	if (!data)
		abort();
	memcpy(tensor.tag, &seed, sizeof(seed));
	fill_pattern(data, nbytes, seed);
	err = ta_put(writer, data, nbytes, &tensor, ticket);
	free(data);
	return err;
}

int put_when_free(struct ta_writer *writer, size_t nbytes, uint64_t seed,
		  struct ta_ticket *ticket)
{
	struct pollfd pfd = { 0 };
	int err;

	pfd.fd = ta_writer_poll_fd(writer, &pfd.events);
	if (pfd.fd < 0)
		return pfd.fd;
	for (;;) {
		err = put_pattern(writer, nbytes, seed, ticket);
		if (err != -EAGAIN)
			return err;
		if (poll(&pfd, 1, HANG_MS) < 1)
			return -ETIMEDOUT;
	}
}
