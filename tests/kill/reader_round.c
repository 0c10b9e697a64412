// SPDX-License-Identifier: MIT
/*
 * A reader is killed; the writer and another reader live on.  All rounds share
 * one arena, so that what is lost a little at a time is seen, too.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "kill.h"
#include "pattern.h"

#define SLOTS 6
#define SLOT_BYTES (4 * MIB)
#define PUTS 8
/* Memory is counted down to nothing this often. */
#define TRIM_EVERY 16

static struct {
	struct ta_writer *writer;
	struct survivor survivor;
	uint32_t fds; /* open between rounds */
	uint64_t rounds;
	uint64_t puts;
	uint64_t bytes;
} arena;

static void open_arena(void)
{
	struct survivor_report r;
	struct ta_options o;

	ta_options_init(&o);
	o.engine = test_engine();
	o.slots = SLOTS;
	o.slot_bytes = SLOT_BYTES;
	o.flags = TA_NO_MEMORY_CHECK;
	survivor_start(&arena.survivor);
	MUST(!ta_create(&o, &arena.writer, NULL, 0));
	survivor_attach(&arena.survivor, ta_handle(arena.writer));
	MUST(survivor_report(&arena.survivor, false, &r) && !r.attached);
	arena.fds = count_fds();
}

/* ---- tensors, as soon as the victim is there to get them ---- */

struct feeder {
	pthread_t thread;
	uint64_t random;
	volatile bool stop;
	uint32_t fed;
};

static size_t some_bytes(uint64_t *random)
{
	return random_below(random, 4) ? 1 + random_below(random, 64 * KIB) :
					 1 + random_below(random, SLOT_BYTES);
}

static bool victim_is_there(void)
{
	struct ta_stats st;

	MUST(!ta_stats(arena.writer, &st, NULL, 0));
	return st.readers > 1;
}

static void *feed(void *arg)
{
	struct feeder *f = arg;

	while (!f->stop && f->fed < PUTS) {
		size_t bytes;
		int err;

		if (!victim_is_there()) {
			usleep(300);
			continue;
		}
		bytes = some_bytes(&f->random);
		err = put_pattern(arena.writer, bytes, random_next(&f->random),
				  NULL);
		if (err == -EAGAIN) {
			usleep(300);
			continue;
		}
		MUST(!err);
		f->fed++;
		arena.puts++;
		arena.bytes += bytes;
	}
	return NULL;
}

/* ---- whether anything was lost ---- */

static bool all_given_back(struct ta_stats *st)
{
	double end = now_seconds() + HANG_SECONDS;

	do {
		MUST(!ta_stats(arena.writer, st, NULL, 0));
		if (st->readers == 1 && st->free == SLOTS)
			return true;
		usleep(300);
	} while (now_seconds() < end);
	return false;
}

static const char *check_counters(const struct ta_stats *st)
{
	uint64_t left = st->detached + st->evicted + st->reclaimed_dead_readers;

	if (st->writing || st->published)
		return wrong("%u writing, %u published", st->writing,
			     st->published);
	if (st->attached != left + 1)
		return wrong("%lu attached, but %lu left and one is here",
			     st->attached, left);
	if (st->puts != arena.puts || st->put_bytes != arena.bytes)
		return wrong("%lu puts of %lu bytes counted as %lu of %lu",
			     arena.puts, arena.bytes, st->puts, st->put_bytes);
	if (st->aborted || st->unaddressed)
		return wrong("%lu aborted, %lu unaddressed", st->aborted,
			     st->unaddressed);
	/* The survivor has released every one; the victims some. */
	if (st->released < st->puts || st->released > 2 * st->puts)
		return wrong("%lu releases of %lu puts", st->released,
			     st->puts);
	return NULL;
}

/* A page that somebody forgot to give back makes this busy for ever. */
static const char *check_memory(void)
{
	double end = now_seconds() + HANG_SECONDS;
	struct ta_stats st;
	int err;

	do {
		err = ta_trim(arena.writer, 0, NULL);
		if (err != -EBUSY)
			break;
		usleep(1000);
	} while (now_seconds() < end);
	if (err)
		return wrong("trim: %s", ta_strerror(err));
	MUST(!ta_stats(arena.writer, &st, NULL, 0));
	if (st.allocated_bytes)
		return wrong("%lu bytes left after a trim", st.allocated_bytes);
	return NULL;
}

static bool await_fds(void)
{
	double end = now_seconds() + HANG_SECONDS;

	while (count_fds() != arena.fds) {
		if (now_seconds() > end)
			return false;
		usleep(300);
	}
	return true;
}

static const char *audit(uint32_t fed)
{
	struct survivor_report r;
	static uint64_t seen;
	struct ta_stats st;
	const char *why;

	if (!survivor_report(&arena.survivor, false, &r))
		return "the survivor does not answer";
	if (r.bad || r.errors || r.end != -EAGAIN)
		return wrong("the survivor: %lu bad, %lu errors, %s", r.bad,
			     r.errors, ta_strerror(r.end));
	if (r.seen != seen + fed)
		return wrong("the survivor got %lu of %u", r.seen - seen, fed);
	seen = r.seen;
	if (!all_given_back(&st))
		return wrong("after %.0f s: %u readers, %u of %u slots free",
			     HANG_SECONDS, st.readers, st.free, st.slots);
	why = check_counters(&st);
	if (why || arena.rounds % TRIM_EVERY)
		return why;
	why = check_memory();
	/* Built slots have some, too. */
	if (!why && !await_fds())
		why = wrong("%u descriptors, not %u", count_fds(), arena.fds);
	return why;
}

const char *reader_round(const struct blow *blow, uint64_t seed,
			 struct outcome *outcome)
{
	struct feeder feeder = { .random = ~seed };
	struct usher usher = { 0 };
	const char *why;

	if (!arena.writer)
		open_arena();
	arena.rounds++;
	usher_start(&usher, reader_role.name, blow, seed,
		    ta_handle(arena.writer));
	MUST(!pthread_create(&feeder.thread, NULL, feed, &feeder));
	strike(&usher, blow, &reader_role.op[blow->op], outcome);
	feeder.stop = true;
	MUST(!pthread_join(feeder.thread, NULL));
	/* Before its children are gone, which have all it had but its life. */
	why = audit(feeder.fed);
	sweep_up(usher.pid);
	return why;
}

const char *reader_rounds_end(void)
{
	if (!arena.writer)
		return NULL;
	ta_writer_close(arena.writer);
	survivor_stop(&arena.survivor);
	arena.writer = NULL;
	return module_is_empty();
}
