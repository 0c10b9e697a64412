// SPDX-License-Identifier: MIT
/* See crowd.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

void crowd_wrong(struct crowd *c, const char *text)
{
	if (!atomic_fetch_add(&c->wrong, 1))
		snprintf(c->text, sizeof(c->text), "%s", text);
	c->enough = true;
}

void crowd_count(struct crowd *c, const char *what, int err, const int *allowed)
{
	char text[160];

	atomic_fetch_add(&c->ops, 1);
	if (err >= 0) {
		atomic_fetch_add(&c->good, 1);
		return;
	}
	for (; *allowed; allowed++)
		if (err == *allowed)
			return;
	snprintf(text, sizeof(text), "%s: %s", what, strerror(-err));
	crowd_wrong(c, text);
}

struct writer {
	pthread_t thread;
	struct crowd *c;
	struct ta_port *port;
	uint64_t stride;
	uint64_t random;
};

static void *writer_thread(void *arg)
{
	struct writer *w = arg;

	crowd_write(w->c, w->port, w->stride, w->random);
	return NULL;
}

static pid_t start_reader(struct crowd *c, uint64_t random)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	crowd_read(c, random);
	_exit(0);
}

/* Keeps the readers at their number, and kills one now and then. */
static void watch_readers(struct crowd *c, uint64_t ops, uint64_t random)
{
	pid_t pid[CROWD_READERS] = { 0 };
	const double end = campaign_end();
	int i, status;

	while (c->ops < ops && !c->enough && now_seconds() < end) {
		for (i = 0; i < CROWD_READERS; i++)
			if (!pid[i])
				pid[i] = start_reader(c, random_next(&random));
		usleep(2000);
		if (!random_below(&random, 20))
			MUST(!kill(pid[random_below(&random, CROWD_READERS)],
				   SIGKILL));
		for (i = 0; i < CROWD_READERS; i++) {
			if (waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			if (status && status != SIGKILL)
				crowd_wrong(c, "a reader ended badly");
			pid[i] = 0;
		}
	}
	c->enough = true;
	for (i = 0; i < CROWD_READERS; i++) {
		if (!pid[i])
			continue;
		kill(pid[i], SIGKILL);
		MUST(waitpid(pid[i], &status, 0) == pid[i]);
	}
}

/* All that anybody held must be free again when all have gone. */
static const char *all_free(struct ta_port *port)
{
	double end = now_seconds() + 60;
	struct tensorarena_stats st;
	struct tensorarena_trim trim;
	int err;

	do {
		memset(&st, 0, sizeof(st));
		memset(&trim, 0, sizeof(trim));
		err = port->ops->call(port, TENSORARENA_TRIM, &trim);
		MUST(!port->ops->call(port, TENSORARENA_STATS, &st));
		if (!err && st.free == CROWD_SLOTS && !st.nr_readers &&
		    !st.allocated_bytes)
			break;
		usleep(1000);
	} while (now_seconds() < end);
	if (st.free != CROWD_SLOTS || st.nr_readers)
		return "a slot or a seat is lost";
	if (st.allocated_bytes)
		return "memory is lost";
	if (st.attached != st.detached + st.evicted + st.reclaimed_dead_readers)
		return "a reader is not accounted for";
	return NULL;
}

const char *crowd_run(uint64_t ops, uint64_t random, struct fuzz_tally *tally)
{
	const char *engine = getenv("TENSORARENA_TEST_ENGINE");
	struct writer writer[CROWD_WRITERS];
	struct tensorarena_create made = {
		.slot_bytes = CROWD_SLOT_BYTES,
		.slots = CROWD_SLOTS,
		.node = TENSORARENA_NODE_LOCAL,
	};
	const struct ta_engine *e;
	struct ta_options options;
	static char why[200];
	const char *lost;
	struct ta_port *port;
	struct crowd *c;
	uint32_t i;

	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(c != MAP_FAILED);
	c->device = engine && !strcmp(engine, "device");
	e = c->device ? &ta_engine_device : &ta_engine_embedded;
	ta_options_init(&options);
	MUST(!e->create(&options, &made, &c->handle, &port));
	for (i = 0; i < CROWD_WRITERS; i++) {
		writer[i] = (struct writer){ .c = c,
					     .port = port,
					     .stride = made.stride,
					     .random = random_next(&random) };
		MUST(!pthread_create(&writer[i].thread, NULL, writer_thread,
				     &writer[i]));
	}
	watch_readers(c, ops, random);
	for (i = 0; i < CROWD_WRITERS; i++)
		MUST(!pthread_join(writer[i].thread, NULL));
	lost = all_free(port);
	port->ops->close(port, false);
	tally->ops += c->ops;
	tally->succeeded += c->good;
	snprintf(why, sizeof(why), "%s", c->wrong ? c->text : lost ?: "");
	MUST(!munmap(c, sizeof(*c)));
	return why[0] ? why : NULL;
}
