// SPDX-License-Identifier: MIT
/*
 * What a control operation of the embedded engine costs, with one reader and
 * with 64: median and 99th percentile, in microseconds.
 *
 * The readers are in a process of their own, which sleeps in poll, as workers
 * do, until there is something to read.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/embedded.h"

#define ROUNDS 2000

enum operation {
	ACQUIRE_PUBLISH,
	NEXT,
	BORROW,
	RELEASE,
	OPERATIONS
};

static const char *const names[OPERATIONS] = {
	[ACQUIRE_PUBLISH] = "acquire + publish",
	[NEXT] = "next",
	[BORROW] = "borrow",
	[RELEASE] = "release",
};

struct samples {
	double us[ROUNDS];
	uint32_t nr;
};

static void must(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "embedded_ops: %s: error %d\n", what, -err);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(uint32_t readers, enum operation op, struct samples *s)
{
	qsort(s->us, s->nr, sizeof(s->us[0]), compare);
	printf("%3u reader%s %-18s median %6.2f us  p99 %6.2f us\n", readers,
	       readers == 1 ? " " : "s", names[op], s->us[s->nr / 2],
	       s->us[s->nr * 99 / 100]);
}

static int timed(struct ta_port *port, unsigned int cmd, void *arg,
		 struct samples *s)
{
	uint64_t start = ta_now_ns();
	int err = port->ops->call(port, cmd, arg);

	if (!err && s->nr < ROUNDS)
		s->us[s->nr++] = (double)(ta_now_ns() - start) / 1000;
	return err;
}

/* Reads what there is on one port. */
static void read_one(struct ta_port *port, struct samples *s)
{
	struct tensorarena_borrow b = { 0 };
	struct tensorarena_slot_ref ref;

	must("next", timed(port, TENSORARENA_NEXT, &b, &s[NEXT]));
	b.flags = b.reserved = 0;
	must("borrow", timed(port, TENSORARENA_BORROW, &b, &s[BORROW]));
	ref = (struct tensorarena_slot_ref){
		.slot = b.ticket.slot,
		.generation = b.ticket.generation,
	};
	must("release", timed(port, TENSORARENA_RELEASE, &ref, &s[RELEASE]));
}

/* Says on @done when all have released a publication. */
static void be_readers(const struct ta_handle *handle, uint32_t readers,
		       int done)
{
	static struct samples s[OPERATIONS];
	struct tensorarena_attach args = { 0 };
	struct ta_port *port[TENSORARENA_MAX_READERS];
	struct pollfd pfd = { 0 };
	uint32_t i, round;

	for (i = 0; i < readers; i++)
		must("attach",
		     ta_engine_embedded.attach(handle, -1, &args, &port[i]));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < readers; i++) {
			pfd.fd = port[i]->ops->poll_fd(port[i], &pfd.events);
			while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
				;
			read_one(port[i], s);
		}
		must("say so", write(done, "", 1) == 1 ? 0 : -errno);
	}
	for (i = NEXT; i < OPERATIONS; i++)
		report(readers, i, &s[i]);
	for (i = 0; i < readers; i++)
		port[i]->ops->close(port[i], false);
}

static void put(struct ta_port *port, struct samples *s)
{
	struct tensorarena_acquire acq = { .nbytes = 4096 };
	struct tensorarena_publish pub = { .nbytes = 4096 };
	uint64_t start = ta_now_ns();

	must("acquire", port->ops->call(port, TENSORARENA_ACQUIRE, &acq));
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	must("publish", port->ops->call(port, TENSORARENA_PUBLISH, &pub));
	s->us[s->nr++] = (double)(ta_now_ns() - start) / 1000;
}

static void measure(uint32_t readers)
{
	static struct samples s;
	struct ta_options options = { 0 };
	struct tensorarena_create args = {
		.slot_bytes = 4096,
		.slots = 1,
		.seats = readers,
		.node = TENSORARENA_NODE_LOCAL,
	};
	struct ta_handle handle;
	struct ta_port *port;
	int done[2], status;
	char byte;
	pid_t pid;

	must("pipe", pipe(done) ? -errno : 0);
	must("create",
	     ta_engine_embedded.create(&options, &args, &handle, &port));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		port->ops->close(port, true);
		be_readers(&handle, readers, done[1]);
		exit(0);
	}
	close(done[1]);
	s.nr = 0;
	while (s.nr < ROUNDS) {
		put(port, &s);
		must("wait", read(done[0], &byte, 1) == 1 ? 0 : -EPIPE);
	}
	close(done[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		must("readers", -ECHILD);
	report(readers, ACQUIRE_PUBLISH, &s);
	port->ops->close(port, false);
}

int main(void)
{
	measure(1);
	measure(TENSORARENA_MAX_READERS);
	return 0;
}
