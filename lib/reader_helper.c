// SPDX-License-Identifier: MIT
/*
 * The thread that frees slots while nobody calls.
 *
 * It sleeps until a release has to wait for a stream, then looks every few
 * microseconds: a look costs less than one of them.  The alternatives are worse.
 * A host function in a side stream wakes somebody later, costs the caller more,
 * and does not run at all after a device error; waiting for one event inside
 * CUDA cannot be interrupted, and knows nothing of the other streams.
 *
 * The shorter the work so far, the sooner the next look: what has just begun may
 * end in a moment, and a few looks cost little; what takes milliseconds is
 * noticed as early by its own measure.
 *
 * To wake a thread costs the caller a system call, and may take long where the
 * processor sleeps as well.  So after a release the helper stays awake for a
 * moment, for those that follow close upon another.
 *
 * It is never the only path: every call on the reader looks as well, and where
 * no thread can be had that is all.
 */
#include <sys/prctl.h>
#include <time.h>

#include "reader.h"
#include "thread.h"

/* Between looks, and a share of the time since the last release. */
#define LOOK_MIN_NS 10000
#define LOOK_MAX_NS 50000
#define LOOK_SHARE 8
/* After so long the work is none that somebody waits for. */
#define LONG_NS 1000000000
#define LONG_LOOK_NS 1000000
/* How long it stays awake. */
#define LINGER_NS 2000000

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* @since: the last release. */
static int64_t next_look(int64_t since, int64_t now)
{
	int64_t pause = (now - since) / LOOK_SHARE;

	if (now - since > LONG_NS)
		pause = LONG_LOOK_NS;
	else if (pause > LOOK_MAX_NS)
		pause = LOOK_MAX_NS;
	else if (pause < LOOK_MIN_NS)
		pause = LOOK_MIN_NS;
	return now + pause;
}

static void sleep_until(int64_t ns)
{
	const struct timespec then = {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};

	/* Cut short by nothing: all signals are blocked. */
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
}

static void *help(void *arg)
{
	struct ta_reader *reader = arg;
	uint64_t deferred = 0;
	int64_t now, since = 0;

	prctl(PR_SET_NAME, "ta-release");
	/* The default would double every sleep. */
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&reader->lock);
	while (!reader->leaving) {
		/* So that what the look takes is not added to the pause. */
		now = now_ns();
		ta_reader_settle(reader);
		if (deferred != reader->cuda.stats.deferred)
			since = now;
		deferred = reader->cuda.stats.deferred;
		if (LIST_EMPTY(&reader->departed) && now - since > LINGER_NS) {
			pthread_cond_wait(&reader->work, &reader->lock);
			continue;
		}
		pthread_mutex_unlock(&reader->lock);
		sleep_until(next_look(since, now));
		pthread_mutex_lock(&reader->lock);
	}
	pthread_mutex_unlock(&reader->lock);
	return NULL;
}

static void start(struct ta_reader *reader)
{
	reader->helping = !ta_thread_start(&reader->helper, help, reader);
}

void ta_helper_wake(struct ta_reader *reader)
{
	if (!reader->helping)
		start(reader);
	else
		pthread_cond_signal(&reader->work);
}

void ta_helper_stop(struct ta_reader *reader)
{
	bool helping;

	pthread_mutex_lock(&reader->lock);
	reader->leaving = true;
	helping = reader->helping;
	pthread_cond_signal(&reader->work);
	pthread_mutex_unlock(&reader->lock);
	if (helping)
		pthread_join(reader->helper, NULL);
}
