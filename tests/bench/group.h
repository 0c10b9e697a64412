/* SPDX-License-Identifier: MIT */
/* The processes of one contender: a writer and N readers; see control.h. */
#ifndef BENCH_GROUP_H
#define BENCH_GROUP_H

#include <signal.h>
#include <sys/types.h>

#include "control.h"

#define READERS_MAX 64

/**
 * struct member - a process, and the driver's end of its socket
 */
struct member {
	pid_t pid;
	int fd;
};

/**
 * struct group - them all
 * @number: see struct end
 * @readers: how many there are
 * @about: what is in fact used, as the writer last said
 */
struct group {
	const struct contender *contender;
	uint32_t number;
	uint32_t readers;
	struct member writer;
	struct member reader[READERS_MAX];
	char about[ADDRESS_MAX];
};

/**
 * struct setting - what all groups have in common
 * @dir: directory for sockets
 * @src: the source, private to each process from the fork on
 * @max_bytes: its size
 * @gpu: readers have GPUs
 * @engine: enum ta_engine_kind, for arenas
 */
struct setting {
	const char *dir;
	void *src;
	size_t max_bytes;
	bool gpu;
	int engine;
};

/**
 * struct outcome - one round of a group; times in ns from the start of the put
 * @put_ns: the writer's call returns: what an engine loses for the tensor
 * @free_ns: the source may be written to again
 * @have_ns, @end_ns: each reader has the address; has what the mode asks for
 * @writer_cpu_ns, @writer_faults: the writer's bill
 * @readers_cpu_ns, @readers_faults: all readers' together
 */
struct outcome {
	uint64_t put_ns;
	uint64_t free_ns;
	uint64_t have_ns[READERS_MAX];
	uint64_t end_ns[READERS_MAX];
	uint64_t writer_cpu_ns;
	uint64_t writer_faults;
	uint64_t readers_cpu_ns;
	uint64_t readers_faults;
};

/* Set by a signal: the run ends at the next wait. */
extern volatile sig_atomic_t group_interrupted;

/* Starts the processes, up to the point where bytes can be put. */
void group_start(struct group *group, const struct setting *setting);
/*
 * One round, whose bytes begin and end with @stamp.  If they arrive otherwise
 * than they were sent, that ends the run.
 */
void group_round(struct group *group, enum mode mode, size_t nbytes,
		 uint64_t stamp, struct outcome *outcome);
/* Lets them go, and waits. */
void group_end(struct group *group);

#endif /* BENCH_GROUP_H */
