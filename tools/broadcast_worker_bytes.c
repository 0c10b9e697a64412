// SPDX-License-Identifier: MIT
/*
 * A worker without an arena: it receives tensors over a socket, into memory of its
 * own.  That memory is there from the beginning, which is kinder than what most
 * programs do.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "broadcast_baseline.h"
#include "broadcast_worker.h"
#include "checksum.h"
#include "clock.h"
#include "tarena.h"

/* All of them: 0, or -1 when the engine process is gone. */
static int receive(char *bytes, uint64_t nbytes)
{
	ssize_t n;

	while (nbytes) {
		n = recv(WIRE_BYTES_FD, bytes, nbytes, 0);
		if (!n || (n < 0 && errno != EINTR))
			return -1;
		if (n > 0) {
			bytes += n;
			nbytes -= (uint64_t)n;
		}
	}
	return 0;
}

/* -1: the engine process is gone. */
static int look(struct gpu *gpu, void *bytes, const struct wire_tensor *tensor,
		struct wire_seen *seen)
{
	struct gpu_seen there = { 0 };
	double start = clock_ms();
	struct reason why;

	memset(seen, 0, sizeof(*seen));
	seen->nbytes = tensor->nbytes;
	seen->tensor = tensor->tensor;
	if (receive(bytes, tensor->nbytes))
		return -1;
	if (!gpu) {
		seen->digest = checksum(bytes, tensor->nbytes);
	} else if (gpu_look_at(gpu, bytes, tensor->nbytes, &there, &why)) {
		complain("%s", why.text);
		seen->err = -EREMOTEIO;
	}
	if (gpu)
		seen->digest = there.digest;
	seen->h2d_ms = there.h2d_ms;
	seen->end_ms = there.end_ms;
	seen->ms = clock_ms() - start;
	return 0;
}

int worker_receive(struct gpu *gpu, uint64_t most_bytes)
{
	struct wire_tensor tensor;
	struct wire_seen seen;
	void *bytes;

	bytes = baseline_buffer(most_bytes);
	if (!bytes) {
		complain("a worker has no memory to receive into");
		return EXIT_FAILED;
	}
	while (!worker_get(&tensor, sizeof(tensor))) {
		if (tensor.nbytes > most_bytes ||
		    look(gpu, bytes, &tensor, &seen) ||
		    worker_answer(&seen, sizeof(seen)))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}
