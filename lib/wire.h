/* SPDX-License-Identifier: MIT */
/*
 * The embedded engine's wire: what a reader's process and the thread in the
 * writer's process say to each other over a SOCK_SEQPACKET socket.
 *
 * A request is a header and the uAPI structure of its command; the answer is
 * a header with the result and the structure with its out fields filled in.
 * Sizes are extensible as they are in the module: the size of the structure
 * travels in the command number, and the answer is as long as the request.
 * A connection has one request under way at a time.  Answers carry the
 * request's id, so that one meant for somebody else (a forked child wrote to
 * the socket it inherited) is recognised and dropped.
 *
 * Descriptors that travel with a message:
 *	ATTACH, request	a pidfd of the reader's process
 *	ATTACH, answer	TA_WIRE_ATTACH_FDS, see below
 *	NEXT, BORROW and MEMORY, answer
 *			the slot's memory, when the reader does not have it yet
 *			or it has changed
 */
#ifndef TA_WIRE_H
#define TA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <uapi/tensorarena.h>

/* On a little-endian machine; the digit is this format's version. */
#define TA_WIRE_MAGIC ('T' | 'A' << 8 | 'W' << 16 | (uint32_t)'3' << 24)

/* More than any structure now, so that longer ones can be answered. */
#define TA_WIRE_PAYLOAD_MAX 4096

/* Most descriptors a message may carry. */
#define TA_WIRE_MAX_FDS 3

/* What the answer to ATTACH carries. */
enum ta_wire_attach_fds {
	TA_WIRE_FD_POLL, /* an epoll descriptor: "something to NEXT" */
	TA_WIRE_FD_RELEASED, /* memory: struct ta_wire_released */
	TA_WIRE_FD_WRITER, /* a pidfd of the writer's process */
	TA_WIRE_ATTACH_FDS,
};

/* Answer flag: ask for TA_WIRE_STALE, some slots' memory was given up. */
#define TA_WIRE_HAS_STALE 0x1u

/**
 * struct ta_wire_header - starts every message
 * @magic: TA_WIRE_MAGIC
 * @command: TENSORARENA_* or TA_WIRE_*, with the size of what follows
 * @result: answer: 0 or -errno; request: zero
 * @flags: answer: TA_WIRE_HAS_STALE; request: zero
 * @id: the sender's number for this request, not 0
 */
struct ta_wire_header {
	uint32_t magic;
	uint32_t command;
	int32_t result;
	uint32_t flags;
	uint64_t id;
};

/**
 * struct ta_wire_stale - slots whose memory the writer has given up
 * @mask: out: one bit a slot; the reader's mapping of it is all that keeps the
 *	memory, and is to go
 */
struct ta_wire_stale {
	uint64_t mask[TENSORARENA_MAX_SLOTS / 64];
};

/**
 * struct ta_wire_observe - what an arena looks like, for who takes no seat
 * @arena: in: its id
 * @cookie: in: its secret; out: zero
 * @flags: in: zero
 * @arena_flags: out: TENSORARENA_CREATE_*
 * @slot_bytes: out: largest tensor
 * @stride: out: distance of slots
 * @writer_pid: out: the writer's process, as it sees itself
 * @nr_rows: out: open seats
 * @st: out: as STATS, but for the fields about rows
 * @rows: out: one for each open seat
 */
struct ta_wire_observe {
	uint64_t arena;
	uint8_t cookie[TENSORARENA_COOKIE_BYTES];
	uint32_t flags;
	uint32_t arena_flags;
	uint64_t slot_bytes;
	uint64_t stride;
	int32_t writer_pid;
	uint32_t nr_rows;
	struct tensorarena_stats st;
	struct tensorarena_reader_stats rows[TENSORARENA_MAX_READERS];
};

/* What is here is not only added to: a change takes a new TA_WIRE_MAGIC. */
_Static_assert(sizeof(struct ta_wire_observe) == 2264 &&
		       offsetof(struct ta_wire_observe, rows) == 216,
	       "the wire format is version 3");

/**
 * struct ta_wire_released - what a reader has released without a message; memory
 *	that the reader writes and the writer's process reads
 * @generation: of each slot, the last that was released so, 0: none
 *
 * To write a slot's generation here is a RELEASE, as soon as anybody in the
 * writer's process needs to know.
 */
struct ta_wire_released {
	uint64_t generation[TENSORARENA_MAX_SLOTS];
};

struct ta_wire_message {
	struct ta_wire_header header;
	union {
		struct tensorarena_attach attach;
		struct tensorarena_borrow borrow;
		struct tensorarena_slot_ref ref;
		struct tensorarena_detach detach;
		struct ta_wire_observe observe;
		uint8_t bytes[TA_WIRE_PAYLOAD_MAX];
	};
};

/*
 * Commands that only the two ends of this engine know.  UNSEE: a publication
 * that NEXT returned could not be mapped, and is to come again.  MEMORY: the
 * memory that a slot has now, whatever is published there.  OBSERVE: instead of
 * ATTACH, any number of times.  RELEASED: have a look at struct ta_wire_released;
 * it has no answer.
 */
#define TA_WIRE_UNSEE                                                          \
	_IOW(TENSORARENA_IOC_MAGIC, 0x40, struct tensorarena_slot_ref)
#define TA_WIRE_STALE _IOR(TENSORARENA_IOC_MAGIC, 0x41, struct ta_wire_stale)
#define TA_WIRE_MEMORY                                                         \
	_IOW(TENSORARENA_IOC_MAGIC, 0x42, struct tensorarena_slot_ref)
#define TA_WIRE_OBSERVE                                                        \
	_IOWR(TENSORARENA_IOC_MAGIC, 0x43, struct ta_wire_observe)
#define TA_WIRE_RELEASED _IO(TENSORARENA_IOC_MAGIC, 0x44)

/**
 * struct ta_wire_parcel - what came with a message
 * @creds: who sent it; only on sockets with SO_PASSCRED, else pid 0, uid -1
 * @fds: descriptors, O_CLOEXEC, the receiver's to close
 * @nr_fds: how many
 * @lost_fds: some did not fit the descriptor table or were too many
 */
struct ta_wire_parcel {
	struct ucred creds;
	int fds[TA_WIRE_MAX_FDS];
	uint32_t nr_fds;
	bool lost_fds;
};

/*
 * Sends a message of header.command's size.  Never waits, raises no SIGPIPE.
 *
 * @say_who: send our effective ids; otherwise the receiver sees the real ones.
 *
 * -EAGAIN: the receiver does not keep up.  -EPIPE: there is none.
 * -ETOOMANYREFS and others: this message could not be sent.
 */
int ta_wire_send(int sock, const struct ta_wire_message *msg, const int *fds,
		 uint32_t nr_fds, bool say_who);
/*
 * Receives a message.  Never waits.  -EAGAIN: none is there.  -EPIPE: the
 * other end is gone.  -EPROTO: not a message of this format.
 */
int ta_wire_recv(int sock, struct ta_wire_message *msg,
		 struct ta_wire_parcel *parcel);
/* Closes the descriptors that nobody has taken out (set to -1). */
void ta_wire_discard(struct ta_wire_parcel *parcel);

/* Bytes of the structure that follows a header. */
static inline size_t ta_wire_payload(uint32_t command)
{
	return _IOC_SIZE(command);
}

#endif /* TA_WIRE_H */
