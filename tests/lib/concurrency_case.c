// SPDX-License-Identifier: MIT
/* Many at once: threads of one writer, threads of one reader, processes. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define THREADS 4
#define PUTS 100 /* each thread */

struct load {
	struct ta_writer *writer;
	uint64_t first_seed;
	int err;
};

static void *put_many(void *arg)
{
	struct load *load = arg;
	uint64_t i;

	for (i = 0; i < PUTS && !load->err; i++) {
		uint64_t seed = load->first_seed + i;

		load->err = put_when_free(load->writer, seed * 977 % 100000,
					  seed, NULL);
	}
	return NULL;
}

static void four_threads_put_to_four_processes(void **state)
{
	struct ta_options o = test_options(6, 100000, 4);
	pthread_t thread[THREADS];
	struct load load[THREADS];
	struct ta_stats st;
	struct arena arena;
	unsigned int i;

	(void)state;
	arena_open(&arena, &o, 4);
	for (i = 0; i < arena.actors; i++)
		actor_drain_start(&arena.actor[i], THREADS * PUTS);
	for (i = 0; i < THREADS; i++) {
		load[i] = (struct load){ arena.writer, 1000 * i, 0 };
		assert_int_equal(pthread_create(&thread[i], NULL, put_many,
						&load[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_ok(load[i].err);
	}
	for (i = 0; i < arena.actors; i++) {
		assert_ok(actor_drain_end(&arena.actor[i]));
		assert_err(actor_next(&arena.actor[i], 0, 0), -EAGAIN);
	}
	st = stats_of(arena.writer);
	assert_int_equal(st.puts, THREADS * PUTS);
	assert_int_equal(st.released, 4 * THREADS * PUTS);
	assert_int_equal(st.free, 6);
	arena_close(&arena);
}

struct share {
	struct ta_reader *reader;
	uint32_t got;
	int err;
};

/* Takes what it can get until the writer is gone. */
static void *read_share(void *arg)
{
	struct share *share = arg;
	struct ta_view *view, *again;
	uint64_t seed;
	int err;

	for (;;) {
		err = ta_next(share->reader, -1, &view);
		if (err)
			break;
		err = ta_view(share->reader, &view->ticket, &again);
		if (err)
			break;
		err = ta_release(view);
		if (err)
			break;
		memcpy(&seed, again->tensor.tag, sizeof(seed));
		if (!is_pattern(again->data, again->nbytes, seed))
			err = -EBADMSG;
		err = ta_release(again) ?: err;
		if (err)
			break;
		share->got++;
	}
	share->err = err;
	return NULL;
}

static void threads_of_one_reader_share_its_publications(void **state)
{
	struct ta_options o = test_options(6, 100000, 1);
	pthread_t writer[THREADS], thread[THREADS];
	struct share share[THREADS];
	struct load load[THREADS];
	struct ta_reader *reader;
	struct ta_stats st;
	struct arena arena;
	uint32_t got = 0;
	unsigned int i;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	for (i = 0; i < THREADS; i++) {
		share[i] = (struct share){ reader, 0, 0 };
		load[i] = (struct load){ arena.writer, 1000 * i, 0 };
		assert_int_equal(pthread_create(&thread[i], NULL, read_share,
						&share[i]),
				 0);
		assert_int_equal(pthread_create(&writer[i], NULL, put_many,
						&load[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(writer[i], NULL), 0);
		assert_ok(load[i].err);
	}
	await_stats(arena.writer, st, st.free == 6);
	assert_int_equal(st.released, THREADS * PUTS);
	arena_close(&arena);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_err(share[i].err, -EPIPE);
		got += share[i].got;
	}
	assert_int_equal(got, THREADS * PUTS);
	ta_reader_close(reader);
}

static void readers_that_come_and_go_disturb_nobody(void **state)
{
	struct ta_options o = test_options(6, 100000, 2);
	struct ta_stats st;
	struct arena arena;
	struct load load;
	pthread_t thread;
	struct actor guest;
	int i;

	(void)state;
	arena_open(&arena, &o, 2);
	actor_drain_start(&arena.actor[0], PUTS);
	actor_drain_start(&arena.actor[1], PUTS);
	load = (struct load){ arena.writer, 0, 0 };
	assert_int_equal(pthread_create(&thread, NULL, put_many, &load), 0);
	for (i = 0; i < 10; i++) {
		guest = actor_start();
		assert_ok(actor_attach(&guest, ta_handle(arena.writer)));
		if (i % 2) {
			actor_drain_start(&guest, UINT32_MAX);
			actor_kill(&guest);
			continue;
		}
		/* Not while it looks at a view: that may be revoked. */
		assert_ok(ta_evict(arena.writer, actor_reader_id(&guest)));
		assert_err(actor_next(&guest, 0, HANG_MS), -EOWNERDEAD);
		actor_stop(&guest);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ok(load.err);
	assert_ok(actor_drain_end(&arena.actor[0]));
	assert_ok(actor_drain_end(&arena.actor[1]));
	await_stats(arena.writer, st, st.free == 6 && st.readers == 2);
	assert_int_equal(st.reclaimed_dead_readers, 5);
	assert_int_equal(st.evicted, 5);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_threads_put_to_four_processes),
		cmocka_unit_test(threads_of_one_reader_share_its_publications),
		cmocka_unit_test(readers_that_come_and_go_disturb_nobody),
	};

	return run_cases(argc, argv, tests);
}
