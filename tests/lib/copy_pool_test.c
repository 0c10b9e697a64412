// SPDX-License-Identifier: MIT
/* The pool: who works, when it returns, and what its threads are at rest. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <lib/copy_pool.h>
#include <tensorarena.h>

#include "tasks.h"
#include "test.h"

#define HANG_MS 30000
#define MAGIC 0x7a5c1e

/* Work of so many shares, which stays until so many threads are in it. */
struct work {
	uint32_t magic;
	uint32_t shares;
	uint32_t wait_for;
	uint32_t linger_ms; /* then, so that more could come */
	_Atomic uint32_t taken;
	_Atomic uint32_t inside;
	_Atomic uint32_t most;
	_Atomic uint32_t done;
	/* What is not atomic must be visible to whoever called. */
	uint32_t result[1024];
};

static struct work make_work(uint32_t shares, uint32_t wait_for)
{
	return (struct work){
		.magic = MAGIC,
		.shares = shares,
		.wait_for = wait_for,
	};
}

static void gather_inside(struct work *work)
{
	uint32_t inside = atomic_fetch_add(&work->inside, 1) + 1;
	uint32_t most = atomic_load(&work->most);
	int waited = 0;

	while (most < inside &&
	       !atomic_compare_exchange_weak(&work->most, &most, inside))
		;
	while (atomic_load(&work->most) < work->wait_for && waited++ < HANG_MS)
		nap_ms(1);
	if (work->linger_ms)
		nap_ms(work->linger_ms);
}

static bool do_work(void *arg)
{
	struct work *work = arg;
	bool any = false;
	uint32_t i;

	if (work->magic != MAGIC)
		abort();
	while ((i = atomic_fetch_add(&work->taken, 1)) < work->shares) {
		if (!any)
			gather_inside(work);
		any = true;
		work->result[i % 1024] = i + 1;
		atomic_fetch_add(&work->done, 1);
	}
	if (any)
		atomic_fetch_sub(&work->inside, 1);
	return any;
}

/* That all shares were done once, and nobody is at it any more. */
static void expect_done(struct work *work)
{
	uint32_t i;

	assert_int_equal(work->done, work->shares);
	assert_int_equal(work->inside, 0);
	for (i = 0; i < work->shares && i < 1024; i++)
		assert_int_equal(work->result[i], i + 1);
}

static struct ta_pool *make_pool(uint32_t threads)
{
	struct ta_pool *pool = ta_pool_create(NULL);

	assert_non_null(pool);
	expect_copiers(0);
	assert_int_equal(ta_pool_resize(pool, threads), threads);
	return pool;
}

static void helpers_come_and_all_is_done_once(void **state)
{
	struct ta_pool *pool = make_pool(3);
	struct work work = make_work(100, 4);

	(void)state;
	ta_pool_run(pool, 3, do_work, &work);
	expect_done(&work);
	assert_int_equal(work.most, 4);
	ta_pool_destroy(pool, false);
	expect_copiers(0);
}

static void a_pool_without_threads_leaves_all_to_the_caller(void **state)
{
	struct ta_pool *pool = make_pool(0);
	struct work work = make_work(10, 1);

	(void)state;
	ta_pool_run(pool, 5, do_work, &work);
	expect_done(&work);
	assert_int_equal(work.most, 1);
	ta_pool_destroy(pool, false);
}

/* The work is gone when the call returns: a late thread must not look at it. */
static void late_threads_touch_nothing(void **state)
{
	struct ta_pool *pool = make_pool(4);
	struct work *work;
	int i;

	(void)state;
	for (i = 0; i < 5000; i++) {
		work = malloc(sizeof(*work));
		assert_non_null(work);
		*work = make_work(1 + i % 3, 0);
		/* Now and then, all end at about the same time. */
		if (i % 20 == 0)
			*work = make_work(5, 5);
		ta_pool_run(pool, 4, do_work, work);
		expect_done(work);
		work->magic = 0;
		free(work);
	}
	ta_pool_destroy(pool, false);
}

struct caller {
	struct ta_pool *pool;
	pthread_t thread;
	uint32_t helpers;
	uint32_t runs;
	uint32_t wrong;
};

static void *call_often(void *arg)
{
	struct caller *caller = arg;
	uint32_t i, k;

	for (i = 0; i < caller->runs; i++) {
		struct work work = make_work(1 + i % 40, 0);

		ta_pool_run(caller->pool, caller->helpers, do_work, &work);
		caller->wrong += work.done != work.shares || work.inside;
		for (k = 0; k < work.shares; k++)
			caller->wrong += work.result[k] != k + 1;
	}
	return NULL;
}

static void start_callers(struct caller *caller, uint32_t nr,
			  struct ta_pool *pool, uint32_t helpers, uint32_t runs)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		caller[i] = (struct caller){
			.pool = pool,
			.helpers = helpers,
			.runs = runs,
		};
		assert_int_equal(pthread_create(&caller[i].thread, NULL,
						call_often, &caller[i]),
				 0);
	}
}

static void end_callers(struct caller *caller, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		assert_int_equal(pthread_join(caller[i].thread, NULL), 0);
		assert_int_equal(caller[i].wrong, 0);
	}
}

/* Though others are awake: some other caller sees to that. */
static void no_more_help_than_were_asked_for(void **state)
{
	struct ta_pool *pool = make_pool(6);
	struct caller other;
	int i;

	(void)state;
	start_callers(&other, 1, pool, 6, 20000);
	for (i = 0; i < 50; i++) {
		struct work work = make_work(64, 3);

		work.linger_ms = 2;
		ta_pool_run(pool, 2, do_work, &work);
		expect_done(&work);
		assert_int_equal(work.most, 3);
	}
	end_callers(&other, 1);
	ta_pool_destroy(pool, false);
}

/* More of them than the pool keeps apart. */
static void many_callers_at_once_all_get_their_work_done(void **state)
{
	struct ta_pool *pool = make_pool(3);
	struct caller caller[8];

	(void)state;
	start_callers(caller, 8, pool, 3, 1000);
	end_callers(caller, 8);
	ta_pool_destroy(pool, false);
}

/* A thread that is done with one goes on to the other. */
static void threads_help_the_second_caller_too(void **state)
{
	struct ta_pool *pool = make_pool(2);
	struct work mine = make_work(2, 2);
	struct caller caller;

	(void)state;
	start_callers(&caller, 1, pool, 2, 200);
	ta_pool_run(pool, 2, do_work, &mine);
	expect_done(&mine);
	assert_in_range(mine.most, 2, 3);
	end_callers(&caller, 1);
	ta_pool_destroy(pool, false);
}

static void the_size_can_change_while_callers_run(void **state)
{
	static const uint32_t sizes[] = { 1, 5, 2, 0, 3, 3, TA_POOL_MAX, 1 };
	struct ta_pool *pool = make_pool(2);
	struct caller caller[2];
	size_t i;

	(void)state;
	start_callers(caller, 2, pool, 5, 3000);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(ta_pool_resize(pool, sizes[i]), sizes[i]);
	end_callers(caller, 2);
	expect_copiers(1);
	ta_pool_destroy(pool, false);
	expect_copiers(0);
}

static void at_rest_threads_sleep_and_take_no_time(void **state)
{
	struct ta_pool *pool = make_pool(3);
	struct work work = make_work(100, 4);
	struct copiers before, after;

	(void)state;
	ta_pool_run(pool, 3, do_work, &work);
	await_sleep(3, &before);
	nap_ms(300);
	await_sleep(3, &after);
	/* One tick is 10 ms; spinning would be 30 a thread. */
	assert_in_range(after.ticks - before.ticks, 0, 3);
	ta_pool_destroy(pool, false);
}

static void threads_take_no_signals(void **state)
{
	struct ta_pool *pool = make_pool(2);
	struct copiers copiers;
	sigset_t before, after;
	int signal;

	(void)state;
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	await_sleep(2, &copiers);
	for (signal = 1; signal < 32; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			assert_true(copiers.blocked >> (signal - 1) & 1);
	/* Those of the caller are as they were. */
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	for (signal = 1; signal < 32; signal++)
		assert_int_equal(sigismember(&after, signal),
				 sigismember(&before, signal));
	ta_pool_destroy(pool, false);
}

static void threads_run_where_they_are_told(void **state)
{
	struct ta_cpus here = { 0 }, one = { 0 };
	struct copiers copiers;
	struct ta_pool *pool;
	size_t cpu = 0;

	(void)state;
	assert_int_not_equal(sched_getaffinity(0, sizeof(here.set), here.set),
			     -1);
	while (!CPU_ISSET_S(cpu, sizeof(here.set), here.set))
		cpu++;
	CPU_SET_S(cpu, sizeof(one.set), one.set);
	pool = ta_pool_create(&one);
	assert_non_null(pool);
	assert_int_equal(ta_pool_resize(pool, 2), 2);
	await_sleep(2, &copiers);
	assert_int_equal(CPU_COUNT(&copiers.cpus), 1);
	assert_true(CPU_ISSET(cpu, &copiers.cpus));
	ta_pool_destroy(pool, false);
}

static void a_pool_does_with_the_threads_it_can_have(void **state)
{
	struct ta_pool *pool = make_pool(1);
	struct work work = make_work(50, 2);
	uint32_t nr;

	(void)state;
	if (!forbid_threads())
		skip();
	nr = ta_pool_resize(pool, 5);
	allow_threads();
	assert_int_equal(nr, 1);
	expect_copiers(1);
	ta_pool_run(pool, 5, do_work, &work);
	expect_done(&work);
	/* Later it may be different. */
	assert_int_equal(ta_pool_resize(pool, 3), 3);
	ta_pool_destroy(pool, false);
}

static void no_pool_is_nothing_to_destroy(void **state)
{
	(void)state;
	ta_pool_destroy(NULL, false);
	ta_pool_destroy(NULL, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helpers_come_and_all_is_done_once),
		cmocka_unit_test(no_more_help_than_were_asked_for),
		cmocka_unit_test(
			a_pool_without_threads_leaves_all_to_the_caller),
		cmocka_unit_test(late_threads_touch_nothing),
		cmocka_unit_test(many_callers_at_once_all_get_their_work_done),
		cmocka_unit_test(threads_help_the_second_caller_too),
		cmocka_unit_test(the_size_can_change_while_callers_run),
		cmocka_unit_test(at_rest_threads_sleep_and_take_no_time),
		cmocka_unit_test(threads_take_no_signals),
		cmocka_unit_test(threads_run_where_they_are_told),
		cmocka_unit_test(a_pool_does_with_the_threads_it_can_have),
		cmocka_unit_test(no_pool_is_nothing_to_destroy),
	};

	return run_all(tests, NULL, NULL);
}
