// SPDX-License-Identifier: MIT
/* Eventfds as levels, and the clock. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "embedded.h"

uint64_t ta_now_ns(void)
{
	struct timespec now;

	/* Cannot fail with this clock. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t ta_attach_deadline(void)
{
	return ta_now_ns() + TA_ATTACH_MS * 1000000ull;
}

void ta_event_raise(int fd)
{
	uint64_t one = 1;

	/* Anything but a signal means that it is raised already. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void ta_event_lower(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

void ta_embedded_wake(struct ta_embedded *e)
{
	/*
	 * Pairs with the atomic_store() in handle_wake(), which the server
	 * does before it looks under @lock: if this finds the flag set, then
	 * the look is still to come, and is after our turn with @lock.
	 */
	if (!atomic_exchange(&e->waking, true))
		ta_event_raise(e->wake);
}

void ta_embedded_sync_free(struct ta_embedded *e)
{
	/* Nor does a writer that has detached wait for anything. */
	bool free = e->slots.nr_state[TA_SLOT_FREE] > 0 || e->slots.writer_gone;

	if (!e->free_watched || free == e->free_raised)
		return;
	if (free)
		ta_event_raise(e->free_level);
	else
		ta_event_lower(e->free_level);
	e->free_raised = free;
}
