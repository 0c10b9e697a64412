// SPDX-License-Identifier: MIT
/*
 * Ways to learn that a copy has ended while the process is otherwise idle: how
 * late, what the caller pays to ask, and what the waiting costs.  The library
 * does the first.
 *
 *	poll	a thread queries the event every 50 us
 *	host	a host function in a side stream wakes a thread
 *	block	a thread waits for the event inside CUDA
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "real_bench.h"

enum way {
	POLL,
	HOST,
	BLOCK,
	WAYS
};

static const char *const names[WAYS] = { "poll", "host", "block" };

#define ROUNDS 200
#define BYTES (32 * MIB)
#define LOOK_NS 50000
#define EVENT_FLAGS 3 /* no timing, blocking */

static struct {
	enum way way;
	void *event;
	sem_t go; /* there is something to wait for */
	sem_t done; /* the host function's word */
	_Atomic double noticed;
	double cpu_us;
} helper;

static void host_function(void *unused)
{
	(void)unused;
	sem_post(&helper.done);
}

static void wait_once(void)
{
	const struct timespec moment = { 0, LOOK_NS };

	switch (helper.way) {
	case POLL:
		while (cu.EventQuery(helper.event) == NOT_READY)
			nanosleep(&moment, NULL);
		break;
	case HOST:
		sem_wait(&helper.done);
		CUDA(EventQuery(helper.event));
		break;
	default:
		CUDA(EventSynchronize(helper.event));
	}
}

static void *help(void *unused)
{
	double before;
	int i;

	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < ROUNDS; i++) {
		sem_wait(&helper.go);
		before = real_thread_cpu_us();
		wait_once();
		helper.noticed = real_us();
		helper.cpu_us += real_thread_cpu_us() - before;
	}
	return NULL;
}

/* The caller's part: what makes the thread notice. */
static double ask(void *stream, void *side)
{
	double before = real_thread_cpu_us();

	CUDA(EventRecord(helper.event, stream));
	if (helper.way == HOST) {
		CUDA(StreamWaitEvent(side, helper.event, 0));
		CUDA(LaunchHostFunc(side, host_function, NULL));
	}
	sem_post(&helper.go);
	return real_thread_cpu_us() - before;
}

static void measure(enum way way, void *device, const void *host)
{
	double late[ROUNDS], asked[ROUNDS], ended, median;
	void *stream = real_stream(), *side = real_stream();
	pthread_t thread;
	int i;

	helper.way = way;
	helper.cpu_us = 0;
	CUDA(EventCreateWithFlags(&helper.event, EVENT_FLAGS));
	MUST(!sem_init(&helper.go, 0, 0) && !sem_init(&helper.done, 0, 0));
	MUST(!pthread_create(&thread, NULL, help, NULL));
	for (i = 0; i < ROUNDS; i++) {
		helper.noticed = 0;
		CUDA(MemcpyAsync(device, host, BYTES, H2D, stream));
		asked[i] = ask(stream, side);
		while (cu.StreamQuery(stream) == NOT_READY)
			;
		ended = real_us();
		while (!helper.noticed)
			;
		late[i] = helper.noticed - ended;
	}
	pthread_join(thread, NULL);
	median = real_median(late, ROUNDS);
	printf("    \"%s\": {\"late_us_median\": %.1f, \"late_us_p99\": %.1f, "
	       "\"caller_cpu_us\": %.2f, \"helper_cpu_us\": %.1f}%s\n",
	       names[way], median, late[ROUNDS * 99 / 100],
	       real_median(asked, ROUNDS), helper.cpu_us / ROUNDS,
	       way + 1 < WAYS ? "," : "");
}

void bench_idle(void)
{
	void *device = real_malloc(BYTES), *host;
	enum way way;

	CUDA(MallocHost(&host, BYTES));
	printf("  \"idle_notice_32MiB\": {\n");
	for (way = 0; way < WAYS; way++)
		measure(way, device, host);
	printf("  }\n");
	CUDA(FreeHost(host));
	CUDA(Free(device));
}
