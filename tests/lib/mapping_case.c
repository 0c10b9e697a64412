// SPDX-License-Identifier: MIT
/* What the mappings allow: readers read, the writer writes, children nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void open_with_view(struct arena *arena, uint32_t flags,
			   struct ta_reader **reader, struct ta_view **view)
{
	struct ta_options o = test_options(2, 4 * MIB, 1);

	o.flags |= flags;
	arena_open(arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena->writer), reader));
	assert_ok(put_pattern(arena->writer, 3 * MIB, 1, NULL));
	assert_ok(ta_next(*reader, HANG_MS, view));
}

static int protect(const void *data, int prot)
{
	return mprotect((void *)(uintptr_t)data, 2 * MIB, prot) ? -errno : 0;
}

static void a_view_cannot_be_made_writable(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;

	(void)state;
	open_with_view(&arena, 0, &reader, &view);
	assert_int_equal(ta_reader_flags(reader), 0);
	assert_err(protect(view->data, PROT_READ | PROT_WRITE), -EACCES);
	assert_err(protect(view->data, PROT_WRITE), -EACCES);
	assert_ok(protect(view->data, PROT_READ));
	assert_true(is_pattern(view->data, view->nbytes, 1));
	ta_reader_close(reader);
	arena_close(&arena);
}

static void the_kernel_will_not_write_to_a_view_either(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct arena arena;
	int pipe_fd[2];

	(void)state;
	open_with_view(&arena, 0, &reader, &view);
	assert_int_equal(pipe(pipe_fd), 0);
	assert_int_equal(write(pipe_fd[1], "x", 1), 1);
	assert_int_equal(read(pipe_fd[0], (void *)(uintptr_t)view->data, 1),
			 -1);
	assert_int_equal(errno, EFAULT);
	assert_true(is_pattern(view->data, view->nbytes, 1));
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void the_writer_may_change_its_own_protection(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	open_with_view(&arena, 0, &reader, &view);
	assert_ok(ta_loan(arena.writer, 2 * MIB, &loan));
	assert_ok(protect(loan->data, PROT_READ));
	assert_ok(protect(loan->data, PROT_READ | PROT_WRITE));
	memset(loan->data, 1, loan->nbytes);
	assert_ok(ta_abort(loan));
	ta_reader_close(reader);
	arena_close(&arena);
}

static void writable_readers_write_what_others_see(void **state)
{
	struct ta_reader *reader, *other;
	struct ta_view *view, *seen;
	struct arena arena;

	(void)state;
	open_with_view(&arena, TA_WRITABLE_READERS, &reader, &view);
	assert_int_equal(ta_reader_flags(reader), TA_WRITABLE_READERS);
	assert_ok(ta_attach(ta_handle(arena.writer), &other));
	assert_ok(put_pattern(arena.writer, 2 * MIB, 2, NULL));
	assert_ok(ta_release(view));
	assert_ok(ta_next(reader, HANG_MS, &view));
	fill_pattern((void *)(uintptr_t)view->data, view->nbytes, 3);
	assert_ok(ta_next(other, HANG_MS, &seen));
	assert_true(is_pattern(seen->data, seen->nbytes, 3));
	ta_reader_close(reader);
	ta_reader_close(other);
	arena_close(&arena);
}

/* Whether a forked child finds anything mapped at @data. */
static bool child_sees(const void *data)
{
	uintptr_t page = (uintptr_t)data & -(uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char vec;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(mincore((void *)page, 1, &vec) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void mappings_are_not_inherited(void **state)
{
	struct ta_reader *reader;
	struct ta_view *view;
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	open_with_view(&arena, 0, &reader, &view);
	assert_ok(ta_loan(arena.writer, 1, &loan));
	assert_true(child_sees(state));
	assert_false(child_sees(view->data));
	assert_false(child_sees(loan->data));
	ta_reader_close(reader);
	arena_close(&arena);
}

static void a_new_tenant_starts_from_zeroes(void **state)
{
	struct ta_options o = test_options(1, 2 * MIB, 1);
	struct ta_loan *loan;
	struct arena arena;
	size_t i;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, 2 * MIB, &loan));
	for (i = 0; i < 2 * MIB; i++)
		if (((unsigned char *)loan->data)[i])
			fail_msg("byte %zu of fresh memory is not zero", i);
	assert_ok(ta_abort(loan));
	arena_close(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_cannot_be_made_writable),
		cmocka_unit_test(the_kernel_will_not_write_to_a_view_either),
		cmocka_unit_test(the_writer_may_change_its_own_protection),
		cmocka_unit_test(writable_readers_write_what_others_see),
		cmocka_unit_test(mappings_are_not_inherited),
		cmocka_unit_test(a_new_tenant_starts_from_zeroes),
	};

	return run_cases(argc, argv, tests);
}
