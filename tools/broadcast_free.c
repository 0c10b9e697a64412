// SPDX-License-Identifier: MIT
/* See broadcast_free.h. */
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "broadcast_free.h"
#include "clock.h"

#define LOOK_NS 10000
#define WAIT_MS 1000.0

static void *watch_slots(void *arg)
{
	const struct timespec moment = { .tv_nsec = LOOK_NS };
	struct free_watch *watch = arg;
	struct ta_stats stats;

	/* The default would make every sleep six times as long. */
	prctl(PR_SET_TIMERSLACK, 1);
	while (!watch->stop && !ta_stats(watch->writer, &stats, NULL, 0)) {
		if (!stats.published) {
			watch->free_ms = clock_ms();
			break;
		}
		nanosleep(&moment, NULL);
	}
	return NULL;
}

int free_watch_start(struct free_watch *watch, struct ta_writer *writer,
		     struct reason *why)
{
	int err;

	watch->writer = writer;
	watch->stop = false;
	watch->free_ms = 0;
	err = pthread_create(&watch->thread, NULL, watch_slots, watch);
	if (err)
		return reason_set(why, "cannot watch the slots: %s",
				  strerror(err));
	return 0;
}

double free_watch_end(struct free_watch *watch, bool wait)
{
	const struct timespec moment = { .tv_nsec = LOOK_NS };
	double start = clock_ms();
	struct ta_stats stats;

	while (wait && clock_ms() - start < WAIT_MS &&
	       !ta_stats(watch->writer, &stats, NULL, 0) && stats.published)
		nanosleep(&moment, NULL);
	watch->stop = !wait || clock_ms() - start >= WAIT_MS;
	pthread_join(watch->thread, NULL);
	return watch->free_ms;
}
