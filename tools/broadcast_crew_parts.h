/* SPDX-License-Identifier: MIT */
/* What the files that deal with worker processes share. */
#ifndef TARENA_BROADCAST_CREW_PARTS_H
#define TARENA_BROADCAST_CREW_PARTS_H

#include "broadcast_crew.h"

/* ---- broadcast_crew.c ---- */

static inline int crew_number(const struct crew *crew, const struct worker *w)
{
	return (int)(w - crew->worker);
}

/* A worker that has hung up, or broken the protocol, is finished. */
void crew_bury(struct crew *crew, struct worker *w);
uint32_t crew_living(const struct crew *crew);
/* Says something that the worker is to answer, or buries it. */
void crew_tell(struct crew *crew, struct worker *w, const void *message,
	       size_t nbytes);

/* ---- broadcast_gather.c ---- */

typedef void crew_taker(struct crew *crew, struct worker *w,
			const void *message, void *context);

/*
 * Waits once, for workers that owe answers, and for @also unless it is NULL, and
 * hands the answers that are there then, each of @nbytes, to @taker.
 */
int crew_gather_once(struct crew *crew, void *message, size_t nbytes,
		     crew_taker *taker, void *context,
		     const struct pollfd *also, int timeout_ms, int stop,
		     struct reason *why);
/* Until no answer is due any more. */
int crew_gather(struct crew *crew, void *message, size_t nbytes,
		crew_taker *taker, void *context, int stop, struct reason *why);

#endif /* TARENA_BROADCAST_CREW_PARTS_H */
