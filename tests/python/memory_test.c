// SPDX-License-Identifier: MIT
/*
 * The half of the extension that knows no Python, with many threads at once.
 * What dies anywhere is buried once, in time, and nowhere it would wait.
 */
#include <errno.h>
#include <pthread.h>
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

static struct corpse crowd[THREADS][ROUNDS];

static void *push_all(void *arg)
{
	struct corpse *corpse = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		corpse[i].dead.bury = bury;
		reaper_push(&corpse[i].dead);
		if (i % 64 == 63)
			reaper_drain();
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
	reaper_drain();
	for (i = 0; i < THREADS; i++)
		for (j = 0; j < ROUNDS; j++)
			assert_int_equal(times(&crowd[i][j]), 1);
	assert_false(reaper_is_busy());
}

static void what_nobody_drains_the_reaper_does(void **state)
{
	static struct corpse corpse = { .dead.bury = bury };

	(void)state;
	reaper_start();
	reaper_push(&corpse.dead);
	await(times(&corpse) == 1);
}

static void what_refuses_is_tried_again(void **state)
{
	static struct corpse corpse = { .dead.bury = bury, .refusals = 5 };

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
	static struct corpse corpse = { .dead.bury = refuse };
	int i;

	(void)state;
	refuses = true;
	reaper_start();
	reaper_push(&corpse.dead);
	for (i = 0; i < 50; i++)
		reaper_drain();
	__atomic_store_n(&refuses, false, __ATOMIC_RELEASE);
	await(times(&corpse) == 1);
}

static bool look(struct dead *dead)
{
	struct corpse *corpse = (struct corpse *)dead;

	/* Who buries last must not keep others from burying. */
	reaper_drain();
	return bury(&corpse->dead);
}

static void what_may_wait_is_buried_without_the_lock(void **state)
{
	static struct corpse corpse = {
		.dead = { .bury = look, .last = true },
	};

	(void)state;
	reaper_push(&corpse.dead);
	reaper_drain();
	await(times(&corpse) == 1);
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
	pair->writer = end_new(writer, NULL);
	pair->reader = end_new(NULL, reader);
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
			reaper_drain();
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
			_exit(reaper_is_running() || reaper_is_busy());
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
	(void)state;
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
		cmocka_unit_test(slots_come_back_from_whatever_thread),
		cmocka_unit_test(
			closing_waits_for_nobody_and_is_done_by_the_last),
		cmocka_unit_test(forking_among_busy_threads_does_no_harm),
	};

	return run_all(tests, setup, NULL);
}
