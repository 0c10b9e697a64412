// SPDX-License-Identifier: MIT
/*
 * A reader of the embedded engine and a server that answers what it likes.  The
 * answers wait in the socket before the reader asks; when there is none, the
 * writer is dead.
 *
 * The input is a list of calls with the answers they get: good ones, some words
 * of which the input changes.  Whatever a view was said to hold has to be there
 * until it is released.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib/embedded.h"
#include "lib/pidfd.h"
#include "send.h"

#define ARENA 77
#define SLOTS 2
#define MIB (1024 * 1024ull)

/* What may come along with an answer; -1: nothing. */
enum descriptor {
	FD_MEMORY,
	FD_OTHER_MEMORY,
	FD_UNSEALED,
	FD_SHORT,
	FD_PIPE,
	FD_POLL,
	FD_WRITER,
	FD_ZERO,
	NR_FDS,
};

static int fds[NR_FDS];
static int server;
static uint64_t asked;
static struct ta_port *port;

/* What the reader holds, by slot. */
static struct tensorarena_borrow held[TENSORARENA_MAX_SLOTS];

static int make_memory(off_t bytes, int seals)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, bytes) &&
	     !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* A process that is dead for everybody to see. */
static int make_dead_writer(void)
{
	pid_t pid = fork();
	int fd;

	MUST(pid >= 0);
	if (!pid)
		_exit(0);
	fd = ta_pidfd_open(pid);
	MUST(fd >= 0 && waitpid(pid, NULL, 0) == pid);
	return fd;
}

static void make_fds(void)
{
	int pipe_fds[2];

	if (fds[FD_MEMORY])
		return;
	MUST(!pipe2(pipe_fds, O_CLOEXEC));
	fds[FD_MEMORY] = make_memory(2 * MIB, F_SEAL_SHRINK);
	fds[FD_OTHER_MEMORY] = make_memory(2 * MIB, F_SEAL_SHRINK);
	fds[FD_UNSEALED] = make_memory(2 * MIB, 0);
	fds[FD_SHORT] = make_memory(4096, F_SEAL_SHRINK);
	fds[FD_PIPE] = pipe_fds[0];
	fds[FD_WRITER] = make_dead_writer();
	fds[FD_ZERO] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	MUST(fds[FD_ZERO] >= 0);
}

/* ---- the server ---- */

static const uint32_t commands[] = {
	TENSORARENA_ATTACH,  TENSORARENA_NEXT,	 TENSORARENA_BORROW,
	TENSORARENA_RELEASE, TENSORARENA_DETACH, TA_WIRE_UNSEE,
	TA_WIRE_STALE,	     TA_WIRE_MEMORY,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* The good answer to a command; returns how many descriptors belong to it. */
static unsigned int fill_answer(struct ta_wire_message *msg, uint32_t command,
				uint8_t what, int *send)
{
	msg->header.magic = TA_WIRE_MAGIC;
	msg->header.command = command;
	switch (command) {
	case TENSORARENA_ATTACH:
		msg->attach.slot_bytes = 2 * MIB;
		msg->attach.stride = 2 * MIB;
		msg->attach.slots = SLOTS;
		msg->attach.reader = 1;
		send[TA_WIRE_FD_POLL] = fds[FD_POLL];
		/* As good as any page of memory. */
		send[TA_WIRE_FD_RELEASED] = fds[FD_SHORT];
		send[TA_WIRE_FD_WRITER] = fds[FD_WRITER];
		return TA_WIRE_ATTACH_FDS;
	case TENSORARENA_NEXT:
	case TENSORARENA_BORROW:
		msg->borrow.ticket.arena = ARENA;
		msg->borrow.ticket.generation = 1 + (what >> 1 & 1);
		msg->borrow.ticket.nbytes = what & 4 ? 5000 : 10;
		msg->borrow.ticket.slot = what & 1;
		send[0] = fds[FD_MEMORY];
		return !(what & 8);
	case TA_WIRE_STALE:
		msg->bytes[0] = what;
		msg->header.flags = 0;
		return 0;
	case TA_WIRE_MEMORY:
		send[0] = fds[FD_OTHER_MEMORY];
		return 1;
	}
	return 0;
}

/* Changes up to three words, the length, the descriptors. */
static void answer(struct bytes *in, uint64_t id, uint32_t expected)
{
	struct ta_wire_message msg;
	int send[SEND_MAX_FDS] = { 0 };
	uint8_t how = take_u8(in), what = take_u8(in);
	uint32_t command = expected;
	unsigned int nr, n;
	size_t size;

	memset(&msg, 0, sizeof(msg));
	if (how & 4)
		command = commands[what / 16 % NR_COMMANDS];
	nr = fill_answer(&msg, command, what, send);
	msg.header.id = id;
	if (how & 8)
		msg.header.flags = TA_WIRE_HAS_STALE;
	for (n = 0; n < (how & 3); n++) {
		size_t at = take_u8(in) % (sizeof(msg.header) + 72) & ~3u;

		take(in, (uint8_t *)&msg + at, 4);
	}
	if (how & 0x10) {
		nr = take_u8(in) % (TA_WIRE_MAX_FDS + 2);
		for (n = 0; n < nr; n++)
			send[n] = fds[take_u8(in) % NR_FDS];
	}
	size = sizeof(msg.header) + ta_wire_payload(msg.header.command);
	if (how & 0x20)
		size = take_u8(in) * 5u;
	if (size > sizeof(msg))
		size = sizeof(msg);
	send_bytes(server, &msg, size, send, nr);
}

/* Takes what the reader has asked so far, to know the number of its next. */
static void drain(void)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;

	while (!ta_wire_recv(server, &msg, &parcel)) {
		asked = msg.header.id;
		ta_wire_discard(&parcel);
	}
}

/* What a call may lead to: the answer to it, to STALE, to UNSEE. */
static void answer_ahead(struct bytes *in, uint32_t command)
{
	const uint32_t expected[] = { command, TA_WIRE_STALE, TA_WIRE_UNSEE };
	unsigned int nr = take_u8(in) & 3, i;

	drain();
	for (i = 0; i < nr; i++)
		answer(in, asked + 1 + i, expected[i]);
}

/* ---- the reader ---- */

static void look_at_held(void)
{
	unsigned int slot;
	uint64_t i;

	for (slot = 0; slot < TENSORARENA_MAX_SLOTS; slot++) {
		const struct tensorarena_ticket *t = &held[slot].ticket;
		const volatile uint8_t *data = port->base + held[slot].offset;

		if (!t->generation)
			continue;
		for (i = 0; i < t->nbytes; i += 4096)
			(void)data[i];
		if (t->nbytes)
			(void)data[t->nbytes - 1];
	}
}

static void next_or_borrow(struct bytes *in, uint32_t cmd, uint8_t what)
{
	struct tensorarena_borrow b = { 0 };

	b.ticket.arena = cmd == TENSORARENA_BORROW ? ARENA : 0;
	b.ticket.generation = 1 + (what >> 1 & 1);
	b.ticket.nbytes = what & 4 ? 5000 : 10;
	b.ticket.slot = what & 1;
	if (cmd == TENSORARENA_NEXT)
		memset(&b.ticket, 0, sizeof(b.ticket));
	answer_ahead(in, cmd);
	if (port->ops->call(port, cmd, &b))
		return;
	MUST(b.ticket.slot < TENSORARENA_MAX_SLOTS);
	MUST(b.offset <= port->bytes &&
	     b.ticket.nbytes <= port->bytes - b.offset);
	MUST(b.meta_bytes <= TENSORARENA_META_BYTES);
	MUST(!held[b.ticket.slot].ticket.generation ||
	     held[b.ticket.slot].ticket.generation == b.ticket.generation);
	held[b.ticket.slot] = b;
}

static void release(struct bytes *in, uint8_t what)
{
	struct tensorarena_slot_ref ref = {
		.generation = 1 + (what >> 1 & 1),
		.slot = what & 1,
	};

	if (held[ref.slot].ticket.generation == ref.generation)
		memset(&held[ref.slot], 0, sizeof(held[ref.slot]));
	answer_ahead(in, TENSORARENA_RELEASE);
	port->ops->call(port, TENSORARENA_RELEASE, &ref);
}

static void detach(struct bytes *in)
{
	struct tensorarena_detach args = { 0 };

	answer_ahead(in, TENSORARENA_DETACH);
	if (!port->ops->call(port, TENSORARENA_DETACH, &args))
		memset(held, 0, sizeof(held));
}

static void call(struct bytes *in)
{
	uint8_t what = take_u8(in);

	switch (what >> 4 & 7) {
	case 0:
	case 1:
	case 2:
		next_or_borrow(in, TENSORARENA_NEXT, what);
		break;
	case 3:
	case 4:
		next_or_borrow(in, TENSORARENA_BORROW, what);
		break;
	case 5:
		release(in, what);
		break;
	case 6:
		answer_ahead(in, TA_WIRE_MEMORY);
		port->ops->map(port, what & 1);
		break;
	case 7:
		detach(in);
		break;
	}
	look_at_held();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { .at = data, .left = size };
	const struct ta_handle handle = {
		.engine = TA_ENGINE_EMBEDDED,
		.arena = ARENA,
	};
	struct tensorarena_attach args = { 0 };
	int pair[2], before;

	make_fds();
	memset(held, 0, sizeof(held));
	asked = 0;
	before = next_fd();
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	server = pair[0];
	/* The reader adds to it what it watches, so each has its own. */
	fds[FD_POLL] = epoll_create1(EPOLL_CLOEXEC);
	answer_ahead(&in, TENSORARENA_ATTACH);
	if (!ta_embedded_attach(&handle, pair[1], &args, &port)) {
		while (in.left)
			call(&in);
		port->ops->close(port, false);
	} else {
		close(pair[1]);
	}
	close(fds[FD_POLL]);
	close(server);
	MUST(next_fd() == before);
	return 0;
}
