// SPDX-License-Identifier: MIT
/*
 * The half of the extension that knows no Python, with many threads at once.
 * What dies anywhere is buried once, in time, and nowhere it would wait.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <python/src/memory.h>

#include "../lib/test.h"

#define THREADS 4
#define ROUNDS 2000
#define HANG_S 60

static void pause_ms(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	nanosleep(&moment, NULL);
}

#define await(condition)                                                       \
	do {                                                                   \
		time_t await_end_ = time(NULL) + HANG_S;                       \
		while (!(condition)) {                                         \
			if (time(NULL) > await_end_)                           \
				fail_msg("in vain: %s", #condition);           \
			pause_ms();                                            \
		}                                                              \
	} while (0)

/* ---- the reaper by itself ---- */

struct corpse {
	struct dead dead;
	unsigned int times;
	unsigned int refusals;
};

static bool bury(struct dead *dead)
{
	struct corpse *corpse = (struct corpse *)dead;

	if (corpse->refusals) {
		corpse->refusals--;
		return false;
	}
	__atomic_add_fetch(&corpse->times, 1, __ATOMIC_RELAXED);
	return true;
}

static unsigned int times(const struct corpse *corpse)
{
	return __atomic_load_n(&corpse->times, __ATOMIC_ACQUIRE);
}

/* Where most of the dead below go; and some that wait for other processes. */
static struct grave common, far[5];

static struct corpse crowd[THREADS][ROUNDS];

static void *push_all(void *arg)
{
	struct corpse *corpse = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		corpse[i].dead.bury = bury;
		corpse[i].dead.grave = &common;
		reaper_push(&corpse[i].dead);
		if (i % 64 == 63)
			reaper_drain(&common);
	}
	return NULL;
}

static void each_is_buried_once(void **state)
{
	pthread_t thread[THREADS];
	int i, j;

	(void)state;
	reaper_start();
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, push_all,
						crowd[i]),
				 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	reaper_drain(&common);
	for (i = 0; i < THREADS; i++)
		for (j = 0; j < ROUNDS; j++)
			assert_int_equal(times(&crowd[i][j]), 1);
	assert_false(reaper_is_busy(&common));
}

static void what_nobody_drains_the_reaper_does(void **state)
{
	static struct corpse corpse = {
		.dead = { .bury = bury, .grave = &common },
	};

	(void)state;
	reaper_start();
	reaper_push(&corpse.dead);
	await(times(&corpse) == 1);
}

static void what_refuses_is_tried_again(void **state)
{
	static struct corpse corpse = {
		.dead = { .bury = bury, .grave = &common },
		.refusals = 5,
	};

	(void)state;
	reaper_start();
	reaper_push(&corpse.dead);
	await(times(&corpse) == 1);
}

static bool refuses;

static bool refuse(struct dead *dead)
{
	/* In the hands of whoever tries it, where the reaper does not see it. */
	pause_ms();
	return !__atomic_load_n(&refuses, __ATOMIC_ACQUIRE) && bury(dead);
}

/* A caller that has it in his hands must not make the reaper go to sleep. */
static void what_a_caller_gives_up_the_reaper_tries_again(void **state)
{
	static struct corpse corpse = {
		.dead = { .bury = refuse, .grave = &common },
	};
	int i;

	(void)state;
	refuses = true;
	reaper_start();
	reaper_push(&corpse.dead);
	for (i = 0; i < 50; i++)
		reaper_drain(&common);
	__atomic_store_n(&refuses, false, __ATOMIC_RELEASE);
	await(times(&corpse) == 1);
}

static bool look(struct dead *dead)
{
	struct corpse *corpse = (struct corpse *)dead;

	/* Who buries last must not keep others from burying. */
	reaper_drain(&common);
	return bury(&corpse->dead);
}

static void what_may_wait_is_buried_without_the_lock(void **state)
{
	static struct corpse corpse = {
		.dead = { .bury = look, .grave = &common, .last = true },
	};

	(void)state;
	reaper_push(&corpse.dead);
	reaper_drain(&common);
	await(times(&corpse) == 1);
}

struct couple {
	struct corpse corpse;
	struct corpse owner;
};

/* The last that the owner of a grave lived for. */
static bool bury_before_owner(struct dead *dead)
{
	reaper_push(&((struct couple *)dead)->owner.dead);
	/* The reaper looks, and somebody is at the grave. */
	pause_ms();
	return bury(dead);
}

static void who_dies_in_a_callers_hands_the_reaper_buries(void **state)
{
	static struct couple couple[20];
	int i;

	(void)state;
	reaper_start();
	for (i = 0; i < 20; i++) {
		couple[i] = (struct couple){
			.corpse.dead = { .bury = bury_before_owner,
					 .grave = &common },
			.owner.dead = { .bury = bury,
					.grave = &common,
					.last = true },
		};
		reaper_push(&couple[i].corpse.dead);
		reaper_drain(&common);
		await(times(&couple[i].owner) == 1);
	}
}

/* One that waits in a grave for as long as its writer is stopped. */
struct stuck {
	struct corpse corpse;
	sem_t goes_on;
	bool waits;
};

static bool bury_slowly(struct dead *dead)
{
	struct stuck *stuck = (struct stuck *)dead;

	__atomic_store_n(&stuck->waits, true, __ATOMIC_RELEASE);
	sem_wait(&stuck->goes_on);
	return bury(dead);
}

static void push_stuck(struct stuck *stuck, struct grave *grave)
{
	*stuck = (struct stuck){
		.corpse.dead = { .bury = bury_slowly, .grave = grave },
	};
	sem_init(&stuck->goes_on, 0, 0);
	reaper_push(&stuck->corpse.dead);
}

static bool waits(struct stuck *stuck)
{
	return __atomic_load_n(&stuck->waits, __ATOMIC_ACQUIRE);
}

#define NR_FAR (sizeof(far) / sizeof(far[0]))

static void what_waits_in_a_grave_delays_no_other(void **state)
{
	static struct corpse own = {
		.dead = { .bury = bury, .grave = &common },
	};
	static struct corpse next[NR_FAR];
	static struct stuck stuck[NR_FAR];
	size_t i;

	(void)state;
	reaper_start();
	for (i = 0; i < NR_FAR; i++) {
		/* The reaper buries here while it waits in all before. */
		next[i].dead = (struct dead){ .bury = bury, .grave = &far[i] };
		reaper_push(&next[i].dead);
		await(times(&next[i]) == 1);
		push_stuck(&stuck[i], &far[i]);
		await(waits(&stuck[i]));
	}
	reaper_push(&own.dead);
	reaper_drain(&common);
	assert_int_equal(times(&own), 1);
	assert_false(reaper_is_busy(&common));
	for (i = 0; i < NR_FAR; i++) {
		assert_true(reaper_is_busy(&far[i]));
		sem_post(&stuck[i].goes_on);
	}
	for (i = 0; i < NR_FAR; i++) {
		reaper_drain(&far[i]);
		assert_int_equal(times(&stuck[i].corpse), 1);
		assert_false(reaper_is_busy(&far[i]));
	}
}

static void *go_on_soon(void *stuck)
{
	pause_ms();
	sem_post(&((struct stuck *)stuck)->goes_on);
	return NULL;
}

static void a_caller_waits_for_what_another_buries_of_his(void **state)
{
	static struct stuck stuck;
	pthread_t thread;

	(void)state;
	reaper_start();
	push_stuck(&stuck, &far[0]);
	await(waits(&stuck));
	pthread_create(&thread, NULL, go_on_soon, &stuck);
	reaper_drain(&far[0]);
	assert_int_equal(times(&stuck.corpse), 1);
	pthread_join(thread, NULL);
}

static void what_dies_of_others_nearby_a_caller_buries(void **state)
{
	static struct grave other;
	static struct corpse corpse = {
		.dead = { .bury = bury, .grave = &other },
	};

	(void)state;
	grave_init(&other, true);
	reaper_push(&corpse.dead);
	reaper_drain(&common);
	assert_int_equal(times(&corpse), 1);
	grave_close(&other);
}

/* ---- memory ---- */

struct pair {
	struct end *writer;
	struct end *reader;
};

static void open_pair(struct pair *pair, uint32_t slots)
{
	struct ta_options options;
	struct ta_writer *writer;
	struct ta_reader *reader;

	ta_options_init(&options);
	options.engine = TA_ENGINE_EMBEDDED;
	options.slots = slots;
	options.seats = 1;
	options.slot_bytes = 4096;
	assert_ok(ta_create(&options, &writer, NULL, 0));
	assert_ok(ta_attach(ta_handle(writer), &reader));
	pair->writer = end_new(writer, NULL, ta_handle(writer));
	pair->reader = end_new(NULL, reader, ta_handle(writer));
	assert_non_null(pair->writer);
	assert_non_null(pair->reader);
}

static uint32_t free_slots(struct pair *pair)
{
	struct ta_stats stats;

	assert_ok(ta_stats(pair->writer->writer, &stats, NULL, 0));
	return stats.free;
}

static void close_pair(struct pair *pair)
{
	end_close(pair->reader);
	end_close(pair->writer);
}

static struct memory *put_and_view(struct pair *pair)
{
	struct memory *memory = NULL;
	struct ta_ticket ticket;
	struct ta_view *view;
	int err;

	err = ta_put(pair->writer->writer, "bytes", 6, NULL, &ticket);
	/* No slot is free for now. */
	if (err == -EAGAIN)
		return NULL;
	assert_ok(err);
	assert_ok(ta_view(pair->reader->reader, &ticket, &view));
	assert_ok(memory_of_view(pair->reader, view, &memory));
	assert_memory_equal(memory->data, "bytes", 6);
	return memory;
}

/* Where threads leave memory for each other. */
static struct memory *shelf[8];

static void *juggle(void *arg)
{
	struct pair *pair = arg;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		struct memory *memory = put_and_view(pair);
		struct memory *found;

		if (memory) {
			found = memory_at(pair->reader,
					  (uintptr_t)memory->data);
			assert_ptr_equal(found, memory);
			memory_put(found);
		}
		memory = __atomic_exchange_n(&shelf[i % 8], memory,
					     __ATOMIC_ACQ_REL);
		if (memory)
			memory_put(memory);
		if (i % 16 == 15)
			reaper_drain(&pair->reader->grave);
	}
	return NULL;
}

static void slots_come_back_from_whatever_thread(void **state)
{
	pthread_t thread[THREADS];
	struct pair pair;
	int i;

	(void)state;
	open_pair(&pair, 16);
	reaper_start();
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, juggle, &pair), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 8; i++) {
		if (shelf[i])
			memory_put(shelf[i]);
		shelf[i] = NULL;
	}
	await(free_slots(&pair) == 16);
	close_pair(&pair);
}

static void *drop(void *memory)
{
	memory_put(memory);
	return NULL;
}

static void closing_waits_for_nobody_and_is_done_by_the_last(void **state)
{
	struct memory *memory;
	struct pair pair;
	pthread_t thread;
	struct ta_stats stats = { 0 };

	(void)state;
	open_pair(&pair, 1);
	reaper_start();
	memory = put_and_view(&pair);
	end_close(pair.reader);
	assert_memory_equal(memory->data, "bytes", 6);
	assert_int_equal(pthread_create(&thread, NULL, drop, memory), 0);
	pthread_join(thread, NULL);
	await(!ta_stats(pair.writer->writer, &stats, NULL, 0) &&
	      stats.detached == 1);
	end_close(pair.writer);
}

static void *fork_often(void *arg)
{
	bool *failed = arg;
	int i, status;

	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid) {
			end_close_inherited();
			_exit(reaper_is_running() || reaper_is_busy(&common));
		}
		if (waitpid(pid, &status, 0) != pid || status)
			*failed = true;
	}
	return NULL;
}

static void forking_among_busy_threads_does_no_harm(void **state)
{
	pthread_t thread[2];
	bool failed = false;
	struct pair pair;
	int i;

	(void)state;
	open_pair(&pair, 16);
	reaper_start();
	pthread_create(&thread[0], NULL, juggle, &pair);
	pthread_create(&thread[1], NULL, fork_often, &failed);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_false(failed);
	for (i = 0; i < 8; i++) {
		if (shelf[i])
			memory_put(shelf[i]);
		shelf[i] = NULL;
	}
	await(free_slots(&pair) == 16);
	close_pair(&pair);
}

static int setup(void **state)
{
	size_t i;

	(void)state;
	grave_init(&common, true);
	for (i = 0; i < NR_FAR; i++)
		grave_init(&far[i], false);
	return end_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_buried_once),
		cmocka_unit_test(what_nobody_drains_the_reaper_does),
		cmocka_unit_test(what_refuses_is_tried_again),
		cmocka_unit_test(what_a_caller_gives_up_the_reaper_tries_again),
		cmocka_unit_test(what_may_wait_is_buried_without_the_lock),
		cmocka_unit_test(who_dies_in_a_callers_hands_the_reaper_buries),
		cmocka_unit_test(what_waits_in_a_grave_delays_no_other),
		cmocka_unit_test(a_caller_waits_for_what_another_buries_of_his),
		cmocka_unit_test(what_dies_of_others_nearby_a_caller_buries),
		cmocka_unit_test(slots_come_back_from_whatever_thread),
		cmocka_unit_test(
			closing_waits_for_nobody_and_is_done_by_the_last),
		cmocka_unit_test(forking_among_busy_threads_does_no_harm),
	};

	return run_all(tests, setup, NULL);
}
