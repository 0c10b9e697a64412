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
 * It is never the only path: every call on the reader looks as well, and where
 * no thread can be had that is all.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "reader.h"

/* Between looks; copies take milliseconds. */
#define LOOK_NS 50000
/* After so long the work is none that somebody waits for. */
#define LONG_LOOKS 20000
#define LONG_LOOK_NS 1000000

static void pause_ns(long ns)
{
	const struct timespec moment = { .tv_nsec = ns };

	/* Cut short by nothing: all signals are blocked. */
	nanosleep(&moment, NULL);
}

static void *help(void *arg)
{
	struct ta_reader *reader = arg;
	uint64_t deferred = 0;
	unsigned int looks = 0;

	prctl(PR_SET_NAME, "ta-release");
	/* The default would double every sleep. */
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&reader->lock);
	while (!reader->leaving) {
		ta_reader_settle(reader);
		if (LIST_EMPTY(&reader->departed)) {
			pthread_cond_wait(&reader->work, &reader->lock);
			looks = 0;
			continue;
		}
		if (deferred != reader->cuda.stats.deferred)
			looks = 0;
		deferred = reader->cuda.stats.deferred;
		pthread_mutex_unlock(&reader->lock);
		pause_ns(looks++ < LONG_LOOKS ? LOOK_NS : LONG_LOOK_NS);
		pthread_mutex_lock(&reader->lock);
	}
	pthread_mutex_unlock(&reader->lock);
	return NULL;
}

static void start(struct ta_reader *reader)
{
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return;
	reader->helping = !pthread_create(&reader->helper, NULL, help, reader);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
