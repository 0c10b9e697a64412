// SPDX-License-Identifier: MIT
/* What workers say they saw, held against what they ought to see. */
#include <string.h>

#include "broadcast_crew_parts.h"
#include "broadcast_wire.h"

struct collecting {
	const struct crew_expects *expects;
	uint32_t *verified;
};

static void take_seen(struct crew *crew, struct worker *w, const void *message,
		      void *context)
{
	const struct wire_seen *seen = message;
	struct collecting *c = context;
	uint32_t which = w->answered++;
	const struct crew_expects *e = &c->expects[which];
	int number = crew_number(crew, w);

	if (seen->err) {
		complain("worker %d could not look at the tensor: %s", number,
			 ta_strerror(seen->err));
	} else if (seen->nbytes != e->nbytes ||
		   memcmp(&seen->tensor, e->tensor, sizeof(*e->tensor))) {
		complain("worker %d got another type, shape or size", number);
	} else if (seen->digest != e->digest) {
		complain("worker %d got other bytes", number);
	} else {
		w->h2d_ms[w->verified] = seen->h2d_ms;
		w->view_ms[w->verified] = seen->view_ms;
		w->release_ms[w->verified] = seen->release_ms;
		w->pin_ms = seen->pin_ms;
		w->ms[w->verified++] = seen->ms;
		if (seen->end_ms > crew->end_ms)
			crew->end_ms = seen->end_ms;
		c->verified[which]++;
	}
}

void crew_restart(struct crew *crew)
{
	uint32_t i;

	for (i = 0; i < crew->nr; i++)
		crew->worker[i].answered = 0;
	crew->end_ms = 0;
}

static int check_living(const struct crew *crew, struct reason *why)
{
	return crew_living(crew) ? 0 : reason_set(why, "no worker is left");
}

int crew_collect_all(struct crew *crew, const struct crew_expects *expects,
		     uint32_t *verified, int stop, struct reason *why)
{
	struct collecting c = { .expects = expects, .verified = verified };
	struct wire_seen message;

	if (crew_gather(crew, &message, sizeof(message), take_seen, &c, stop,
			why))
		return -1;
	return check_living(crew, why);
}

int crew_take_in(struct crew *crew, const struct crew_expects *expects,
		 uint32_t *verified, const struct pollfd *also, int timeout_ms,
		 int stop, struct reason *why)
{
	struct collecting c = { .expects = expects, .verified = verified };
	struct wire_seen message;

	if (crew_gather_once(crew, &message, sizeof(message), take_seen, &c,
			     also, timeout_ms, stop, why))
		return -1;
	return check_living(crew, why);
}

int crew_collect(struct crew *crew, const struct crew_expects *expects,
		 int stop, struct reason *why)
{
	uint32_t verified = 0;

	crew_restart(crew);
	if (crew_collect_all(crew, expects, &verified, stop, why))
		return -1;
	return (int)verified;
}
