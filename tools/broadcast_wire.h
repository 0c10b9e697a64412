/* SPDX-License-Identifier: MIT */
/*
 * What the engine process and its workers say to each other, over a socket
 * pair that keeps messages whole.  Both ends are the same program.
 *
 *	engine				worker
 *	wire_handle		-->
 *				<--	wire_attached
 *	ta_ticket, each tensor	-->			or wire_tensor, its bytes
 *				<--	wire_seen
 *	hangs up		-->	leaves
 */
#ifndef TARENA_BROADCAST_WIRE_H
#define TARENA_BROADCAST_WIRE_H

#include <stdint.h>

#include <tensorarena.h>

/* Where a worker finds its end of the socket pair. */
#define WIRE_FD 3
/* And of another, a stream, when tensors' bytes are to come over a socket. */
#define WIRE_BYTES_FD 4

/*
 * The handle is a secret, hence not a command line argument.  @number: which
 * worker this is; @gpu: it is to send tensors to a GPU, of @most_bytes at most;
 * @socket: there is no arena, tensors are received.
 */
struct wire_handle {
	char text[TA_HANDLE_MAX];
	uint32_t number;
	uint32_t gpu;
	uint32_t socket;
	uint32_t reserved;
	uint64_t most_bytes;
};

/* A tensor whose bytes come over WIRE_BYTES_FD. */
struct wire_tensor {
	uint64_t nbytes;
	struct ta_tensor tensor;
};

/**
 * struct wire_attached - a worker is there, or why not
 * @err: 0 or what ta_attach() said
 * @seat: its seat
 * @device: the GPU it has, if it is to have one
 * @why: why it cannot have one; empty otherwise
 */
struct wire_attached {
	int32_t err;
	uint32_t seat;
	int32_t device;
	char why[200];
};

/**
 * struct wire_seen - what a worker found in the arena
 * @err: 0 or what the library said; then nothing else counts
 * @reserved: zero
 * @nbytes: size of the view
 * @digest: checksum of its bytes
 * @ms: from the ticket's arrival to having released the view, or to having
 *	checked what arrived on the GPU
 * @h2d_ms: with a GPU: what the copy there took
 * @end_ms: when that ended, on the monotonic clock
 * @pin_ms: what pinning the slot took, so far
 * @view_ms, @release_ms: what ta_view() and ta_release() took; without a GPU
 * @tensor: type and shape of the view
 */
struct wire_seen {
	int32_t err;
	uint32_t reserved;
	uint64_t nbytes;
	uint64_t digest;
	double ms;
	double h2d_ms;
	double end_ms;
	double pin_ms;
	double view_ms;
	double release_ms;
	struct ta_tensor tensor;
};

#endif /* TARENA_BROADCAST_WIRE_H */
