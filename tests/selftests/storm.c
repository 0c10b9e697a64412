// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once: a writer with three threads, readers that come, read,
 * fork, leave and are killed or thrown out, in an order that only the seed
 * and the scheduler know.
 *
 * What must hold whatever happens: a reader that has a publication sees the
 * bytes of that publication, whole, until it gives it back or is cut off; no
 * call gives an error that its documentation does not; nothing is left in the
 * end; and the kernel does not complain, which whoever runs this looks for.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "arena.h"
#include "proc.h"

#define SLOTS 6
#define READERS 4
#define WORDS 64
#define ROUNDS 600

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525U + 1013904223U;
	return (*seed >> 8) % n;
}

/* ---- touching memory that may be revoked under us ---- */

static __thread sigjmp_buf revoked;

static void on_revoked(int sig)
{
	(void)sig;
	siglongjmp(revoked, 1);
}

static void survive_revocation(void)
{
	struct sigaction action = { .sa_handler = on_revoked };

	MUST(!sigaction(SIGBUS, &action, NULL));
}

/* Every word is the generation: 1, or 0 when not, or -1 when cut off. */
static int holds_generation(const volatile uint64_t *p, uint64_t generation)
{
	int i;

	if (sigsetjmp(revoked, 1))
		return -1;
	for (i = 0; i < WORDS; i++)
		if (p[i] != generation)
			return 0;
	return 1;
}

/* ---- the writer ---- */

static void fill_and_publish(struct arena *a, uint32_t *seed)
{
	struct tensorarena_acquire acq;
	volatile uint64_t *p;
	uint64_t nbytes = (1 + random_below(seed, 3)) * CHUNK;
	int err, i;

	err = acquire(a, nbytes, &acq);
	if (err) {
		MUST(err == -EAGAIN);
		poll_for(a->fd, POLLOUT, 2);
		return;
	}
	p = (uint64_t *)(a->map + acq.offset);
	for (i = 0; i < WORDS; i++)
		p[i] = acq.generation;
	if (!random_below(seed, 8)) {
		MUST(!abort_slot(a, acq.slot, acq.generation));
		return;
	}
	MUST(publish(a, acq.slot, acq.generation, nbytes) >= 0);
	if (random_below(seed, 8))
		return;
	err = retract(a, acq.slot, acq.generation);
	MUST(err >= 0 || err == -ESTALE);
}

/* Throws out whoever has waited too long for anybody's good. */
static void evict_somebody(struct arena *a, uint32_t *seed)
{
	struct tensorarena_reader_stats row[8];
	struct tensorarena_stats st = { .readers = (uintptr_t)row,
					.row_bytes = sizeof(row[0]),
					.nr_readers = ARRAY_SIZE(row) };
	uint32_t n;
	int err;

	MUST(!request(a->fd, TENSORARENA_STATS, &st));
	MUST(st.free + st.writing + st.published == SLOTS);
	n = st.nr_readers < ARRAY_SIZE(row) ? st.nr_readers : ARRAY_SIZE(row);
	if (!n)
		return;
	n = random_below(seed, n);
	err = row[n].reader ? evict(a, row[n].reader, 0) :
			      evict(a, row[n].seat, TENSORARENA_EVICT_SEAT);
	MUST(err >= 0 || err == -ESTALE);
}

static void write_something(struct arena *a, uint32_t *seed)
{
	struct tensorarena_populate populate = {
		.nbytes = CHUNK,
		.slots = random_below(seed, SLOTS),
	};
	struct tensorarena_trim trim = {
		.keep_bytes = random_below(seed, SLOTS) * CHUNK,
	};
	int err;

	switch (random_below(seed, 40)) {
	case 0:
		err = request(a->fd, TENSORARENA_TRIM, &trim);
		MUST(!err || err == -EBUSY);
		break;
	case 1:
		MUST(!request(a->fd, TENSORARENA_POPULATE, &populate));
		break;
	case 2:
		evict_somebody(a, seed);
		break;
	case 3:
		MUST(abort_slot(a, random_below(seed, SLOTS), 3) != -EIO);
		break;
	default:
		fill_and_publish(a, seed);
		break;
	}
}

struct writer_thread {
	pthread_t thread;
	struct arena *a;
	uint32_t seed;
};

static void *write_much(void *arg)
{
	struct writer_thread *w = arg;
	int i;

	for (i = 0; i < ROUNDS; i++)
		write_something(w->a, &w->seed);
	return NULL;
}

/* ---- the readers ---- */

/* What can become of a reader's call once it is no longer one. */
static bool is_over(int err)
{
	return err == -EOWNERDEAD || err == -EPIPE || err == -ESHUTDOWN;
}

/* Reads until thrown out, or tired; false when the arena is at its end. */
static bool read_for_a_while(const struct arena *a, uint32_t *seed)
{
	struct tensorarena_borrow held[SLOTS];
	struct reader r;
	uint32_t n = 0, i;
	int err, rounds;

	err = attach(a, &r);
	if (err) {
		MUST(err == -EPIPE || err == -EACCES);
		return false;
	}
	r.map = mmap(NULL, r.bytes, PROT_READ, MAP_SHARED, r.fd, 0);
	MUST(r.map != MAP_FAILED || is_over(-errno));
	for (rounds = 20 + (int)random_below(seed, 200); rounds; rounds--) {
		if (r.map == MAP_FAILED)
			break;
		if (n < SLOTS && !(err = next(&r, &held[n])))
			n++;
		else if (n < SLOTS && is_over(err))
			break;
		else if (n < SLOTS)
			MUST(err == -EAGAIN);
		if (!n) {
			sched_yield();
			continue;
		}
		i = random_below(seed, n);
		err = holds_generation((uint64_t *)(r.map + held[i].offset),
				       held[i].ticket.generation);
		MUST(err);
		if (err < 0)
			break;
		if (!random_below(seed, 3))
			continue;
		err = release(&r, &held[i].ticket);
		if (is_over(err))
			break;
		MUST(!err);
		held[i] = held[--n];
	}
	if (!random_below(seed, 2))
		MUST((err = detach(&r)) >= 0 || is_over(err));
	if (r.map != MAP_FAILED)
		MUST(!munmap(r.map, r.bytes));
	MUST(!close(r.fd));
	return true;
}

struct reader_plan {
	const struct arena *a;
	uint32_t seed;
};

static void read_much(int sock, void *arg)
{
	struct reader_plan *plan = arg;
	uint32_t seed = plan->seed;

	survive_revocation();
	while (read_for_a_while(plan->a, &seed)) {
		/* A child that lives a little keeps what it inherited. */
		if (!random_below(&seed, 4)) {
			pid_t pid = fork();

			MUST(pid >= 0);
			if (!pid) {
				usleep(random_below(&seed, 2000));
				_exit(0);
			}
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	tell(sock, 1);
}

TEST(everything_at_once)
{
	struct writer_thread w[3];
	struct reader_plan plan[READERS];
	struct child c[READERS];
	double end;
	struct tensorarena_stats st;
	struct arena a;
	uint32_t i, kills = 0, seed = 20;
	int status;

	arena_create(&a, SLOTS, 3 * CHUNK, 2);
	for (i = 0; i < READERS; i++) {
		plan[i] = (struct reader_plan){ .a = &a, .seed = i + 1 };
		c[i] = child_start(read_much, &plan[i], a.fd);
	}
	arena_map(&a);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].a = &a;
		w[i].seed = 100 + i;
		MUST(!pthread_create(&w[i].thread, NULL, write_much, &w[i]));
	}
	/* Meanwhile, one reader after the other is killed and replaced. */
	for (kills = 0; kills < 20; kills++) {
		usleep(10000 + random_below(&seed, 30000));
		i = kills % READERS;
		/* It can only have ended of itself when something was wrong. */
		EXPECT_EQ(0, waitpid(c[i].pid, &status, WNOHANG));
		child_kill(&c[i]);
		MUST(!close(c[i].sock));
		plan[i].seed = 1000 + kills;
		c[i] = child_start(read_much, &plan[i], a.fd);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++)
		MUST(!pthread_join(w[i].thread, NULL));
	st = stats_get(&a);
	TH_LOG("%llu puts, %llu declines, %llu releases, %llu readers, %llu "
	       "died, %llu evicted",
	       (unsigned long long)st.puts,
	       (unsigned long long)st.declined_no_slot,
	       (unsigned long long)st.released, (unsigned long long)st.attached,
	       (unsigned long long)st.reclaimed_dead_readers,
	       (unsigned long long)st.evicted);
	EXPECT_GT(st.puts, SLOTS);
	EXPECT_GT(st.attached, READERS);

	MUST(!munmap(a.map, a.bytes));
	MUST(!close(a.fd));
	for (i = 0; i < READERS; i++) {
		EXPECT_EQ(1, must_hear(c[i].sock));
		EXPECT_TRUE(child_ended_well(&c[i]));
	}
	end = now_ms() + HANG_MS;
	while (info_get().arenas && now_ms() < end)
		usleep(1000);
	EXPECT_EQ(0, info_get().arenas);
}

TEST_HARNESS_MAIN
