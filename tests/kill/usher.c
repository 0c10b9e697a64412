// SPDX-License-Identifier: MIT
/* Starts victims and hears what they say. */
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kill.h"

static void *hear(void *arg)
{
	struct usher *u = arg;
	struct message m;

	while (recv(u->sock, &m, sizeof(m), 0) == sizeof(m)) {
		switch (m.kind) {
		case MSG_BEGUN:
			sem_post(&u->begun);
			break;
		case MSG_ENDED:
			u->seconds = m.seconds;
			u->ended = true;
			break;
		case MSG_HANDLE:
			u->on_handle(m.text);
			break;
		case MSG_EVICTED:
			u->evicted = true;
			break;
		case MSG_GO:
			break;
		}
	}
	/* Nobody shall wait for one who is gone. */
	sem_post(&u->begun);
	return NULL;
}

void usher_start(struct usher *u, const char *role, const struct blow *blow,
		 uint64_t seed, const char *handle)
{
	char plan[96];

	snprintf(plan, sizeof(plan), "%u %d %" PRIu64 " %.9f", blow->op,
		 blow->traced, seed, blow->delay);
	MUST(!sem_init(&u->begun, 0, 0));
	u->pid = spawn("victim", &u->sock, role, plan, handle, true);
	MUST(!pthread_create(&u->thread, NULL, hear, u));
}

void usher_end(struct usher *u)
{
	/* A child of the victim's may hold the other end. */
	shutdown(u->sock, SHUT_RDWR);
	MUST(!pthread_join(u->thread, NULL));
	close(u->sock);
	sem_destroy(&u->begun);
}
