// SPDX-License-Identifier: MIT
/* Waiting: time limits, signals, and descriptors for event loops. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "harness.h"

static void open_pair(struct arena *arena, struct ta_reader **reader)
{
	struct ta_options o = test_options(1, MIB, 1);

	arena_open(arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena->writer), reader));
}

static void close_pair(struct arena *arena, struct ta_reader *reader)
{
	ta_reader_close(reader);
	arena_close(arena);
}

static void a_time_limit_is_kept(void **state)
{
	struct ta_reader *reader;
	struct timespec start;
	struct ta_view *view;
	struct arena arena;

	(void)state;
	open_pair(&arena, &reader);
	assert_err(ta_next(reader, 0, &view), -EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_err(ta_next(reader, 50, &view), -EAGAIN);
	/* Never too early; how late depends on the machine. */
	assert_true(ms_since(&start) >= 50);
	close_pair(&arena, reader);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void a_signal_ends_the_wait(void **state)
{
	/* Repeated, so that one before the wait begins does no harm. */
	const struct itimerval soon = { { 0, 20000 }, { 0, 20000 } };
	const struct itimerval never = { 0 };
	struct sigaction act = { .sa_handler = on_alarm,
				 .sa_flags = SA_RESTART };
	struct sigaction old;
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;

	(void)state;
	open_pair(&arena, &reader);
	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_err(ta_next(reader, -1, &view), -EINTR);
	assert_err(ta_next(reader, HANG_MS, &view), -EINTR);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
	/* And nothing is lost by it. */
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_ok(ta_next(reader, -1, &view));
	assert_true(is_pattern(view->data, 10, 1));
	close_pair(&arena, reader);
}

static void a_put_wakes_whoever_waits(void **state)
{
	struct ta_options o = test_options(1, MIB, 2);
	const struct timespec a_moment = { 0, 20000000 };
	struct arena arena;
	int i;

	(void)state;
	arena_open(&arena, &o, 2);
	for (i = 0; i < 5; i++) {
		actor_drain_start(&arena.actor[0], 1);
		actor_drain_start(&arena.actor[1], 1);
		/* Likely asleep by then; right either way. */
		nanosleep(&a_moment, NULL);
		assert_ok(put_pattern(arena.writer, 10, 1, NULL));
		assert_ok(actor_drain_end(&arena.actor[0]));
		assert_ok(actor_drain_end(&arena.actor[1]));
	}
	arena_close(&arena);
}

static short polled(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	assert_true(poll(&pfd, 1, timeout_ms) >= 0);
	return pfd.revents;
}

static void the_writers_descriptor_reports_a_free_slot(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;
	short events = 0;
	int fd;

	(void)state;
	open_pair(&arena, &reader);
	fd = ta_writer_poll_fd(arena.writer, &events);
	assert_true(fd >= 0);
	assert_true(events);
	assert_true(polled(fd, events, 0) & events);
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_false(polled(fd, events, 0));
	assert_false(polled(fd, events, 20));
	assert_ok(ta_next(reader, HANG_MS, &view));
	assert_false(polled(fd, events, 0));
	assert_ok(ta_release(view));
	assert_true(polled(fd, events, HANG_MS) & events);
	assert_true(polled(fd, events, 0) & events);
	close_pair(&arena, reader);
}

static void the_readers_descriptor_reports_a_publication(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view, *none;
	struct ta_ticket ticket;
	struct timespec start;
	struct arena arena;
	short events = 0;
	int fd;

	(void)state;
	open_pair(&arena, &reader);
	fd = ta_reader_poll_fd(reader, &events);
	assert_true(fd >= 0);
	assert_true(events);
	assert_false(polled(fd, events, 0));
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_true(polled(fd, events, HANG_MS) & events);
	assert_ok(ta_next(reader, 0, &view));
	assert_err(ta_next(reader, 0, &none), -EAGAIN);
	assert_false(polled(fd, events, 0));
	assert_ok(ta_release(view));

	/* Called back, it is not there any more; somebody may have to tell. */
	assert_ok(put_pattern(arena.writer, 10, 1, &ticket));
	assert_true(polled(fd, events, HANG_MS) & events);
	assert_ok(ta_retract(arena.writer, &ticket, NULL));
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (polled(fd, events, 0))
		assert_true(ms_since(&start) < HANG_MS);
	assert_err(ta_next(reader, 0, &none), -EAGAIN);

	/* Found by its ticket it is seen as well. */
	assert_ok(put_pattern(arena.writer, 10, 1, &ticket));
	assert_true(polled(fd, events, HANG_MS) & events);
	assert_ok(ta_view(reader, &ticket, &view));
	assert_err(ta_next(reader, 0, &none), -EAGAIN);
	assert_false(polled(fd, events, 0));
	assert_ok(ta_release(view));
	close_pair(&arena, reader);
}

static void the_readers_descriptor_reports_the_writers_end(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;
	short events = 0;
	int fd;

	(void)state;
	open_pair(&arena, &reader);
	fd = ta_reader_poll_fd(reader, &events);
	assert_false(polled(fd, events, 0));
	arena_close(&arena);
	assert_true(polled(fd, events, HANG_MS));
	assert_err(ta_next(reader, HANG_MS, &view), -EPIPE);
	assert_true(polled(fd, events, 0));
	ta_reader_close(reader);
}

static void the_writers_descriptor_reports_a_slot_freed_by_death(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct arena arena;
	short events = 0;
	int fd;

	(void)state;
	arena_open(&arena, &o, 1);
	fd = ta_writer_poll_fd(arena.writer, &events);
	assert_ok(put_pattern(arena.writer, 10, 1, NULL));
	assert_false(polled(fd, events, 0));
	actor_kill(&arena.actor[0]);
	assert_true(polled(fd, events, HANG_MS) & events);
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_limit_is_kept),
		cmocka_unit_test(a_signal_ends_the_wait),
		cmocka_unit_test(a_put_wakes_whoever_waits),
		cmocka_unit_test(the_writers_descriptor_reports_a_free_slot),
		cmocka_unit_test(the_readers_descriptor_reports_a_publication),
		cmocka_unit_test(
			the_readers_descriptor_reports_the_writers_end),
		cmocka_unit_test(
			the_writers_descriptor_reports_a_slot_freed_by_death),
	};

	return run_cases(argc, argv, tests);
}
