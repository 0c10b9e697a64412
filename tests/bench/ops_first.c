// SPDX-License-Identifier: MIT
/*
 * What the first tensor in a slot costs more than a later one: the memory is
 * made when it is put, and mapped by each reader that looks; see ops.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ops.h"

static double clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static struct op_cost cost_now(void)
{
	return (struct op_cost){
		.ms = clock_ms(CLOCK_MONOTONIC),
		.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID),
	};
}

static struct op_cost cost_since(struct op_cost start)
{
	struct op_cost now = cost_now();

	return (struct op_cost){
		.ms = now.ms - start.ms,
		.cpu_ms = now.cpu_ms - start.cpu_ms,
	};
}

/* Answers each ticket with what viewing it took. */
static void be_reader(const char *handle, int tickets, int answers)
{
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct op_cost cost;

	ops_must("ta_attach", ta_attach(handle, &reader));
	while (read(tickets, &ticket, sizeof(ticket)) > 0) {
		cost = cost_now();
		ops_must("ta_view", ta_view(reader, &ticket, &view));
		cost = cost_since(cost);
		ops_must("ta_release", ta_release(view));
		if (write(answers, &cost, sizeof(cost)) !=
		    (ssize_t)sizeof(cost))
			exit(1);
	}
	ta_reader_close(reader);
}

static void put_twice(struct ta_writer *writer, const void *src, int tickets,
		      int answers, struct op_first *first)
{
	struct ta_ticket ticket;
	struct op_cost cost;
	int i;

	for (i = 0; i < 2; i++) {
		cost = cost_now();
		ops_must("ta_put",
			 ta_put(writer, src, OP_FIRST_BYTES, NULL, &ticket));
		first->put[i] = cost_since(cost);
		if (write(tickets, &ticket, sizeof(ticket)) !=
			    (ssize_t)sizeof(ticket) ||
		    read(answers, &first->view[i], sizeof(first->view[i])) !=
			    (ssize_t)sizeof(first->view[i]))
			ops_must("the reader", -EPIPE);
	}
}

static void measure(enum ta_engine_kind engine, const void *src,
		    struct op_first *first)
{
	int tickets[2], answers[2], status;
	struct ta_options options;
	struct ta_writer *writer;
	pid_t pid;

	ta_options_init(&options);
	options.slots = 1;
	options.seats = 1;
	options.engine = engine;
	options.slot_bytes = OP_FIRST_BYTES;
	ops_must("ta_create", ta_create(&options, &writer, NULL, 0));
	ops_must("pipe", pipe(tickets) || pipe(answers) ? -errno : 0);
	pid = fork();
	if (!pid) {
		close(tickets[1]);
		be_reader(ta_handle(writer), tickets[0], answers[1]);
		_exit(0);
	}
	close(tickets[0]);
	close(answers[1]);
	put_twice(writer, src, tickets[1], answers[0], first);
	close(tickets[1]);
	close(answers[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		ops_must("the reader", -ECHILD);
	ta_writer_close(writer);
}

void ops_first(enum ta_engine_kind engine, struct op_first *first, size_t nr)
{
	void *src = mmap(NULL, OP_FIRST_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (src == MAP_FAILED)
		ops_must("memory for a tensor", -errno);
	memset(src, 1, OP_FIRST_BYTES);
	for (i = 0; i < nr; i++)
		measure(engine, src, &first[i]);
	munmap(src, OP_FIRST_BYTES);
}
