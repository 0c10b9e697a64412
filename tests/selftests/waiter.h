/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that sleeps in poll(2), for tests of what wakes it.
 *
 *	waiter_start(&w, fd, POLLOUT);		the thread sleeps now
 *	...
 *	events = waiter_result(&w, &delay);	what woke it, or 0 for a hang
 */
#ifndef SELFTEST_WAITER_H
#define SELFTEST_WAITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "proc.h"

struct waiter {
	pthread_t thread;
	atomic_int tid;
	int fd;
	short events;
	short result;
	double woken_at;
};

static inline void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	w->result = poll_for(w->fd, w->events, HANG_MS);
	w->woken_at = now_ms();
	return NULL;
}

/* The one-letter state of a thread of ours, after the name in brackets. */
static inline char thread_state(int tid)
{
	char path[64], line[256], *bracket;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return '?';
	bracket = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	MUST(!fclose(f));
	return bracket && bracket[1] ? bracket[2] : '?';
}

/*
 * Returns when the thread is asleep, so that what follows has to wake it.
 * Should it be asleep for another reason the test is weaker, never wrong.
 */
static inline void waiter_start(struct waiter *w, int fd, short events)
{
	double end = now_ms() + HANG_MS;

	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->events = events;
	MUST(!pthread_create(&w->thread, NULL, waiter_run, w));
	while (now_ms() < end) {
		int tid = atomic_load(&w->tid);

		if (tid && thread_state(tid) == 'S')
			return;
		sched_yield();
	}
	MUST(!"the thread sleeps");
}

static inline short waiter_result(struct waiter *w)
{
	MUST(!pthread_join(w->thread, NULL));
	return w->result;
}

#endif /* SELFTEST_WAITER_H */
