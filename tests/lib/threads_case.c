// SPDX-License-Identifier: MIT
/* The threads a writer copies with: when there are any, and what a fork does. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "tasks.h"

/* Large enough for threads, whatever the table says. */
#define LARGE (16 * MIB)

/* The embedded engine's server. */
static uint32_t server_threads(void)
{
	return test_engine() == TA_ENGINE_EMBEDDED ? 1 : 0;
}

static void drain(struct ta_reader *reader, uint32_t count, uint64_t seed)
{
	struct ta_view *view;

	while (count--) {
		assert_ok(ta_next(reader, HANG_MS, &view));
		assert_true(is_pattern(view->data, view->nbytes, seed));
		assert_ok(ta_release(view));
	}
}

/* Sanitizers keep books of their own about memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_KIB INT64_MAX
#else
#define MOST_KIB 100
#endif

/* The reader is another process, or it would count as well. */
static void carry_small_tensors(struct arena *arena)
{
	struct ta_options o = test_options(8, LARGE, 1);
	uint64_t i;

	assert_int_equal(o.copy_threads, 0);
	arena_open(arena, &o, 1);
	actor_drain_start(&arena->actor[0], 100);
	for (i = 0; i < 100; i++)
		assert_ok(put_when_free(arena->writer, 100 * i, i, NULL));
	assert_ok(actor_drain_end(&arena->actor[0]));
}

static void small_tensors_cost_no_thread_and_little_memory(void **state)
{
	struct arena first, second;
	uint32_t tasks;
	int64_t kib;

	(void)state;
	/* With the first come things that a process has only once. */
	carry_small_tensors(&first);
	tasks = count_tasks();
	kib = (int64_t)own_kib();
	carry_small_tensors(&second);
	assert_int_equal(count_tasks(), tasks + server_threads());
	expect_copiers(0);
	/* It may have become less: the C library gives back what is unused. */
	kib = (int64_t)own_kib() - kib;
	print_message("# %lld KiB\n", (long long)kib);
	assert_true(kib < MOST_KIB);
	arena_close(&second);
	arena_close(&first);
}

static void large_tensors_start_threads_that_end_with_the_writer(void **state)
{
	struct ta_options o = test_options(1, LARGE, 1);
	struct ta_reader *reader;
	struct arena arena;

	(void)state;
	o.copy_threads = 4;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	expect_copiers(0);
	assert_ok(put_pattern(arena.writer, LARGE, 1, NULL));
	expect_copiers(3);
	drain(reader, 1, 1);
	assert_ok(ta_set_copy_threads(arena.writer, 2));
	expect_copiers(1);
	assert_ok(put_pattern(arena.writer, LARGE, 2, NULL));
	drain(reader, 1, 2);
	assert_ok(ta_set_copy_threads(arena.writer, 1));
	expect_copiers(0);
	assert_ok(put_pattern(arena.writer, LARGE, 3, NULL));
	drain(reader, 1, 3);
	expect_copiers(0);
	assert_ok(ta_set_copy_threads(arena.writer, 0));
	assert_err(ta_set_copy_threads(arena.writer, 65), -EINVAL);
	assert_ok(ta_set_copy_threads(arena.writer, 64));
	assert_ok(put_pattern(arena.writer, LARGE, 4, NULL));
	drain(reader, 1, 4);
	ta_reader_close(reader);
	arena_close(&arena);
	expect_copiers(0);
}

struct puts {
	struct ta_writer *writer;
	pthread_t thread;
	uint64_t seed;
	int err;
};

static void *put_many(void *arg)
{
	struct puts *p = arg;
	int i;

	for (i = 0; i < 6 && !p->err; i++)
		p->err = put_when_free(p->writer, 5 * MIB + p->seed, p->seed,
				       NULL);
	return NULL;
}

static void large_puts_at_once_all_arrive(void **state)
{
	struct ta_options o = test_options(4, 6 * MIB, 1);
	struct puts puts[6];
	struct arena arena;
	size_t i;

	(void)state;
	o.copy_threads = 3;
	arena_open(&arena, &o, 1);
	actor_drain_start(&arena.actor[0], 6 * ARRAY_SIZE(puts));
	for (i = 0; i < ARRAY_SIZE(puts); i++) {
		puts[i] = (struct puts){ .writer = arena.writer, .seed = i };
		assert_int_equal(pthread_create(&puts[i].thread, NULL, put_many,
						&puts[i]),
				 0);
	}
	for (i = 0; i < ARRAY_SIZE(puts); i++) {
		assert_int_equal(pthread_join(puts[i].thread, NULL), 0);
		assert_ok(puts[i].err);
	}
	assert_ok(actor_drain_end(&arena.actor[0]));
	arena_close(&arena);
}

/* Exits 0 when the inherited writer is refused and can be closed. */
static int use_inherited(struct ta_writer *writer, struct ta_loan *loan)
{
	const struct ta_part part = { "x", 1, 1, 0 };
	const uint64_t id = 1;

	if (ta_put_v(writer, &part, 1, NULL, NULL) != -EIO ||
	    ta_put_v_to(writer, &id, 1, &part, 1, NULL, NULL) != -EIO ||
	    ta_loan_write(loan, 0, "x", 1) != -EIO ||
	    ta_set_copy_threads(writer, 3) != -EIO)
		return 1;
	ta_writer_close(writer);
	return 0;
}

static void expect_child_well(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("the child ended with status 0x%x", status);
}

static void a_child_may_close_a_writer_that_has_threads(void **state)
{
	struct ta_options o = test_options(2, LARGE, 1);
	struct ta_reader *reader;
	struct ta_loan *loan;
	struct arena arena;
	pid_t child;

	(void)state;
	o.copy_threads = 4;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_ok(put_pattern(arena.writer, LARGE, 1, NULL));
	drain(reader, 1, 1);
	assert_ok(ta_loan(arena.writer, 1, &loan));
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(use_inherited(arena.writer, loan));
	expect_child_well(child);
	/* The parent's threads are as they were. */
	expect_copiers(3);
	assert_ok(ta_abort(loan));
	assert_ok(put_pattern(arena.writer, LARGE, 2, NULL));
	drain(reader, 1, 2);
	ta_reader_close(reader);
	arena_close(&arena);
}

struct stream {
	struct ta_writer *writer;
	int stop;
	int err;
};

static void *put_until_told(void *arg)
{
	struct stream *s = arg;

	while (!s->err && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		s->err = put_when_free(s->writer, 4 * MIB, 7, NULL);
	return NULL;
}

/* The pool is in any state at the fork; the child must not wait for it. */
static void a_fork_in_the_middle_of_copies_is_safe(void **state)
{
	struct ta_options o = test_options(3, 4 * MIB, 1);
	struct stream stream = { 0 };
	struct ta_loan *loan;
	struct arena arena;
	pthread_t thread;
	pid_t child;
	int i;

	(void)state;
	o.copy_threads = 4;
	arena_open(&arena, &o, 1);
	assert_ok(ta_loan(arena.writer, 1, &loan));
	stream.writer = arena.writer;
	actor_drain_start(&arena.actor[0], UINT32_MAX);
	assert_int_equal(pthread_create(&thread, NULL, put_until_told, &stream),
			 0);
	for (i = 0; i < 30; i++) {
		fflush(NULL);
		child = fork();
		assert_true(child >= 0);
		if (!child)
			_exit(use_inherited(arena.writer, loan));
		expect_child_well(child);
	}
	__atomic_store_n(&stream.stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ok(stream.err);
	actor_kill(&arena.actor[0]);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			small_tensors_cost_no_thread_and_little_memory),
		cmocka_unit_test(
			large_tensors_start_threads_that_end_with_the_writer),
		cmocka_unit_test(large_puts_at_once_all_arrive),
		cmocka_unit_test(a_child_may_close_a_writer_that_has_threads),
		cmocka_unit_test(a_fork_in_the_middle_of_copies_is_safe),
	};

	return run_cases(argc, argv, tests);
}
