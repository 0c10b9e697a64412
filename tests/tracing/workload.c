// SPDX-License-Identifier: GPL-2.0-only
/* Everything once that a tracepoint is for and that takes no special machine. */
#include "proc.h"

static void die(int sock, void *arg)
{
	struct tensorarena_borrow b;
	struct reader r;

	reader_attach(arg, &r);
	MUST(next(&r, &b) == -EAGAIN);
	tell(sock, 1);
}

int main(void)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r, evicted;
	struct child c;
	struct arena a;
	int i;

	arena_create(&a, 2, CHUNK, 0);
	c = child_start(die, &a, a.fd);
	must_hear(c.sock);
	MUST(child_ended_well(&c));
	reader_attach(&a, &r);
	reader_attach(&a, &evicted);
	MUST(!evict(&a, evicted.made.reader, 0));
	MUST(acquire(&a, CHUNK + 1, &acq) == -EMSGSIZE);
	MUST(!acquire(&a, 1, &acq));
	MUST(!abort_slot(&a, acq.slot, acq.generation));
	for (i = 0; i < 100; i++) {
		struct tensorarena_ticket t = put(&a, 1, 1);

		MUST(!next(&r, &b));
		MUST(!borrow(&r, &t, &b));
		MUST(!release(&r, &t));
	}
	MUST(detach(&r) == 0);
	return 0;
}
