/* SPDX-License-Identifier: MIT */
/*
 * What the driver and the processes of a contender say to each other, over a
 * socket pair that keeps messages whole.  Plain data, so that a process may be
 * written in another language.
 *
 *	driver				writer			reader
 *	order OPEN		-->	opens
 *				<--	report, the address
 *	order OPEN, address	-->				opens
 *				<--				report
 *	order MEET		-->	waits for readers
 *				<--	report
 *	order ARM, each round	-->				takes
 *				<--				report, ready
 *	order ARM		-->	prepares
 *				<--	report, ready
 *	order GO		-->	puts
 *				<--	report			report
 *	order BILL		-->	reckons
 *				<--	report
 *	hangs up		-->	closes			closes
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <stdint.h>

#include "contender.h"

/* Where a process that is a program of its own finds its end. */
#define CONTROL_FD 3
/* And the bytes of the source, as a file. */
#define SOURCE_FD 4

enum order_kind {
	ORDER_OPEN,
	ORDER_MEET,
	ORDER_ARM,
	ORDER_GO,
	ORDER_BILL,
};

/**
 * struct order - what a process is to do
 * @kind: enum order_kind
 * @mode: ARM: enum mode
 * @nbytes: ARM: size of the tensor
 * @stamp: ARM: what its first and last eight bytes are to be
 * @address: OPEN, to readers: the writer's
 */
struct order {
	uint32_t kind;
	uint32_t mode;
	uint64_t nbytes;
	uint64_t stamp;
	char address[ADDRESS_MAX];
};

/**
 * struct report - what it did
 * @start_ns: the writer's: before the put
 * @put_ns: the writer's: the put has returned
 * @end_ns: the writer's: the source may be written to again.  A reader's: it
 *	has what the mode asks for
 * @have_ns: a reader's: it has the address of the bytes
 * @cpu_ns: CPU time that all threads of the process took for the round; the
 *	writer's comes with the bill, once the readers are done
 * @faults: page faults, likewise
 * @digest: in the modes that check: of the source, and of what arrived
 * @stamped: a reader's: first and last bytes were right
 * @reserved: zero
 * @text: after OPEN: the address; otherwise what in fact is used
 */
struct report {
	uint64_t start_ns;
	uint64_t put_ns;
	uint64_t end_ns;
	uint64_t have_ns;
	uint64_t cpu_ns;
	uint64_t faults;
	uint64_t digest;
	uint32_t stamped;
	uint32_t reserved;
	char text[ADDRESS_MAX];
};

/* All or nothing: false when the other end is gone. */
bool control_send(int fd, const void *message, size_t nbytes);
bool control_receive(int fd, void *message, size_t nbytes);

/* The loops of the two kinds of process; they return when the driver hangs up. */
void process_writer(const struct contender *contender, struct end *end,
		    void *src, int fd);
void process_reader(const struct contender *contender, struct end *end, int fd);

#endif /* BENCH_CONTROL_H */
