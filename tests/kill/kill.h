/* SPDX-License-Identifier: MIT */
/*
 * The kill matrix: a victim goes through every operation of its role, is
 * killed somewhere in one of them, and whoever is left is asked whether
 * anything has been lost.
 *
 *   director	this program: picks where, kills, checks.  It is the writer when
 *		the victim is a reader.
 *   victim	a fresh image of this program, one for each round
 *   survivors	readers that live on, one or two, likewise images of their own
 *
 * Where a victim is killed:
 *
 *   at a stop	before or after the k-th system call of any of its threads since
 *		the operation began (ptrace); k runs over all there are
 *   in time	so many microseconds after the operation began, by a timer of the
 *		victim's own: inside copies, page faults and system calls
 *   asleep	once it sleeps in an operation that does not end by itself:
 *		inside copy_from_user(), copy_to_user() or a page fault
 *   by itself	exit, exec, the memory cgroup's OOM killer
 */
#ifndef TA_KILL_H
#define TA_KILL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <tensorarena.h>

#include "tests/campaign/campaign.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
/* Longer than anything takes; only a hang reaches it. */
#define HANG_SECONDS 60.0
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What only has to work for a round to begin ends the program otherwise. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "# %s:%d: %s: %m\n", __FILE__,         \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
	} while (0)

enum engine_mask {
	ON_EMBEDDED = 1,
	ON_DEVICE = 2,
	ON_BOTH = 3,
};

/* ---- operations ---- */

enum op_flags {
	OP_SLEEPS = 1, /* never comes back: the victim is killed asleep */
	OP_ENDS = 2, /* the victim dies of it */
	OP_OOM = 4, /* needs a memory cgroup */
	OP_ANSWERS = 8, /* sleeps where it writes, not where it reads */
};

struct victim;

/**
 * struct op - one thing a victim does
 * @name: for the table
 * @run: does it; what fails ends the victim with a message
 * @engines: enum engine_mask
 * @flags: enum op_flags
 * @alone: not part of the sequence: done only when it is the one to be killed
 *	in, as the last thing
 */
struct op {
	const char *name;
	void (*run)(struct victim *v);
	unsigned int engines;
	unsigned int flags;
	bool alone;
};

struct role {
	const char *name;
	const struct op *op;
	uint32_t nr;
};

extern const struct role reader_role, writer_role;

/**
 * struct victim - the victim's own view
 * @sock: to the director
 * @lifeline: at end of file when the director is gone
 * @traced: the director sees a SIGTRAP, else a message on @sock
 * @delay: not traced: seconds to live from the operation's beginning; 0: the
 *	director sees to it
 * @random: stream for sizes and the like
 * @handle: of the director's arena, or of its own
 */
struct victim {
	int sock;
	int lifeline;
	bool traced;
	double delay;
	uint64_t random;
	char handle[TA_HANDLE_MAX];
	enum ta_engine_kind engine;
	struct ta_reader *reader;
	struct ta_view *view[2];
	struct ta_writer *writer;
	struct ta_loan *loan;
	uint64_t seeds;
	int pipe[2];
};

int victim_main(char **argv);
/* Ends the victim with a message when @err is none of those allowed. */
void victim_expect(const char *what, int err, int allowed);
/* A child that has all that the victim has, and lives till the round's end. */
void victim_linger(int lifeline) __attribute__((noreturn));
int linger_main(char **argv);
/* Operations that both roles have. */
void op_fork(struct victim *v);
void op_fork_exec(struct victim *v);
void op_vfork_exec(struct victim *v);
void op_exec(struct victim *v);
void op_exit(struct victim *v);
void op_exit_64_threads(struct victim *v);
void op_pin_pages(struct victim *v, void *data, size_t bytes, bool writable);
/* Allocates until the OOM killer comes. */
void eat_memory(struct victim *v);
/* A page whose first reading, or writing, sleeps for ever; NULL: cannot be. */
void *sleeping_page(const void *content, size_t bytes);
void *sleeping_page_to_write(const void *content, size_t bytes);

/* ---- survivors ---- */

/**
 * struct survivor_report - how a surviving reader fared
 * @attached: 0 or the error of its ta_attach()
 * @end: -EAGAIN when all has been read, -EPIPE when there will be no more
 * @seen: publications it read and released since it attached
 * @bad: how many had the wrong bytes, then or when they were given back
 * @errors: calls that failed though they should not
 */
struct survivor_report {
	int attached;
	int end;
	uint64_t seen;
	uint64_t bad;
	uint64_t errors;
};

struct survivor {
	pid_t pid;
	int sock;
};

int survivor_main(char **argv);
void survivor_start(struct survivor *s);
void survivor_stop(struct survivor *s);
/* Joins an arena, whose tensors it reads from then on; does not wait. */
void survivor_attach(struct survivor *s, const char *handle);
/*
 * What it has seen.  @gone: waits for the writer's end, gives back all and
 * leaves; otherwise it reads what there is and stays.
 */
bool survivor_report(struct survivor *s, bool gone, struct survivor_report *r);

/* ---- processes ---- */

/* An image of this program: argv[1] = @what, [2] a socket, [3] a lifeline. */
pid_t spawn(const char *what, int *sock, const char *a, const char *b,
	    const char *c, bool own_group);
enum ta_engine_kind test_engine(void);
/* Descriptors this process has open. */
uint32_t count_fds(void);

/* ---- killing ---- */

/**
 * struct blow - where the victim is to be hit
 * @op: index in its role
 * @traced: at a stop, else in time
 * @stop: which; ~0: none, but after the operation
 * @delay: seconds after the operation's beginning; 0: after its end
 */
struct blow {
	uint32_t op;
	bool traced;
	uint32_t stop;
	double delay;
};

/**
 * struct outcome - what came of it
 * @stops: system call stops that were passed
 * @seconds: how long the operation took, when it came to its end
 * @ended: the operation came to its end before the blow
 * @self: the victim ended by itself
 * @status: how
 */
struct outcome {
	uint32_t stops;
	double seconds;
	bool ended;
	bool self;
	int status;
};

/* ---- the victim and what it says ---- */

enum message_kind {
	MSG_GO, /* to the victim */
	MSG_BEGUN, /* the operation */
	MSG_ENDED,
	MSG_HANDLE, /* of the victim's arena: @text */
	MSG_EVICTED, /* it has thrown out a survivor */
};

struct message {
	enum message_kind kind;
	double seconds; /* MSG_ENDED: since it began */
	char text[TA_HANDLE_MAX];
};

/**
 * struct usher - a thread that hears what the victim says
 * @pid: the victim
 * @sock: to it
 * @begun: posted when the operation begins, and when the victim is gone
 * @ended: it is over
 * @seconds: how long the operation took
 * @on_handle: called with a handle, in this thread
 * @evicted: the victim has thrown out a survivor
 */
struct usher {
	pid_t pid;
	int sock;
	sem_t begun;
	volatile bool ended;
	void (*on_handle)(const char *handle);
	double seconds;
	bool evicted;
	pthread_t thread;
};

/* Starts a victim that waits for strike(). */
void usher_start(struct usher *u, const char *role, const struct blow *blow,
		 uint64_t seed, const char *handle);
void usher_end(struct usher *u);

/* Kills the victim, waits for its death, and ends the usher. */
void strike(struct usher *u, const struct blow *blow, const struct op *op,
	    struct outcome *outcome);
/* Kills what the victim left behind. */
void sweep_up(pid_t victim);

/* ---- a memory cgroup for the OOM killer ---- */

/* NULL, or why there is none. */
const char *oom_cgroup_make(void);
void oom_cgroup_remove(void);
void oom_cgroup_enter(void);

/* ---- rounds ---- */

/* NULL, or what is wrong after the round. */
typedef const char *(*round_fn)(const struct blow *blow, uint64_t seed,
				struct outcome *outcome);

const char *reader_round(const struct blow *blow, uint64_t seed,
			 struct outcome *outcome);
/* The last check: the arena that all rounds used is at its end. */
const char *reader_rounds_end(void);
const char *writer_round(const struct blow *blow, uint64_t seed,
			 struct outcome *outcome);
const char *writer_rounds_end(void);
/* NULL, or what is left of arenas in the module though all are closed. */
const char *module_is_empty(void);
/* Formats what is wrong; valid until the next. */
const char *wrong(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif /* TA_KILL_H */
