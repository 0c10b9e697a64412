// SPDX-License-Identifier: MIT
/* The two kinds of process of a contender; see control.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "touch.h"

const char *const mode_names[MODES] = {
	[MODE_POINTER] = "pointer",
	[MODE_READ] = "read",
	[MODE_GPU] = "gpu",
	[MODE_CHECK] = "check",
	[MODE_CHECK_GPU] = "check gpu",
};

/* What the process had used up when it was last billed. */
struct bill {
	uint64_t cpu_ns;
	uint64_t faults;
};

void die(const char *what, int err)
{
	fprintf(stderr, "bench: %s%s%s\n", what, err ? ": " : "",
		err ? strerror(abs(err)) : "");
	exit(1);
}

bool control_send(int fd, const void *message, size_t nbytes)
{
	ssize_t n;

	do
		n = send(fd, message, nbytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)nbytes;
}

bool control_receive(int fd, void *message, size_t nbytes)
{
	ssize_t n;

	do
		n = recv(fd, message, nbytes, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)nbytes;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct bill used(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		die("getrusage", errno);
	return (struct bill){
		/* The same as in @usage, which rounds to microseconds. */
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt),
	};
}

static void charge(const struct bill *since, struct report *report)
{
	struct bill now = used();

	report->cpu_ns = now.cpu_ns - since->cpu_ns;
	report->faults = now.faults - since->faults;
}

static void answer(int fd, const struct report *report)
{
	if (!control_send(fd, report, sizeof(*report)))
		exit(1);
}

static bool checks(enum mode mode)
{
	return mode == MODE_CHECK || mode == MODE_CHECK_GPU;
}

static void put(const struct contender *c, struct end *end, const void *src,
		size_t nbytes, struct report *report)
{
	report->start_ns = now_ns();
	c->put(end, src, nbytes);
	report->put_ns = now_ns();
	if (c->announce)
		c->announce(end);
	if (c->settle)
		c->settle(end);
	report->end_ns = now_ns();
}

void process_writer(const struct contender *c, struct end *end, void *src,
		    int fd)
{
	struct bill since = { 0 };
	struct report report;
	struct order order;
	size_t nbytes = 0;

	while (control_receive(fd, &order, sizeof(order))) {
		memset(&report, 0, sizeof(report));
		switch (order.kind) {
		case ORDER_OPEN:
			c->open_writer(end);
			memcpy(report.text, end->address, sizeof(report.text));
			break;
		case ORDER_MEET:
			if (c->meet)
				c->meet(end);
			memcpy(report.text, end->about, sizeof(report.text));
			break;
		case ORDER_ARM:
			nbytes = order.nbytes;
			touch_stamp(src, nbytes, order.stamp);
			if (checks(order.mode))
				report.digest = touch_digest(src, nbytes);
			if (c->prepare)
				c->prepare(end, src, nbytes);
			memcpy(report.text, end->about, sizeof(report.text));
			since = used();
			break;
		case ORDER_GO:
			put(c, end, src, nbytes, &report);
			break;
		case ORDER_BILL:
			charge(&since, &report);
			break;
		}
		answer(fd, &report);
	}
	if (c->close_writer)
		c->close_writer(end);
}

/* What the mode asks for; the clock stops at the end of it. */
static void use(const struct contender *c, struct end *end, enum mode mode,
		const struct bytes *bytes, struct report *report)
{
	if (mode == MODE_GPU || mode == MODE_CHECK_GPU) {
		if (c->to_gpu)
			c->to_gpu(end, bytes);
		else
			gpu_copy(end->gpu, bytes->data, bytes->nbytes);
	}
	if (mode == MODE_READ)
		report->digest = touch_read(bytes->data, bytes->nbytes);
	report->end_ns = mode == MODE_POINTER ? report->have_ns : now_ns();
	if (mode == MODE_CHECK)
		report->digest = touch_digest(bytes->data, bytes->nbytes);
	if (mode == MODE_CHECK_GPU)
		report->digest = touch_digest(
			gpu_fetch(end->gpu, bytes->nbytes), bytes->nbytes);
}

static void take(const struct contender *c, struct end *end,
		 const struct order *order, struct report *report)
{
	struct bytes bytes;

	c->take(end, &bytes);
	report->have_ns = now_ns();
	if (!c->floor && bytes.nbytes != order->nbytes)
		die("a tensor of another size arrived", 0);
	use(c, end, order->mode, &bytes, report);
	report->stamped = c->floor ||
			  touch_stamped(bytes.data, bytes.nbytes, order->stamp);
	c->drop(end, &bytes);
}

void process_reader(const struct contender *c, struct end *end, int fd)
{
	struct report report;
	struct order order;
	struct bill since;

	while (control_receive(fd, &order, sizeof(order))) {
		memset(&report, 0, sizeof(report));
		if (order.kind == ORDER_OPEN) {
			memcpy(end->address, order.address,
			       sizeof(end->address));
			c->open_reader(end);
			answer(fd, &report);
			continue;
		}
		/* Ready, but for being asleep. */
		answer(fd, &report);
		since = used();
		take(c, end, &order, &report);
		charge(&since, &report);
		answer(fd, &report);
	}
	if (c->close_reader)
		c->close_reader(end);
}
