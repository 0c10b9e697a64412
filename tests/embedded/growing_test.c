// SPDX-License-Identifier: MIT
/* A slot's memory grows without the lock: what others do meanwhile. */
#include <pthread.h>

#include "fixture.h"

static struct arena arena;
static pthread_t thread;
static struct tensorarena_detach detached;
static int detach_result;

static void *detach_writer(void *arg)
{
	(void)arg;
	detach_result = writer_call(&arena, TENSORARENA_DETACH, &detached);
	return NULL;
}

/* Returns once the writer has detached, but for taking its mapping away. */
static void detach_meanwhile(void)
{
	struct tensorarena_slot_ref ref = { 0 };

	test_growing = NULL;
	assert_int_equal(pthread_create(&thread, NULL, detach_writer, NULL), 0);
	while (writer_call(&arena, TENSORARENA_ABORT, &ref) != -ESHUTDOWN)
		usleep(1000);
}

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	test_growing = detach_meanwhile;
	return 0;
}

/* The slot was its builder's to give back. */
static void assert_all_free(void)
{
	const struct ta_embedded *e = (const struct ta_embedded *)arena.port;

	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(detach_result, 0);
	assert_int_equal(detached.freed, 0);
	assert_int_equal(e->slots.nr_state[TA_SLOT_FREE], arena.args.slots);
	arena_close(&arena);
}

static void a_slot_acquired_while_the_writer_detaches_is_not_lost(void **state)
{
	struct tensorarena_acquire acq;

	(void)state;
	assert_int_equal(acquire(&arena, MIB, &acq), -ESHUTDOWN);
	assert_all_free();
}

static void a_slot_populated_while_the_writer_detaches_is_not_lost(void **state)
{
	struct tensorarena_populate pop = { .nbytes = MIB, .slots = 2 };

	(void)state;
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop),
			 -ESHUTDOWN);
	assert_all_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_slot_acquired_while_the_writer_detaches_is_not_lost,
			setup),
		cmocka_unit_test_setup(
			a_slot_populated_while_the_writer_detaches_is_not_lost,
			setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded growing", tests, NULL,
					   NULL);
}
