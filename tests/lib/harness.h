/* SPDX-License-Identifier: MIT */
/*
 * What the cases share: an arena on the engine under test, actors to be its
 * readers (or its writer), and bytes that can be told apart.
 *
 * TENSORARENA_TEST_ENGINE=embedded (the default) or device picks the engine.
 */
#ifndef TA_TEST_HARNESS_H
#define TA_TEST_HARNESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include <tensorarena.h>

#include "test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Longer than anything here takes, shorter than anyone would wait. */
#define HANG_MS 30000

/* ---- engine ---- */

enum ta_engine_kind test_engine(void);
/* Options for a small arena on that engine. */
struct ta_options test_options(uint32_t slots, uint64_t slot_bytes,
			       uint32_t seats);

/* ---- actors: processes that do what they are told ---- */

/*
 * An actor is a fresh image of this program, so that it has nothing of ours
 * but its end of a socket.  It ends when that is closed.  Each of its views has
 * a number that the test chooses, below ACTOR_VIEWS.
 */
#define ACTOR_VIEWS 16

struct actor {
	pid_t pid;
	int socket;
	struct timespec end; /* when it was told to die or to become another */
};

struct actor actor_start(void);
/* Ends it in order; all it did must have worked. */
void actor_stop(struct actor *actor);
/* kill -9, without waiting for more than its death. */
void actor_kill(struct actor *actor);

int actor_attach(struct actor *actor, const char *handle);
uint64_t actor_reader_id(struct actor *actor);
int actor_next(struct actor *actor, int view, int timeout_ms);
int actor_view(struct actor *actor, int view, const struct ta_ticket *ticket);
/* What its view says it is. */
void actor_describe(struct actor *actor, int view, struct ta_ticket *ticket,
		    struct ta_tensor *tensor);
/* 0, or -EBADMSG when the view's bytes are not fill_pattern()'s of @seed. */
int actor_check(struct actor *actor, int view, uint64_t seed);
int actor_release(struct actor *actor, int view);
int actor_close_reader(struct actor *actor);
/*
 * Reads @count publications, checks each against the seed in its tag, releases
 * them.  actor_drain_start() does not wait; actor_drain_end() says how it went.
 */
void actor_drain_start(struct actor *actor, uint32_t count);
int actor_drain_end(struct actor *actor);

/* Makes the actor a writer. */
int actor_create(struct actor *actor, const struct ta_options *options,
		 char handle[TA_HANDLE_MAX]);
int actor_put(struct actor *actor, size_t nbytes, uint64_t seed,
	      struct ta_ticket *ticket);
int actor_loan(struct actor *actor, size_t nbytes);
int actor_close_writer(struct actor *actor);

/* A child that inherits all the actor has and outlives it; 0 to kill_child. */
pid_t actor_fork(struct actor *actor);
void kill_child(pid_t child);
/* The actor becomes another program that does nothing but live. */
void actor_exec(struct actor *actor);

/* ---- arenas ---- */

#define MAX_ACTORS 8

struct arena {
	struct ta_writer *writer;
	struct actor actor[MAX_ACTORS];
	unsigned int actors;
};

/* An arena with @actors readers, attached in order. */
void arena_open(struct arena *arena, const struct ta_options *options,
		unsigned int actors);
void arena_close(struct arena *arena);

struct ta_stats stats_of(struct ta_writer *writer);
double ms_since(const struct timespec *start);

/*
 * Waits until @condition holds of @st, which is kept up to date; fails when it
 * never does.  Says how long after @start that was, as a figure to read.
 */
#define await_stats_since(start, writer, st, condition)                        \
	do {                                                                   \
		for (st = stats_of(writer); !(condition);                      \
		     st = stats_of(writer)) {                                  \
			const struct timespec moment_ = { 0, 100000 };         \
                                                                               \
			if (ms_since(start) > HANG_MS)                         \
				fail_msg("never: %s", #condition);             \
			nanosleep(&moment_, NULL);                             \
		}                                                              \
		print_message("# %s after %.2f ms\n", #condition,              \
			      ms_since(start));                                \
	} while (0)

#define await_stats(writer, st, condition)                                     \
	do {                                                                   \
		struct timespec now_;                                          \
                                                                               \
		clock_gettime(CLOCK_MONOTONIC, &now_);                         \
		await_stats_since(&now_, writer, st, condition);               \
	} while (0)

/* ---- bytes ---- */

void fill_pattern(void *data, size_t nbytes, uint64_t seed);
bool is_pattern(const void *data, size_t nbytes, uint64_t seed);
/* ta_put() of a pattern; the seed is also the tag. */
int put_pattern(struct ta_writer *writer, size_t nbytes, uint64_t seed,
		struct ta_ticket *ticket);
/* The same, but waits for a slot. */
int put_when_free(struct ta_writer *writer, size_t nbytes, uint64_t seed,
		  struct ta_ticket *ticket);

/* ---- main ---- */

bool is_actor(int argc, char **argv);
int actor_main(char **argv);

#define run_cases(argc, argv, tests)                                           \
	(is_actor(argc, argv) ? actor_main(argv) : run_all(tests, NULL, NULL))

#endif /* TA_TEST_HARNESS_H */
