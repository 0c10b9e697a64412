// SPDX-License-Identifier: MIT
/* What the readers' processes do in a crowd. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

#define THREADS 2
#define HELD 4

struct audience {
	struct crowd *c;
	struct ta_port *port;
	uint64_t random;
	struct tensorarena_borrow held[HELD];
	uint32_t nr_held;
	bool over;
};

#define ERRORS(...) ((const int[]){ __VA_ARGS__, 0 })
/* What can become of a reader while it does something else. */
#define OVER -EOWNERDEAD, -ESHUTDOWN, -EPIPE, -EIO

static __thread sigjmp_buf cut_off;

static void on_cut_off(int sig)
{
	(void)sig;
	siglongjmp(cut_off, 1);
}

static int call(struct audience *a, unsigned int command, void *args)
{
	int err = a->port->ops->call(a->port, command, args);

	if (err == -EOWNERDEAD || err == -ESHUTDOWN || err == -EPIPE)
		a->over = true;
	return err;
}

static bool is_right(const struct audience *a,
		     const struct tensorarena_borrow *b)
{
	const volatile uint64_t *p =
		(const uint64_t *)(a->port->base + b->offset);
	uint64_t meta;

	memcpy(&meta, b->meta, 8);
	if (b->meta_bytes != 8 || meta != b->ticket.generation)
		return false;
	if (sigsetjmp(cut_off, 1))
		return true;
	return p[0] == b->ticket.generation &&
	       p[b->ticket.nbytes / 8 - 1] == b->ticket.generation;
}

/*
 * Bytes that are wrong are only wrong when the reader still holds them: others
 * may have released them meanwhile, or thrown it out.
 */
static void check(struct audience *a, const struct tensorarena_borrow *b)
{
	struct tensorarena_borrow again = { .ticket = b->ticket };

	if (is_right(a, b))
		return;
	if (!call(a, TENSORARENA_BORROW, &again))
		crowd_wrong(a->c, "a reader saw the bytes of another tensor");
}

static void keep(struct audience *a, const struct tensorarena_borrow *b)
{
	check(a, b);
	if (a->nr_held < HELD)
		a->held[a->nr_held++] = *b;
}

static void release_one(struct audience *a)
{
	struct tensorarena_slot_ref ref = { .flags = 0 };
	uint32_t i;

	if (!a->nr_held)
		return;
	i = (uint32_t)random_below(&a->random, a->nr_held);
	check(a, &a->held[i]);
	ref.slot = a->held[i].ticket.slot;
	ref.generation = a->held[i].ticket.generation;
	crowd_count(a->c, "RELEASE", call(a, TENSORARENA_RELEASE, &ref),
		    ERRORS(-ESTALE, -ENXIO, OVER));
	a->held[i] = a->held[--a->nr_held];
}

static void next(struct audience *a)
{
	struct tensorarena_borrow b = { .flags = 0 };
	int err = call(a, TENSORARENA_NEXT, &b);

	crowd_count(a->c, "NEXT", err, ERRORS(-EAGAIN, -ENOMEM, OVER));
	if (!err)
		keep(a, &b);
	/* Where there is one processor, somebody else has to publish. */
	else if (err == -EAGAIN)
		sched_yield();
}

static void borrow(struct audience *a)
{
	struct tensorarena_borrow b = { .flags = 0 };
	int err;

	b.ticket = a->c->ticket[random_below(&a->random, CROWD_TICKETS)];
	err = call(a, TENSORARENA_BORROW, &b);
	crowd_count(a->c, "BORROW", err,
		    ERRORS(-EINVAL, -ESTALE, -ENXIO, -ENOMEM, OVER));
	if (!err)
		keep(a, &b);
}

static void look(struct audience *a)
{
	short events;
	struct pollfd pfd = { .fd = a->port->ops->poll_fd(a->port, &events),
			      .events = POLLIN };
	void *p;

	crowd_count(a->c, "poll",
		    poll(&pfd, 1, (int)random_below(&a->random, 3)) < 0 ?
			    -errno :
			    0,
		    ERRORS(-EINTR));
	if (!a->c->device)
		return;
	p = mmap(NULL, 1 << 21, PROT_READ, MAP_SHARED, pfd.fd, 0);
	crowd_count(a->c, "mmap", p == MAP_FAILED ? -errno : 0,
		    ERRORS(-ENOMEM, OVER));
	if (p == MAP_FAILED)
		return;
	madvise(p, 1 << 21, MADV_POPULATE_READ);
	crowd_count(a->c, "munmap", munmap(p, 1 << 21) ? -errno : 0,
		    ERRORS(-ENOMEM));
}

/* A child that lives a little, and keeps what it inherited. */
static void leave_child(struct audience *a)
{
	pid_t pid = fork();

	atomic_fetch_add(&a->c->ops, 1);
	if (!pid) {
		usleep((useconds_t)random_below(&a->random, 2000));
		_exit(0);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void *attend(void *arg)
{
	struct audience *a = arg;
	uint64_t turns = 20 + random_below(&a->random, 400);

	while (turns-- && !a->over && !a->c->enough) {
		switch (random_below(&a->random, 512)) {
		case 0:
			leave_child(a);
			break;
		case 1 ... 8:
			look(a);
			break;
		case 9 ... 120:
			borrow(a);
			break;
		case 121 ... 324:
			release_one(a);
			break;
		default:
			next(a);
		}
	}
	return NULL;
}

static void attend_once(struct crowd *c, uint64_t *random)
{
	struct tensorarena_attach args = { .flags = 0 };
	struct tensorarena_detach detach = { 0 };
	struct audience a[THREADS] = { 0 };
	const struct ta_engine *engine = c->device ? &ta_engine_device :
						     &ta_engine_embedded;
	pthread_t thread[THREADS];
	struct ta_port *port;
	int err, i;

	err = engine->attach(&c->handle, -1, &args, &port);
	crowd_count(c, "ATTACH", err,
		    ERRORS(-EUSERS, -ENOMEM, -EOWNERDEAD, -EPIPE));
	if (err)
		return;
	for (i = 0; i < THREADS; i++) {
		a[i].c = c;
		a[i].port = port;
		a[i].random = random_next(random);
		MUST(!pthread_create(&thread[i], NULL, attend, &a[i]));
	}
	for (i = 0; i < THREADS; i++)
		MUST(!pthread_join(thread[i], NULL));
	if (random_below(random, 2))
		crowd_count(c, "DETACH",
			    port->ops->call(port, TENSORARENA_DETACH, &detach),
			    ERRORS(OVER));
	port->ops->close(port, false);
}

void crowd_read(struct crowd *c, uint64_t random)
{
	struct sigaction action = { .sa_handler = on_cut_off };

	MUST(!sigaction(SIGBUS, &action, NULL));
	while (!c->enough && random_below(&random, 30))
		attend_once(c, &random);
}
