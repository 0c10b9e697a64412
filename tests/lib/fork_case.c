// SPDX-License-Identifier: MIT
/* In a forked child every inherited object is dead, and harmless. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

struct family {
	struct arena arena;
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	struct ta_loan *loan;
};

static void open_family(struct family *f)
{
	struct ta_options o = test_options(3, MIB, 1);

	arena_open(&f->arena, &o, 0);
	assert_ok(ta_attach(ta_handle(f->arena.writer), &f->reader));
	assert_ok(put_pattern(f->arena.writer, 1000, 1, &f->ticket));
	assert_ok(ta_next(f->reader, HANG_MS, &f->view));
	assert_ok(ta_loan(f->arena.writer, 1000, &f->loan));
}

/* That the parent's objects are all still as they were. */
static void expect_unharmed(struct family *f)
{
	struct ta_stats st = stats_of(f->arena.writer);

	assert_int_equal(st.published, 1);
	assert_int_equal(st.writing, 1);
	assert_int_equal(st.readers, 1);
	assert_int_equal(st.released, 0);
	assert_true(is_pattern(f->view->data, f->view->nbytes, 1));
	assert_ok(ta_release(f->view));
	fill_pattern(f->loan->data, 1000, 2);
	assert_ok(ta_commit(f->loan, 1000, NULL, NULL));
	assert_ok(ta_next(f->reader, HANG_MS, &f->view));
	assert_true(is_pattern(f->view->data, f->view->nbytes, 2));
	assert_ok(ta_release(f->view));
	assert_ok(put_pattern(f->arena.writer, 1000, 3, NULL));
	assert_ok(ta_next(f->reader, HANG_MS, &f->view));
	assert_ok(ta_release(f->view));
	ta_reader_close(f->reader);
	arena_close(&f->arena);
}

/* Runs @body in a child; fails with the line that it returns, if any. */
static void in_child(int (*body)(struct family *f), struct family *f)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int line = body(f);

		if (line)
			fprintf(stderr, "# child: line %d\n", line);
		_exit(line ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("the child ended with status 0x%x", status);
}

#define REFUSED(call)                                                          \
	do {                                                                   \
		if ((call) != -EIO)                                            \
			return __LINE__;                                       \
	} while (0)

static int call_everything(struct family *f)
{
	struct ta_writer *w = f->arena.writer;
	struct ta_stats st;
	struct ta_loan *loan;
	struct ta_view *view;
	uint64_t freed, id = ta_reader_id(f->reader);
	short events;

	REFUSED(ta_put(w, "x", 1, NULL, NULL));
	REFUSED(ta_put_to(w, &id, 1, "x", 1, NULL, NULL));
	REFUSED(ta_loan(w, 1, &loan));
	REFUSED(ta_commit(f->loan, 1, NULL, NULL));
	REFUSED(ta_commit_to(f->loan, &id, 1, 1, NULL, NULL));
	REFUSED(ta_populate(w, 1, 1));
	REFUSED(ta_trim(w, 0, &freed));
	REFUSED(ta_evict(w, id));
	REFUSED(ta_close_seat(w, 0));
	REFUSED(ta_writer_poll_fd(w, &events));
	REFUSED(ta_writer_connect(w));
	REFUSED(ta_stats(w, &st, NULL, 0));
	REFUSED(ta_next(f->reader, 0, &view));
	REFUSED(ta_next(f->reader, -1, &view));
	REFUSED(ta_view(f->reader, &f->ticket, &view));
	REFUSED(ta_reader_poll_fd(f->reader, &events));
	REFUSED(ta_release(f->view));
	REFUSED(ta_abort(f->loan));
	return 0;
}

static void every_call_is_refused_in_a_child(void **state)
{
	struct family f;

	(void)state;
	open_family(&f);
	in_child(call_everything, &f);
	expect_unharmed(&f);
}

static int close_everything(struct family *f)
{
	ta_reader_close(f->reader);
	ta_writer_close(f->arena.writer);
	return 0;
}

static void a_child_may_close_and_the_parent_goes_on(void **state)
{
	struct family f;

	(void)state;
	open_family(&f);
	in_child(close_everything, &f);
	expect_unharmed(&f);
}

static int close_twice_removed(struct family *f)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return __LINE__;
	if (!pid)
		_exit(call_everything(f) || close_everything(f));
	if (waitpid(pid, &status, 0) != pid || status)
		return __LINE__;
	return call_everything(f);
}

static void a_grandchild_is_a_child_too(void **state)
{
	struct family f;

	(void)state;
	open_family(&f);
	in_child(close_twice_removed, &f);
	expect_unharmed(&f);
}

static int attach_anew(struct family *f)
{
	struct ta_reader *reader;
	struct ta_view *view;

	if (ta_attach(ta_handle(f->arena.writer), &reader))
		return __LINE__;
	if (ta_next(reader, 0, &view) != -EAGAIN)
		return __LINE__;
	ta_reader_close(reader);
	return close_everything(f) || 0;
}

static void a_child_may_attach_for_itself(void **state)
{
	struct family f;
	struct ta_stats st;

	(void)state;
	open_family(&f);
	in_child(attach_anew, &f);
	await_stats(f.arena.writer, st, st.readers == 1);
	expect_unharmed(&f);
}

static int share_memory(void *arg)
{
	struct family *f = arg;
	struct ta_stats st;

	return ta_stats(f->arena.writer, &st, NULL, 0) ? 1 : 0;
}

/* As vfork() does: another process, the same address space. */
static void a_child_that_shares_the_memory_is_no_other_process(void **state)
{
	static char stack[64 * 1024] __attribute__((aligned(16)));
	struct family f;
	int status;
	pid_t pid;

	(void)state;
	open_family(&f);
	pid = clone(share_memory, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, &f);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_unharmed(&f);
}

struct churn {
	struct family *f;
	int stop;
};

static void *take_and_release(void *arg)
{
	struct churn *c = arg;
	struct ta_view *view;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED))
		if (!ta_view(c->f->reader, &c->f->ticket, &view))
			ta_release(view);
	return NULL;
}

/* The lock may be held by the other thread at the fork; nobody may hang. */
static void a_fork_in_the_middle_of_other_threads_work_is_safe(void **state)
{
	struct family f;
	struct churn churn = { .f = &f };
	pthread_t thread;
	int i;

	(void)state;
	open_family(&f);
	assert_int_equal(
		pthread_create(&thread, NULL, take_and_release, &churn), 0);
	for (i = 0; i < 50; i++) {
		in_child(call_everything, &f);
		in_child(close_everything, &f);
	}
	__atomic_store_n(&churn.stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_unharmed(&f);
}

/*
 * Where another thread was in AddressSanitizer's allocator a forked child waits
 * for it for ever, before gcc 14: a thread that the child starts, most of all.
 */
#if defined(__SANITIZE_ADDRESS__) && __GNUC__ < 14
#define CHILDREN_MAY_ALLOCATE false
#else
#define CHILDREN_MAY_ALLOCATE true
#endif

/* Views look for a CUDA driver, for which the dynamic linker has a lock. */
static int view_its_own(struct family *f)
{
	struct family own;

	(void)f;
	alarm(HANG_MS / 1000);
	open_family(&own);
	return ta_release(own.view) ? __LINE__ : 0;
}

static void a_child_forked_while_others_make_views_makes_its_own(void **state)
{
	struct family f;
	struct churn churn = { .f = &f };
	pthread_t threads[2];
	int i;

	(void)state;
	if (!CHILDREN_MAY_ALLOCATE)
		skip();
	open_family(&f);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						take_and_release, &churn),
				 0);
	for (i = 0; i < 40; i++)
		in_child(view_its_own, &f);
	__atomic_store_n(&churn.stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	expect_unharmed(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_refused_in_a_child),
		cmocka_unit_test(a_child_may_close_and_the_parent_goes_on),
		cmocka_unit_test(a_grandchild_is_a_child_too),
		cmocka_unit_test(a_child_may_attach_for_itself),
		cmocka_unit_test(
			a_child_that_shares_the_memory_is_no_other_process),
		cmocka_unit_test(
			a_fork_in_the_middle_of_other_threads_work_is_safe),
		cmocka_unit_test(
			a_child_forked_while_others_make_views_makes_its_own),
	};

	return run_cases(argc, argv, tests);
}
