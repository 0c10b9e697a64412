/* SPDX-License-Identifier: MIT */
/*
 * The embedded engine through its port interface and, for peers that do not
 * play by the rules, through its socket.
 *
 * The engine is linked with TA_ATTACH_MS shortened, and with an answer to "how
 * much memory is there" that tests give.
 */
#ifndef TEST_EMBEDDED_FIXTURE_H
#define TEST_EMBEDDED_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/embedded.h"
#include "lib/wire.h"

#define MIB (1024 * 1024ull)
/* Longer than anything should take; a hang guard, not an expectation. */
#define GUARD_MS 60000

/**
 * struct arena - an arena and its writer
 * @options: how it is made; tests may change it before arena_open()
 * @args: the same for the engine
 */
struct arena {
	struct ta_options options;
	struct tensorarena_create args;
	struct ta_handle handle;
	struct ta_port *port;
};

struct reader {
	struct tensorarena_attach args;
	struct ta_port *port;
};

/* What ta_memory_headroom() answers. */
extern uint64_t test_headroom;
extern int test_headroom_error;
/* Called, unless NULL, while a slot is growing. */
extern void (*test_growing)(void);

/* ---- writer ---- */

/* 4 slots of 4 MiB and @seats seats. */
void arena_init(struct arena *arena, uint32_t seats);
void arena_open(struct arena *arena);
void arena_close(struct arena *arena);
int writer_call(struct arena *arena, unsigned int cmd, void *arg);
int acquire(struct arena *arena, uint64_t nbytes,
	    struct tensorarena_acquire *acq);
/* Publishes an acquired slot to everybody: seats addressed, or an error. */
int publish(struct arena *arena, const struct tensorarena_acquire *acq,
	    uint64_t nbytes, struct tensorarena_ticket *ticket);
/* Acquires, fills with @byte and publishes; all of it must work. */
struct tensorarena_ticket put(struct arena *arena, uint64_t nbytes,
			      uint8_t byte);
struct tensorarena_stats stats(struct arena *arena);
uint8_t *writer_data(struct arena *arena, uint32_t slot);
bool writer_ready(struct arena *arena);

/* ---- reader ---- */

int attach(const struct arena *arena, int fd, struct reader *reader);
void reader_open(const struct arena *arena, struct reader *reader);
void reader_close(struct reader *reader);
int reader_call(struct reader *reader, unsigned int cmd, void *arg);
int next(struct reader *reader, struct tensorarena_borrow *borrow);
int borrow(struct reader *reader, const struct tensorarena_ticket *ticket,
	   struct tensorarena_borrow *out);
int release(struct reader *reader, const struct tensorarena_ticket *ticket);
int detach(struct reader *reader);
bool reader_ready(struct reader *reader);
/* Whether the reader's view of @nbytes is all @byte. */
bool sees(const struct reader *reader, const struct tensorarena_borrow *borrow,
	  uint8_t byte);

/*
 * Returns once the server has done all that was there for it to do: three round
 * trips of this reader, since one may be answered in the middle of a batch.
 */
void settle(struct reader *reader);

/* ---- peers on the bare socket ---- */

int raw_dial(const struct arena *arena);
struct ta_wire_message raw_message(uint32_t command);
/* An ATTACH request with the right secret. */
struct ta_wire_message raw_attach(const struct arena *arena);
int raw_send(int sock, const struct ta_wire_message *msg);
/* Waits for a message: 0, or -EPIPE when the server hung up. */
int raw_recv(int sock, struct ta_wire_message *msg,
	     struct ta_wire_parcel *parcel);
/* Request and answer; its result.  Descriptors are closed. */
int raw_ask(int sock, struct ta_wire_message *msg);
/* Dials and attaches. */
int raw_open(const struct arena *arena);
/* Whether the server has hung up on us, by GUARD_MS at the latest. */
bool raw_hung_up(int sock);

/* ---- processes and resources ---- */

/* Open descriptors of this process. */
uint32_t count_fds(void);
/* Whether @fd polls for @events within the time. */
bool polls(int fd, short events, int timeout_ms);
/* Waits for a child: its exit status, or -signal. */
int reap(pid_t pid);
/* Waits until @arena has @open open seats. */
void await_open_seats(struct arena *arena, uint32_t open);

/* ---- memory ---- */

/* Shared memory of this process that is resident, in KiB. */
long shared_kib(void);
/* The signal that touching @addr raises, or 0. */
int touch(const volatile uint8_t *addr);
/* NEXT of a bare peer, for slot 0: the memory that comes along. */
int raw_memory(int sock);
/* That neither these @size bytes nor their number can be made to change. */
void assert_cannot_change(int fd, off_t size);

#endif /* TEST_EMBEDDED_FIXTURE_H */
