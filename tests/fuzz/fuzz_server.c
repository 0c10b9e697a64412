// SPDX-License-Identifier: MIT
/*
 * The embedded engine's server, on one thread: peers send what they like while
 * the writer goes on writing.  The socket that peers connect to by name and the
 * thread are left out; instead the target hands over connections and lets the
 * server serve them one message at a time.
 *
 * The input is a list of steps.  Afterwards every peer hangs up, and every slot
 * that was published has to be free.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "lib/embedded.h"
#include "lib/memory_check.h"
#include "lib/pidfd.h"
#include "send.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PEERS 3
#define SLOTS 2
#define MIB (1024 * 1024ull)

/* The peer's end of a connection, -1: not connected. */
static int sock[PEERS];
static struct ta_peer *peer[PEERS];
static struct ta_embedded *engine;
static uint32_t slot_written;
static uint64_t generation_written;

/* ---- the parts that are left out ---- */

int __real_madvise(void *addr, size_t length, int advice);
int __wrap_madvise(void *addr, size_t length, int advice);

/* Memory comes when it is touched: otherwise most of the time goes there. */
int __wrap_madvise(void *addr, size_t length, int advice)
{
	if (advice == MADV_POPULATE_WRITE)
		return 0;
	return __real_madvise(addr, length, advice);
}

int ta_memory_headroom(uint64_t *bytes, char *why, size_t why_size)
{
	(void)why;
	(void)why_size;
	*bytes = UINT64_MAX;
	return 0;
}

int ta_server_start(struct ta_embedded *e)
{
	engine = e;
	return 0;
}

void ta_server_stop(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < TA_MAX_PEERS; i++)
		if (e->peers[i].state != TA_PEER_UNUSED)
			ta_peer_close(e, &e->peers[i]);
	ta_peers_reap(e);
}

int ta_server_connect(struct ta_embedded *e)
{
	(void)e;
	return -EOPNOTSUPP;
}

/* ---- peers ---- */

static void connect_peer(unsigned int i)
{
	int pair[2], one = 1;
	uint32_t at;

	if (sock[i] >= 0)
		return;
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	for (at = 0; engine->peers[at].state != TA_PEER_UNUSED; at++)
		;
	ta_peer_add(engine, pair[0], false);
	MUST(engine->peers[at].state == TA_PEER_WAITING);
	peer[i] = &engine->peers[at];
	sock[i] = pair[1];
}

/* Peers that the server has closed hang up as well, and may come again. */
static void reap(void)
{
	unsigned int i;

	for (i = 0; i < PEERS; i++) {
		if (sock[i] < 0 || peer[i]->state != TA_PEER_CLOSED)
			continue;
		close(sock[i]);
		sock[i] = -1;
	}
	ta_peers_reap(engine);
}

static void hang_up_peer(unsigned int i)
{
	if (sock[i] < 0)
		return;
	shutdown(sock[i], SHUT_RDWR);
	while (peer[i]->state != TA_PEER_CLOSED)
		ta_peer_serve(engine, peer[i]);
	reap();
}

static void check_answer(const struct ta_wire_message *msg,
			 struct ta_wire_parcel *parcel)
{
	MUST(msg->header.result <= 0 && msg->header.result >= -4095);
	MUST(!(msg->header.flags & ~TA_WIRE_HAS_STALE));
	/* The memory of slots cannot be written to. */
	if (msg->header.command == TENSORARENA_NEXT && parcel->nr_fds)
		MUST(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			  parcel->fds[0], 0) == MAP_FAILED);
	ta_wire_discard(parcel);
}

static void read_answers(unsigned int i)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;

	if (sock[i] < 0)
		return;
	while (!ta_wire_recv(sock[i], &msg, &parcel))
		check_answer(&msg, &parcel);
}

/* The commands there are, to be met now and then. */
static const uint32_t commands[] = {
	TENSORARENA_ATTACH,  TENSORARENA_NEXT,	 TENSORARENA_BORROW,
	TENSORARENA_RELEASE, TENSORARENA_DETACH, TA_WIRE_UNSEE,
	TA_WIRE_STALE,	     TA_WIRE_MEMORY,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* What a good request would say; the input changes some of it. */
static void fill_request(struct ta_wire_message *msg, uint8_t what)
{
	const struct ta_slot *slot = &engine->slots.slot[what % SLOTS];

	msg->header.magic = TA_WIRE_MAGIC;
	msg->header.command = commands[what / SLOTS % NR_COMMANDS];
	msg->header.id = 1;
	switch (msg->header.command) {
	case TENSORARENA_ATTACH:
		msg->attach.arena = engine->arena;
		memcpy(msg->attach.cookie, engine->cookie,
		       sizeof(msg->attach.cookie));
		break;
	case TENSORARENA_BORROW:
		msg->borrow.ticket.arena = engine->arena;
		msg->borrow.ticket.generation = slot->generation;
		msg->borrow.ticket.nbytes = slot->nbytes;
		msg->borrow.ticket.slot = what % SLOTS;
		break;
	case TENSORARENA_RELEASE:
	case TA_WIRE_UNSEE:
	case TA_WIRE_MEMORY:
		msg->ref.generation = slot->generation;
		msg->ref.slot = what % SLOTS;
		break;
	}
}

/* Descriptors of any kind; @fds are the caller's to close. */
static unsigned int make_fds(uint8_t what, int *fds)
{
	unsigned int nr = what % 4, i;

	for (i = 0; i < nr; i++)
		fds[i] = what & 0x80 ? ta_pidfd_open(getpid()) : dup(0);
	return nr;
}

/* A good request with up to three words changed, or anything at all. */
static void send_request(struct bytes *in, unsigned int i)
{
	struct ta_wire_message msg;
	int fds[SEND_MAX_FDS];
	uint8_t how, what;
	unsigned int nr, n;
	size_t size;

	connect_peer(i);
	how = take_u8(in);
	what = take_u8(in);
	memset(&msg, 0, sizeof(msg));
	fill_request(&msg, what);
	size = sizeof(msg.header) + ta_wire_payload(msg.header.command);
	for (n = 0; n < (how & 3); n++) {
		size_t at = take_u8(in) % (sizeof(msg.header) + 72) & ~3u;

		take(in, (uint8_t *)&msg + at, 4);
	}
	if (how & 4)
		size = take_u8(in) * 5u;
	if (how & 8)
		size = sizeof(msg.header) + ta_wire_payload(msg.header.command);
	if (size > sizeof(msg))
		size = sizeof(msg);
	nr = how & 0x10 ? make_fds(take_u8(in), fds) : 0;
	send_bytes(sock[i], &msg, size, fds, nr);
	while (nr)
		close(fds[--nr]);
	if (how & 0x20)
		hang_up_peer(i);
	else
		ta_peer_serve(engine, peer[i]);
	reap();
}

/* ---- the writer ---- */

static int writer(unsigned int cmd, void *arg)
{
	return engine->port.ops->call(&engine->port, cmd, arg);
}

static void acquire(uint64_t nbytes)
{
	struct tensorarena_acquire acq = { .nbytes = nbytes };

	if (writer(TENSORARENA_ACQUIRE, &acq))
		return;
	slot_written = acq.slot;
	generation_written = acq.generation;
	if (nbytes)
		engine->port.base[acq.offset + nbytes - 1] = 1;
}

static void publish(uint64_t nbytes)
{
	struct tensorarena_publish pub = {
		.generation = generation_written,
		.slot = slot_written,
		.nbytes = nbytes,
	};

	writer(TENSORARENA_PUBLISH, &pub);
}

static void write_something(uint8_t what)
{
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_evict evict = {
		.reader = what >> 4,
		.flags = what & 8 ? TENSORARENA_EVICT_SEAT : 0,
	};
	struct tensorarena_slot_ref ref = {
		.generation = generation_written,
		.slot = slot_written,
	};
	struct tensorarena_detach detach = { 0 };
	uint64_t nbytes = what >> 3 == 31 ? 3 * MIB : what >> 3;

	switch (what & 7) {
	case 0:
	case 1:
		acquire(nbytes);
		break;
	case 2:
	case 3:
	case 4:
		acquire(nbytes);
		publish(nbytes);
		break;
	case 5:
		writer(TENSORARENA_TRIM, &trim);
		break;
	case 6:
		writer(TENSORARENA_EVICT, &evict);
		break;
	case 7:
		if (what == 0xff)
			writer(TENSORARENA_DETACH, &detach);
		else
			writer(TENSORARENA_ABORT, &ref);
		break;
	}
}

/* ---- all together ---- */

static struct ta_port *open_arena(uint32_t seats)
{
	struct tensorarena_create args = {
		.slot_bytes = 4 * MIB,
		.slots = SLOTS,
		.seats = seats,
		.node = TENSORARENA_NODE_LOCAL,
	};
	const struct ta_options options = { .flags = TA_ANY_UID };
	struct ta_handle handle;
	struct ta_port *port;
	unsigned int i;

	MUST(!ta_engine_embedded.create(&options, &args, &handle, &port));
	for (i = 0; i < PEERS; i++)
		sock[i] = -1;
	slot_written = 0;
	generation_written = 0;
	return port;
}

static void step(struct bytes *in)
{
	uint8_t what = take_u8(in);
	unsigned int i = what % 4;

	if (i == PEERS) {
		write_something(take_u8(in));
		ta_peers_tell(engine);
		return;
	}
	if (what & 0x80)
		hang_up_peer(i);
	else if (what & 0x40)
		read_answers(i);
	else
		send_request(in, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { .at = data, .left = size };
	int before = next_fd();
	struct ta_port *port = open_arena(take_u8(&in) % 3);
	unsigned int i;

	while (in.left)
		step(&in);
	for (i = 0; i < PEERS; i++) {
		read_answers(i);
		hang_up_peer(i);
	}
	/* What still waits, waits for a seat that nobody has claimed. */
	MUST(!engine->slots.claimed);
	for (i = 0; i < SLOTS; i++)
		MUST(!(engine->slots.slot[i].pending & ~engine->slots.open));
	MUST(engine->slots.open || !engine->slots.nr_state[TA_SLOT_PUBLISHED]);
	port->ops->close(port, false);
	MUST(next_fd() == before);
	return 0;
}
