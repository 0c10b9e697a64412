/* SPDX-License-Identifier: MIT */
/*
 * A contender: one way to get a tensor's bytes from one process to N others,
 * or a floor, which moves them and brings them to nobody.
 *
 * Its functions run in processes of their own: one writer, N readers.  What
 * goes wrong there ends the process with a line that says so, and with it the
 * run: a benchmark has no use for half a result.
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu.h"

/* Room for a handle string, a path or a name. */
#define ADDRESS_MAX 256

/* What a reader does before it has the bytes. */
enum mode {
	MODE_POINTER, /* nothing: it has the address of all of them */
	MODE_READ, /* reads each once */
	MODE_GPU, /* copies them to its GPU */
	MODE_CHECK, /* computes their checksum */
	MODE_CHECK_GPU, /* copies them to its GPU and checks what is there */
	MODES
};

extern const char *const mode_names[MODES];

/**
 * struct end - one process's end of a contender
 * @dir: directory for sockets
 * @group: number of the contender and its processes among all that run
 * @readers: how many this group has
 * @number: which reader this is
 * @max_bytes: largest tensor
 * @engine: enum ta_engine_kind, for arenas
 * @address: the writer's to fill, the readers' to use
 * @about: for the record: what in fact is used
 * @gpu: the reader's GPU, or NULL
 * @state: the contender's own
 */
struct end {
	const char *dir;
	uint32_t group;
	uint32_t readers;
	uint32_t number;
	size_t max_bytes;
	int engine;
	char address[ADDRESS_MAX];
	char about[ADDRESS_MAX];
	struct gpu *gpu;
	void *state;
};

/**
 * struct bytes - what a reader got
 * @hold: the contender's own
 */
struct bytes {
	const void *data;
	size_t nbytes;
	void *hold;
};

/**
 * struct contender - the interface
 * @name: in the record
 * @about: in a sentence
 * @floor: not a way to deliver: the bytes get nowhere
 * @gpu_only: runs in MODE_GPU alone
 * @message: carries no tensor: takes part only when it is named, and in
 *	MODE_POINTER alone
 * @copies_put: times that a put copies each byte, whatever the readers
 * @copies_take: times that each byte is copied for every reader
 * @copies_gpu: once more on the way to a GPU, from memory that is not pinned
 * @absent: optional; NULL, or why this cannot be had here.  Before any other.
 * @program: optional: a program for its processes, instead of the functions
 *
 * @open_writer: fills @address
 * @meet: optional; the writer's: waits until all readers are there
 * @prepare: optional; the writer's: before the rounds with this size
 * @put: from here the clock runs; returns when the call for it would
 * @announce: optional; tells the readers of it
 * @settle: optional; waits until the source may be written to again
 *
 * @take: waits for a tensor and gets a hold on its bytes
 * @to_gpu: optional; gpu_copy() of the bytes to the GPU otherwise
 * @drop: gives up the hold
 * @close_writer, @close_reader: optional
 */
struct contender {
	const char *name;
	const char *about;
	bool floor;
	bool gpu_only;
	bool message;
	uint32_t copies_put;
	uint32_t copies_take;
	uint32_t copies_gpu;
	const char *(*absent)(void);
	const char *program;

	void (*open_writer)(struct end *end);
	void (*meet)(struct end *end);
	void (*prepare)(struct end *end, const void *src, size_t nbytes);
	void (*put)(struct end *end, const void *src, size_t nbytes);
	void (*announce)(struct end *end);
	void (*settle)(struct end *end);
	void (*close_writer)(struct end *end);

	void (*open_reader)(struct end *end);
	void (*take)(struct end *end, struct bytes *bytes);
	void (*to_gpu)(struct end *end, const struct bytes *bytes);
	void (*drop)(struct end *end, struct bytes *bytes);
	void (*close_reader)(struct end *end);
};

extern const struct contender contender_arena;
extern const struct contender contender_socket;
extern const struct contender contender_pickle;
extern const struct contender contender_shm;
extern const struct contender contender_iceoryx;
extern const struct contender contender_memcpy;
extern const struct contender contender_best_copy;
extern const struct contender contender_pinned;
extern const struct contender contender_message;
extern const struct contender contender_message_arena;

/* All of them; NULL ends the list. */
extern const struct contender *const contenders[];
const struct contender *contender_named(const char *name);

/* Ends the process; @err is 0 or an error number of either sign. */
void die(const char *what, int err) __attribute__((noreturn));

#endif /* BENCH_CONTENDER_H */
