/* SPDX-License-Identifier: MIT */
/*
 * The embedded engine: an arena without a kernel module.
 *
 * The process that creates the arena keeps the slot state machine that the
 * module uses, module/slots.c, and answers the uAPI's commands itself.  The
 * writer's are answered in the calling thread.  The readers' come over a
 * socket each to one thread, the server.
 *
 * What this engine cannot do, or does otherwise than the module:
 *
 *	FEATURE_REVOKE		EVICT closes the seat, but the evicted reader's
 *				mapping stays: user space cannot take it away
 *	FEATURE_HUGE		huge pages only where shmem has them
 *	CREATE_CONTIGUOUS, CREATE_FALLBACK_SMALL, CREATE_NODE_STRICT, a node,
 *	PUBLISH_STREAM		-EOPNOTSUPP
 *	TRIM			never -EBUSY: pins cannot be seen.  The slot
 *				gets new memory; a registered or mapped old one
 *				lasts until its reader next talks to us, or is
 *				woken from poll, and unmaps it.  The reader's
 *				next NEXT or BORROW says @wanted: what it had
 *				pinned of idle slots is not the slots' memory
 *	the writer's death	readers keep the views they hold; NEXT and
 *				BORROW are -EPIPE at once, also for what was
 *				published and not yet seen
 *	a reader's exec		is seen when its descriptor closes, so not while
 *				a forked child holds a copy
 *	a foreign reader	when the reader's pid namespace is not below
 *				ours, a forked child that uses its connection
 *				is not told from it (the library's own check
 *				remains), and STATS shows pid 0
 *	a stopped writer	SIGSTOP stops the server as well, and with it
 *				its readers' commands, which are round trips
 *	a writer's child	that was forked and does not exec keeps the
 *				slots' memory until it closes its copy or exits
 *
 * Locking.  @lock serialises the state machine and what goes with it.  It is
 * held for a few instructions at a time, never across a copy, a growing slot
 * or a message; so a command of the writer costs about a microsecond, and one
 * write to an eventfd when there is something to tell readers.  Telling them is
 * the server's work, so the writer's cost does not depend on their number.
 * What readers have released without a message is looked at when it matters: see
 * embedded_released.c.
 * @grow_lock is taken before @lock and keeps two slots from counting on the
 * same headroom.  Peers belong to the server alone.
 *
 * Fork.  The layers above make no call in a forked child but close.
 */
#ifndef TA_EMBEDDED_H
#define TA_EMBEDDED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../module/slots.h"
#include "engine.h"
#include "wire.h"

/* Connections that are not seated: not attached yet, evicted, detached. */
#define TA_MAX_UNSEATED 64
/* Connections given out by connect() and not attached yet. */
#define TA_MAX_HANDED 64
/* And some that are closed but cannot be used again yet. */
#define TA_MAX_CLOSED 64
#define TA_MAX_PEERS                                                           \
	(TENSORARENA_MAX_READERS + TA_MAX_UNSEATED + TA_MAX_HANDED +           \
	 TA_MAX_CLOSED)

/*
 * How long a connection by name may take to attach, and a reader from connecting
 * to the answer.
 */
#ifndef TA_ATTACH_MS
#define TA_ATTACH_MS 10000
#endif

/**
 * struct ta_memory - a slot's memory
 * @fd: sealed memfd, or -1; changes only while the slot is WRITING
 * @born: epoch at which it came into being, or went
 * @epoch: epoch at which it last changed; a reader that has seen an earlier
 *	one needs to map anew
 *
 * Epochs count every change of any slot's memory, from 1.
 */
struct ta_memory {
	int fd;
	uint64_t born;
	uint64_t epoch;
};

enum ta_peer_state {
	TA_PEER_UNUSED,
	TA_PEER_WAITING, /* connected, not attached */
	TA_PEER_SEATED, /* so far as we know: see ta_peer_look() */
	TA_PEER_EVICTED,
	TA_PEER_DETACHED,
	TA_PEER_CLOSED, /* events already fetched may still name it */
};

/**
 * struct ta_peer - the server's end of a connection
 * @state: enum ta_peer_state
 * @sock: the socket
 * @pidfd: once attached: tells of the process's death
 * @level: once attached: eventfd, readable while poll is to say so
 * @raised: whether it is
 * @handed: came from connect(), not from the listening socket
 * @welcome: its uid is one we accept
 * @stale: it maps memory that slots have given up
 * @wanted: the next NEXT or BORROW shall tell that memory was given up
 * @released: once attached: what it has released without a message
 * @pid: of the process that attached, as we see it; 0 when we do not
 * @seat: SEATED: where
 * @reader: SEATED: its id
 * @since: when it came here, ns
 * @checked: newest epoch at which @seen has been looked at for staleness
 * @seen: epoch of each slot's memory that the reader has; 0: none
 */
struct ta_peer {
	enum ta_peer_state state;
	int sock;
	int pidfd;
	int level;
	bool raised;
	bool handed;
	bool welcome;
	bool stale;
	bool wanted;
	const struct ta_wire_released *released;
	pid_t pid;
	uint32_t seat;
	uint64_t reader;
	uint64_t since;
	uint64_t checked;
	uint64_t *seen;
};

/**
 * struct ta_embedded - an arena, and the writer's port to it
 * @port: base and size of the writer's mapping
 * @arena: id
 * @cookie: secret
 * @flags: TENSORARENA_CREATE_*
 * @any_uid: readers of any uid
 * @stride: distance of slots
 * @socket: where we listen, as in the handle
 * @socket_ino: inode of a socket in the file system, so as to unlink only ours
 * @hole: empty memfd: what is mapped where a slot has no memory
 * @self: pidfd of this process, for readers
 * @free_level: eventfd, readable while a slot is free, once somebody has asked
 *	for it: most writers only try
 * @free_watched: whether somebody has; under @lock
 * @free_raised: whether it is readable; under @lock
 * @wake: eventfd for the server
 * @waking: a wake-up is under way
 * @stop: the server is to end
 * @server: its thread
 * @epoll: what it waits on
 * @listener: where connections by name arrive
 * @listen_again: when to accept again after running out of descriptors, ns; 0:
 *	accepting
 * @lock: see above
 * @slots: the state machine, under @lock
 * @memory: each slot's memory, see there
 * @last_epoch: newest epoch, under @lock
 * @last_drop: newest epoch at which memory went, under @lock
 * @seat_pid: process on each claimed seat, under @lock
 * @released: of the peer on each claimed seat, under @lock
 * @handed: the server's ends of new connections from connect(), under @lock
 * @nr_handed: how many
 * @handed_alive: connections from connect() not attached or closed, under @lock
 * @grow_lock: see above
 * @peers: TA_MAX_PEERS, the server's
 * @seen: their arrays
 */
struct ta_embedded {
	struct ta_port port;
	uint64_t arena;
	uint8_t cookie[TENSORARENA_COOKIE_BYTES];
	uint32_t flags;
	bool any_uid;
	uint64_t stride;
	char socket[TA_SOCKET_NAME_MAX + 2];
	ino_t socket_ino;
	int hole;
	int self;
	int free_level;
	bool free_watched;
	bool free_raised;
	int wake;
	atomic_bool waking;
	atomic_bool stop;
	pthread_t server;
	int epoll;
	int listener;
	uint64_t listen_again;
	pthread_mutex_t lock;
	struct ta_slots slots;
	struct ta_memory *memory;
	uint64_t last_epoch;
	uint64_t last_drop;
	pid_t seat_pid[TENSORARENA_MAX_READERS];
	const struct ta_wire_released *released[TENSORARENA_MAX_READERS];
	int handed[TA_MAX_HANDED];
	uint32_t nr_handed;
	uint32_t handed_alive;
	pthread_mutex_t grow_lock;
	struct ta_peer *peers;
	uint64_t *seen;
};

/* ---- embedded.c ---- */

/* Fills a small buffer with random bytes: 0 or -errno. */
int ta_random(void *buf, size_t size);

/* ---- embedded_event.c ---- */

uint64_t ta_now_ns(void);
/* When who starts to attach now has waited long enough. */
uint64_t ta_attach_deadline(void);
/* Makes an eventfd readable, or not.  They are non-blocking and ours alone. */
void ta_event_raise(int fd);
void ta_event_lower(int fd);
/* Tells the server that what readers should know has changed. */
void ta_embedded_wake(struct ta_embedded *e);
/* Brings @free_level in line with the state machine; under @lock. */
void ta_embedded_sync_free(struct ta_embedded *e);

/* ---- embedded_memory.c ---- */

/* Memory with a descriptor: an empty file that can be sealed, or -errno. */
int ta_memfd_make(void);
/*
 * Reserves @bytes of address space, 2 MiB-aligned, of which every touch is
 * SIGBUS: a mapping of an empty file.  @hole: that file, to be closed by the
 * caller.
 */
int ta_range_reserve(size_t bytes, int prot, uint8_t **base, int *hole);
/* Puts @bytes of @fd at @addr inside a reserved range. */
int ta_range_map(uint8_t *addr, size_t bytes, int prot, int fd);
/*
 * Gives a WRITING slot memory for @nbytes, which is more than it has; without
 * @lock.  0 and its new capacity, for the caller to set, or -ENOMEM: there is
 * not enough; nothing is left of the attempt.
 */
int ta_memory_grow(struct ta_embedded *e, uint32_t slot, uint64_t nbytes,
		   uint64_t *capacity);
/* Gives the memory of a WRITING slot up; without @lock. */
int ta_memory_drop(struct ta_embedded *e, uint32_t slot);
/* Takes the writer's mapping away, for good. */
void ta_memory_revoke(struct ta_embedded *e);
/* A new descriptor of a slot's memory for a reader; under @lock. */
int ta_memory_for_reader(const struct ta_embedded *e, uint32_t slot);
/* Bytes of all slots' memory; under @lock. */
uint64_t ta_memory_allocated(const struct ta_embedded *e);

/* ---- embedded_populate.c ---- */

/*
 * Backs what is mapped at @addr with memory: 0, -EINVAL: this kernel cannot do
 * it so, or -errno, with some of it made.
 */
int ta_memory_make(uint8_t *addr, size_t bytes);

/* ---- embedded_released.c ---- */

/* A new reader's page, mapped here to read: descriptor for it or -errno. */
int ta_released_make(const struct ta_wire_released **released);
/* The same in the reader, to write.  -EPROTO: it is not such a page. */
int ta_released_map(int fd, struct ta_wire_released **released);
void ta_released_unmap(const struct ta_wire_released *released);
/* The reader's: it has released this. */
void ta_released_write(struct ta_wire_released *released, uint32_t slot,
		       uint64_t generation);
/* Releases what the readers on @seats have written down; under @lock. */
void ta_released_reap(struct ta_embedded *e, uint64_t seats);

/* ---- embedded_commands.c ---- */

int ta_embedded_command(struct ta_embedded *e, unsigned int cmd, void *arg);
/* State, counters, memory and ages; under @lock. */
void ta_embedded_stats(struct ta_embedded *e, struct tensorarena_stats *st,
		       struct tensorarena_reader_stats *rows);

/* ---- embedded_socket.c ---- */

/* Listens at @path, or under a random name; fills @socket. */
int ta_embedded_listen(struct ta_embedded *e, const char *path);
/* Removes the socket's name, if it is still ours. */
void ta_embedded_unlink(struct ta_embedded *e);
/*
 * A connection to a server's socket, as named in a handle; -ETIMEDOUT: it was
 * not to be had until @deadline.
 */
int ta_embedded_dial(const char *socket, uint64_t deadline);

/* ---- embedded_server.c ---- */

int ta_server_start(struct ta_embedded *e);
/* Ends the thread; readers find their connections closed. */
void ta_server_stop(struct ta_embedded *e);
/* Another end of a connection for a reader: descriptor or -errno. */
int ta_server_connect(struct ta_embedded *e);

/* ---- embedded_peers.c ---- */

/* The epoll data of peer @i's socket and pidfd; others use the range above. */
#define TA_EVENT_SOCKET(i) ((uint64_t)(i) << 1)
#define TA_EVENT_PIDFD(i) ((uint64_t)(i) << 1 | 1)
#define TA_EVENT_LISTENER TA_EVENT_SOCKET(TA_MAX_PEERS)
#define TA_EVENT_WAKE TA_EVENT_SOCKET(TA_MAX_PEERS + 1)

int ta_peer_watch(struct ta_embedded *e, int fd, uint64_t data);
/* Takes in a new connection. */
void ta_peer_add(struct ta_embedded *e, int sock, bool handed);
/* Ends a connection, and the reader's stay if it was seated. */
void ta_peer_close(struct ta_embedded *e, struct ta_peer *peer);
/* Closes connections that took too long; ns until the next would have. */
uint64_t ta_peers_expire(struct ta_embedded *e, uint64_t now);
/* Makes closed peers available again, once no fetched event can name them. */
void ta_peers_reap(struct ta_embedded *e);
/* Brings all seated peers' poll levels in line with the state machine. */
void ta_peers_tell(struct ta_embedded *e);
/* The same for one peer. */
void ta_peer_tell(struct ta_embedded *e, struct ta_peer *peer);
/* Notices whether a peer was evicted or has stale mappings; under @lock. */
void ta_peer_look(struct ta_embedded *e, struct ta_peer *peer);

/* ---- embedded_requests.c ---- */

/* Answers one request of a peer whose socket is readable. */
void ta_peer_serve(struct ta_embedded *e, struct ta_peer *peer);

/* ---- embedded_attach.c ---- */

/* Whether who sent @parcel knows the secret and is of a uid we accept. */
bool ta_peer_may(const struct ta_embedded *e, uint64_t arena,
		 const uint8_t *cookie, const struct ta_wire_parcel *parcel);
/*
 * Seats a peer.  @fds: on success, TA_WIRE_ATTACH_FDS descriptors for the
 * answer; that of the writer is not the caller's to close.
 */
int ta_peer_attach(struct ta_embedded *e, struct ta_peer *peer,
		   struct tensorarena_attach *args,
		   struct ta_wire_parcel *parcel, int *fds);

/* ---- embedded_observe.c ---- */

int ta_peer_observe(struct ta_embedded *e, struct ta_wire_observe *args,
		    const struct ta_wire_parcel *parcel);
/* Asks the server that @handle names. */
int ta_embedded_observe(const struct ta_handle *handle,
			struct ta_wire_observe *seen);

/* ---- embedded_reader.c ---- */

int ta_embedded_attach(const struct ta_handle *handle, int fd,
		       struct tensorarena_attach *args, struct ta_port **port);

#endif /* TA_EMBEDDED_H */
