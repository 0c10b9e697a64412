// SPDX-License-Identifier: MIT
/*
 * Making much memory in several threads: all of it is there, however many
 * threads there were, and a failure of any of them is a failure.
 */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fixture.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define LARGE (100 * MIB)

/* ---- what the threads do, watched and disturbed ---- */

static int threads_started;
/* Threads to refuse after so many; negative: none. */
static int refuse_after;
/* Which call fails, counted from 1; 0: none. */
static int fail_call;
static int fail_with;
static atomic_int calls;
static atomic_ullong made;
static atomic_int unblocked;

int __real_madvise(void *addr, size_t length, int advice);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg);
int __wrap_madvise(void *addr, size_t length, int advice);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg);

int __wrap_madvise(void *addr, size_t length, int advice)
{
	sigset_t blocked;

	if (advice != MADV_POPULATE_WRITE)
		return __real_madvise(addr, length, advice);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (!sigismember(&blocked, SIGUSR1))
		atomic_fetch_add(&unblocked, 1);
	if (atomic_fetch_add(&calls, 1) + 1 == fail_call) {
		errno = fail_with;
		return -1;
	}
	atomic_fetch_add(&made, length);
	return __real_madvise(addr, length, advice);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *arg)
{
	if (refuse_after >= 0 && threads_started >= refuse_after)
		return EAGAIN;
	threads_started++;
	return __real_pthread_create(thread, attr, run, arg);
}

static int cores(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return CPU_COUNT(&set);
}

/* With the arena's own thread started: what is counted is what growing does. */
static void open_large(struct arena *arena)
{
	arena_init(arena, 1);
	arena->args.slots = 1;
	arena->args.slot_bytes = LARGE;
	arena_open(arena);
	threads_started = 0;
}

static int setup(void **state)
{
	(void)state;
	test_headroom = UINT64_MAX;
	refuse_after = -1;
	fail_call = 0;
	fail_with = ENOMEM;
	atomic_store(&calls, 0);
	atomic_store(&made, 0);
	atomic_store(&unblocked, 0);
	return 0;
}

/* Every byte of the slot's file has memory behind it. */
static void assert_all_there(struct arena *arena)
{
	const struct ta_embedded *e = (struct ta_embedded *)arena->port;
	struct stat st;

	assert_int_equal(fstat(e->memory[0].fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= LARGE);
}

static void many_threads_make_a_large_slot_and_one_a_small(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	open_large(&arena);
	assert_int_equal(acquire(&arena, 2 * MIB, &acq), 0);
	assert_int_equal(threads_started, 0);
	assert_int_equal(atomic_load(&calls), 1);
	arena_close(&arena);

	setup(state);
	open_large(&arena);
	assert_int_equal(acquire(&arena, LARGE, &acq), 0);
	assert_int_equal(threads_started + 1, atomic_load(&calls));
	assert_true(threads_started < cores());
	if (cores() > 1)
		assert_true(threads_started > 0);
	assert_int_equal(atomic_load(&made), LARGE);
	/* The caller's share alone is made with signals let through. */
	assert_int_equal(atomic_load(&unblocked), 1);
	assert_all_there(&arena);
	arena_close(&arena);
}

static void threads_that_cannot_be_had_are_done_without(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;
	int i;

	for (i = 0; i < 2; i++) {
		setup(state);
		open_large(&arena);
		refuse_after = i;
		assert_int_equal(acquire(&arena, LARGE, &acq), 0);
		assert_true(threads_started <= i);
		assert_int_equal(atomic_load(&made), LARGE);
		assert_all_there(&arena);
		refuse_after = -1;
		arena_close(&arena);
	}
}

/* Whichever of them fails: the slot has nothing and the writer is declined. */
static void a_thread_that_fails_declines(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;
	long kib;
	int i;

	for (i = 1; i <= 2 && i <= cores(); i++) {
		setup(state);
		open_large(&arena);
		kib = shared_kib();
		fail_call = i;
		assert_int_equal(acquire(&arena, LARGE, &acq), -ENOMEM);
		assert_int_equal(stats(&arena).allocated_bytes, 0);
		assert_int_equal(shared_kib(), kib);
		fail_call = 0;
		assert_int_equal(acquire(&arena, LARGE, &acq), 0);
		assert_all_there(&arena);
		arena_close(&arena);
	}
}

/* What kernels before 5.14 say; fallocate() does it there. */
static void kernels_that_cannot_are_helped(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	open_large(&arena);
	fail_with = EINVAL;
	fail_call = 1;
	assert_int_equal(acquire(&arena, LARGE, &acq), 0);
	assert_all_there(&arena);
	arena_close(&arena);
}

static void the_callers_memory_policy_is_left_alone(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;
	int before, after;

	(void)state;
	/* A kernel without NUMA knows no policies. */
	if (syscall(SYS_get_mempolicy, &before, NULL, 0, NULL, 0))
		skip();
	open_large(&arena);
	assert_int_equal(acquire(&arena, LARGE, &acq), 0);
	assert_int_equal(syscall(SYS_get_mempolicy, &after, NULL, 0, NULL, 0),
			 0);
	assert_int_equal(after, before);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			many_threads_make_a_large_slot_and_one_a_small, setup),
		cmocka_unit_test_setup(
			threads_that_cannot_be_had_are_done_without, setup),
		cmocka_unit_test_setup(a_thread_that_fails_declines, setup),
		cmocka_unit_test_setup(kernels_that_cannot_are_helped, setup),
		cmocka_unit_test_setup(the_callers_memory_policy_is_left_alone,
				       setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded populate", tests, NULL,
					   NULL);
}
