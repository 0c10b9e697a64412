// SPDX-License-Identifier: MIT
/*
 * Loading files: what is refused or fails, and what happens meanwhile.  Whatever
 * that is, no slot is lost and nobody reads what was not loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "harness.h"

#define FILE_BYTES (6 * MIB)

/* An arena of one slot, a reader, and a file. */
struct scene {
	struct arena arena;
	struct test_file file;
};

static void set_up(struct scene *s)
{
	struct ta_options o = test_options(1, 8 * MIB, 1);

	file_make(&s->file, FILE_BYTES, 1);
	arena_open(&s->arena, &o, 1);
}

/* That the slot is free, was never published, and can be used. */
static void tear_down(struct scene *s)
{
	struct ta_stats st = stats_of(s->arena.writer);

	assert_int_equal(st.free, 1);
	assert_int_equal(st.puts, 0);
	assert_err(actor_next(&s->arena.actor[0], 0, 0), -EAGAIN);
	assert_ok(ta_load_file(s->arena.writer, s->file.fd, 0, FILE_BYTES, NULL,
			       NULL));
	assert_ok(actor_next(&s->arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&s->arena.actor[0], 0, 1));
	arena_close(&s->arena);
	file_close(&s->file);
}

/* That a load fails like that, by both ways to ask for it. */
static void expect(struct scene *s, int fd, uint64_t offset, size_t nbytes,
		   int expected)
{
	struct ta_loan *loan;

	assert_err(ta_load_file(s->arena.writer, fd, offset, nbytes, NULL,
				NULL),
		   expected);
	assert_ok(ta_loan(s->arena.writer, 8 * MIB, &loan));
	assert_err(ta_load(loan, 0, fd, offset, nbytes), expected);
	/* The loan still stands. */
	assert_ok(ta_load(loan, 7, s->file.fd, 0, 9));
	assert_memory_equal((char *)loan->data + 7, s->file.bytes, 9);
	assert_ok(ta_abort(loan));
}

static void a_file_that_ends_before_is_an_error(void **state)
{
	static const struct {
		uint64_t before; /* the end */
		size_t nbytes;
	} range[] = {
		{ 0, 1 },
		{ 1, 2 },
		{ 511, 512 },
		{ 512, 513 },
		{ 4096, 3 * MIB },
		{ MIB, MIB + 1 },
		{ FILE_BYTES, FILE_BYTES + 1 },
		{ FILE_BYTES - 8, FILE_BYTES },
		{ 5 * MIB, 8 * MIB },
	};
	struct scene s;
	size_t i;

	(void)state;
	set_up(&s);
	for (i = 0; i < ARRAY_SIZE(range); i++) {
		file_evict(&s.file);
		expect(&s, s.file.fd, s.file.end - range[i].before,
		       range[i].nbytes, -ENODATA);
		file_cache(&s.file);
		expect(&s, s.file.fd, s.file.end - range[i].before,
		       range[i].nbytes, -ENODATA);
	}
	expect(&s, s.file.fd, s.file.end + 12345, MIB, -ENODATA);
	expect(&s, s.file.fd, INT64_MAX - MIB, MIB, -ENODATA);
	tear_down(&s);
}

static void an_empty_file_has_nothing_to_load(void **state)
{
	struct test_file empty;
	struct scene s;

	(void)state;
	set_up(&s);
	file_make(&empty, 0, 0);
	expect(&s, empty.fd, 0, 1, -ENODATA);
	expect(&s, empty.fd, 0, MIB, -ENODATA);
	file_close(&empty);
	tear_down(&s);
}

/* Sizes that are read by hand, and by many reads at a time. */
static void expect_of_all_sizes(struct scene *s, int fd, int expected)
{
	expect(s, fd, 0, 0, expected);
	expect(s, fd, 0, 100, expected);
	expect(s, fd, 0, 4 * MIB, expected);
}

static void what_is_no_file_is_refused(void **state)
{
	struct scene s;
	int pair[2], fd;

	(void)state;
	set_up(&s);
	expect_of_all_sizes(&s, -1, -EBADF);
	expect_of_all_sizes(&s, 12345, -EBADF);

	fd = file_reopen(&s.file, O_WRONLY);
	expect_of_all_sizes(&s, fd, -EBADF);
	close(fd);
	fd = file_reopen(&s.file, O_PATH);
	expect_of_all_sizes(&s, fd, -EBADF);
	close(fd);

	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect_of_all_sizes(&s, fd, -EISDIR);
	close(fd);

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	expect_of_all_sizes(&s, pair[0], -ESPIPE);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	expect_of_all_sizes(&s, pair[0], -ESPIPE);
	close(pair[0]);
	close(pair[1]);
	tear_down(&s);
}

/* This process's own memory, where there never is any, is a broken disk. */
static void a_file_that_cannot_be_read_is_an_error(void **state)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct scene s;

	(void)state;
	assert_true(fd >= 0);
	set_up(&s);
	expect(&s, fd, 4096, 100, -EIO);
	expect(&s, fd, 4096, 4 * MIB, -EIO);
	close(fd);
	tear_down(&s);
}

static void a_range_that_cannot_be_is_refused(void **state)
{
	struct ta_loan *loan;
	struct scene s;
	int fd;

	(void)state;
	set_up(&s);
	fd = s.file.fd;
	assert_ok(ta_loan(s.arena.writer, MIB, &loan));
	assert_err(ta_load(loan, 0, fd, 0, MIB + 1), -EINVAL);
	assert_err(ta_load(loan, 1, fd, 0, MIB), -EINVAL);
	assert_err(ta_load(loan, MIB + 1, fd, 0, 0), -EINVAL);
	assert_err(ta_load(loan, SIZE_MAX, fd, 0, 1), -EINVAL);
	assert_err(ta_load(loan, 1, fd, 0, SIZE_MAX), -EINVAL);
	assert_err(ta_load(loan, 0, fd, (uint64_t)INT64_MAX + 1, 0), -EINVAL);
	assert_err(ta_load(loan, 0, fd, INT64_MAX, 1), -EINVAL);
	assert_err(ta_load(loan, 0, fd, UINT64_MAX, 2), -EINVAL);
	assert_ok(ta_load(loan, MIB, fd, 0, 0));
	assert_ok(ta_abort(loan));
	assert_err(ta_load_file(s.arena.writer, fd, UINT64_MAX, 2, NULL, NULL),
		   -EINVAL);
	tear_down(&s);
}

static void a_tensor_of_another_size_is_refused_unread(void **state)
{
	struct ta_tensor t = { TA_FLOAT, 32, 1, 1, 0, 0, { 3 }, "" };
	struct ta_load_stats st;
	struct scene s;

	(void)state;
	set_up(&s);
	assert_err(ta_load_file(s.arena.writer, s.file.fd, 0, 13, &t, NULL),
		   -EINVAL);
	t.ndim = TA_MAX_NDIM + 1;
	assert_err(ta_load_file(s.arena.writer, s.file.fd, 0, 12, &t, NULL),
		   -EINVAL);
	assert_ok(ta_load_stats(s.arena.writer, &st));
	assert_int_equal(st.loads, 0);
	assert_int_equal(stats_of(s.arena.writer).aborted, 0);
	tear_down(&s);
}

static void a_decline_comes_before_the_file_is_read(void **state)
{
	struct ta_load_stats st;
	struct ta_loan *loan;
	struct scene s;

	(void)state;
	set_up(&s);
	/* No file at all, so that reading it would be another error. */
	assert_err(ta_load_file(s.arena.writer, -1, 0, 8 * MIB + 1, NULL, NULL),
		   -EMSGSIZE);
	assert_ok(ta_loan(s.arena.writer, 1, &loan));
	assert_err(ta_load_file(s.arena.writer, -1, 0, 1, NULL, NULL), -EAGAIN);
	assert_ok(ta_abort(loan));
	assert_ok(ta_load_stats(s.arena.writer, &st));
	assert_int_equal(st.loads, 0);
	tear_down(&s);
}

static void a_load_for_nobody_is_declined(void **state)
{
	struct ta_options o = test_options(1, MIB, 0);
	struct test_file file;
	struct arena arena;

	(void)state;
	file_make(&file, MIB, 1);
	arena_open(&arena, &o, 0);
	assert_err(ta_load_file(arena.writer, file.fd, 0, MIB, NULL, NULL),
		   -ENOTCONN);
	assert_int_equal(stats_of(arena.writer).free, 1);
	arena_close(&arena);
	file_close(&file);
}

static void failures_are_counted(void **state)
{
	struct ta_load_stats st;
	struct scene s;

	(void)state;
	set_up(&s);
	expect(&s, s.file.fd, s.file.end, MIB, -ENODATA);
	assert_ok(ta_load_stats(s.arena.writer, &st));
	assert_int_equal(st.loads, 3);
	assert_int_equal(st.failures, 2);
	tear_down(&s);
}

/* ---- at the same time ---- */

#define THREADS 4
#define ROUNDS 40

struct loading {
	struct ta_loan *loan;
	size_t at;
	const struct test_file *file;
	uint64_t seed;
	int rounds;
	int err;
};

static void *load_many(void *arg)
{
	struct loading *l = arg;
	uint64_t x = l->seed;
	int i;

	for (i = 0; i < l->rounds && !l->err; i++) {
		uint64_t offset;
		size_t nbytes;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		nbytes = (x >> 33) % (2 * MIB);
		offset = (x >> 20) % (l->file->nbytes - nbytes);
		if (x >> 62 == 0)
			offset &= ~(uint64_t)4095;
		if (x >> 60 & 1)
			posix_fadvise(l->file->fd, 0, 0, POSIX_FADV_DONTNEED);
		l->err = ta_load(l->loan, l->at, l->file->fd, offset, nbytes);
		if (!l->err && memcmp((char *)l->loan->data + l->at,
				      l->file->bytes + offset, nbytes))
			l->err = -EBADMSG;
	}
	return NULL;
}

static void run_threads(struct loading *l, int nr)
{
	pthread_t thread[2 * THREADS];
	int i;

	for (i = 0; i < nr; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, load_many, &l[i]), 0);
	for (i = 0; i < nr; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_ok(l[i].err);
	}
}

static void many_loads_at_a_time_do_not_mix(void **state)
{
	struct ta_options o = test_options(THREADS, 4 * MIB, 1);
	struct loading l[2 * THREADS];
	struct ta_loan *loan[THREADS];
	struct test_file file;
	struct arena arena;
	int i;

	(void)state;
	file_make(&file, FILE_BYTES, 1);
	file_evict(&file);
	arena_open(&arena, &o, 0);
	for (i = 0; i < THREADS; i++)
		assert_ok(ta_loan(arena.writer, 4 * MIB, &loan[i]));
	/* Two in each loan. */
	for (i = 0; i < 2 * THREADS; i++)
		l[i] = (struct loading){
			.loan = loan[i / 2],
			.at = i % 2 * 2 * MIB,
			.file = &file,
			.seed = (uint64_t)i + 1,
			.rounds = ROUNDS,
		};
	run_threads(l, 2 * THREADS);
	for (i = 0; i < THREADS; i++)
		assert_ok(ta_abort(loan[i]));
	arena_close(&arena);
	file_close(&file);
}

/* ---- fork ---- */

/* Fails with the line that @body returns in a child, if any. */
static void in_child(int (*body)(struct ta_loan *loan, struct scene *s),
		     struct ta_loan *loan, struct scene *s)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(body(loan, s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("the child ended with status 0x%x", status);
}

static int all_is_dead(struct ta_loan *loan, struct scene *s)
{
	struct ta_load_stats st;

	if (ta_load(loan, 0, s->file.fd, 0, 1) != -EIO)
		return 1;
	if (ta_load_file(s->arena.writer, s->file.fd, 0, 1, NULL, NULL) != -EIO)
		return 2;
	if (ta_load_stats(s->arena.writer, &st) != -EIO)
		return 3;
	ta_writer_close(s->arena.writer);
	return 0;
}

static void a_forked_child_loads_nothing_and_harms_nothing(void **state)
{
	struct ta_loan *loan;
	struct scene s;
	int i;

	(void)state;
	set_up(&s);
	for (i = 0; i < 3; i++) {
		assert_ok(ta_loan(s.arena.writer, 4 * MIB, &loan));
		file_evict(&s.file);
		/* Straight, by way of buffers, and registered. */
		assert_ok(ta_load(loan, 0, s.file.fd, 0, 4 * MIB));
		assert_ok(ta_load(loan, 8, s.file.fd, 3, MIB));
		in_child(all_is_dead, loan, &s);
		assert_ok(ta_abort(loan));
	}
	tear_down(&s);
}

static int do_nothing(struct ta_loan *loan, struct scene *s)
{
	(void)loan;
	(void)s;
	return 0;
}

/*
 * Memory that a child shares is copied for whoever writes to it first.  A read
 * in flight must not go to the child's.
 */
static void forks_in_the_middle_of_loads_do_no_harm(void **state)
{
	struct loading l = { .rounds = 4 * ROUNDS, .seed = 99 };
	pthread_t thread;
	struct scene s;
	int i;

	(void)state;
	set_up(&s);
	file_evict(&s.file);
	l.file = &s.file;
	assert_ok(ta_loan(s.arena.writer, 4 * MIB, &l.loan));
	assert_int_equal(pthread_create(&thread, NULL, load_many, &l), 0);
	for (i = 0; i < 30; i++)
		in_child(i % 2 ? all_is_dead : do_nothing, l.loan, &s);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ok(l.err);
	assert_ok(ta_abort(l.loan));
	tear_down(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_ends_before_is_an_error),
		cmocka_unit_test(an_empty_file_has_nothing_to_load),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(a_file_that_cannot_be_read_is_an_error),
		cmocka_unit_test(a_range_that_cannot_be_is_refused),
		cmocka_unit_test(a_tensor_of_another_size_is_refused_unread),
		cmocka_unit_test(a_decline_comes_before_the_file_is_read),
		cmocka_unit_test(a_load_for_nobody_is_declined),
		cmocka_unit_test(failures_are_counted),
		cmocka_unit_test(many_loads_at_a_time_do_not_mix),
		cmocka_unit_test(
			a_forked_child_loads_nothing_and_harms_nothing),
		cmocka_unit_test(forks_in_the_middle_of_loads_do_no_harm),
	};

	return run_cases(argc, argv, tests);
}
