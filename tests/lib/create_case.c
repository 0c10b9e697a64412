// SPDX-License-Identifier: MIT
/* Creating an arena: which options are possible, which engine answers, why not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define DEVICE_VARIABLE "TENSORARENA_DEVICE"

static char why[256];

static int create(const struct ta_options *options)
{
	struct ta_writer *writer;
	int err;

	memset(why, 'x', sizeof(why));
	err = ta_create(options, &writer, why, sizeof(why));
	assert_non_null(memchr(why, '\0', sizeof(why)));
	if (!err) {
		ta_writer_close(writer);
		return 0;
	}
	if (!why[0])
		fail_msg("error %d without a reason", err);
	print_message("# %s\n", why);
	return err;
}

static void impossible_options_are_refused_with_a_reason(void **state)
{
	const struct ta_options good = test_options(2, MIB, 1);
	struct ta_options o;

	(void)state;
	assert_ok(create(&good));
	o = good;
	o.slots = 0;
	assert_err(create(&o), -EINVAL);
	o.slots = 257;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.slot_bytes = 0;
	assert_err(create(&o), -EINVAL);
	o.slot_bytes = UINT64_MAX;
	assert_err(create(&o), -EINVAL);
	o.slot_bytes = 1ULL << 62;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.seats = 65;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.flags = 1U << 31;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.copy_threads = 65;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.engine = 3;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.node = -2;
	assert_err(create(&o), -EINVAL);
	o = good;
	o.socket_path = "relative";
	assert_err(create(&o), -EINVAL);
	o.socket_path = "/two\nlines";
	assert_err(create(&o), -EINVAL);
}

static void the_reason_is_optional_and_cut_to_its_buffer(void **state)
{
	struct ta_options o = test_options(0, MIB, 1);
	struct ta_writer *writer;
	char small[8];

	(void)state;
	assert_err(ta_create(&o, &writer, NULL, 0), -EINVAL);
	assert_err(ta_create(&o, &writer, small, sizeof(small)), -EINVAL);
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

static void defaults_are_those_documented(void **state)
{
	struct ta_options o;

	(void)state;
	memset(&o, 0xff, sizeof(o));
	ta_options_init(&o);
	assert_int_equal(o.slot_bytes, 256 * MIB);
	assert_int_equal(o.slots, 8);
	assert_int_equal(o.seats, 0);
	assert_int_equal(o.flags, 0);
	assert_int_equal(o.engine, TA_ENGINE_AUTO);
	assert_int_equal(o.node, TA_NODE_LOCAL);
	assert_null(o.socket_path);
}

static void the_largest_arena_works(void **state)
{
	struct ta_options o = test_options(256, 1, 64);

	(void)state;
	o.flags = TA_NO_MEMORY_CHECK;
	assert_ok(create(&o));
}

static void more_than_there_is_memory_is_refused_with_figures(void **state)
{
	struct ta_options o = test_options(256, 1ULL << 40, 1);

	(void)state;
	assert_err(create(&o), -ENOMEM);
	assert_non_null(strstr(why, "256 slots of 1 TiB"));
	assert_non_null(strstr(why, "256 TiB"));
	assert_true(strstr(why, "available memory") || strstr(why, "cgroup"));
}

static void the_memory_check_can_be_switched_off(void **state)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		       (uint64_t)sysconf(_SC_PAGESIZE);
	struct ta_options o = test_options(2, all, 1);
	int err;

	(void)state;
	assert_err(create(&o), -ENOMEM);
	o.flags = TA_NO_MEMORY_CHECK;
	err = create(&o);
	/* The limits of the module stay in force. */
	if (err && err != -EDQUOT)
		fail_msg("%d: %s", err, why);
}

static void auto_falls_back_to_the_embedded_engine(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_writer *writer;

	(void)state;
	assert_int_equal(setenv(DEVICE_VARIABLE, "/nonexistent/node", 1), 0);
	o.engine = TA_ENGINE_AUTO;
	assert_ok(ta_create(&o, &writer, NULL, 0));
	assert_int_equal(ta_writer_engine(writer), TA_ENGINE_EMBEDDED);
	assert_int_equal(
		strncmp(ta_handle(writer), "tensorarena1:embedded:", 22), 0);
	ta_writer_close(writer);
	/* Asked for by name it is not replaced by another. */
	o.engine = TA_ENGINE_DEVICE;
	assert_err(create(&o), -ENOENT);
	assert_non_null(strstr(why, "/nonexistent/node"));
	assert_int_equal(unsetenv(DEVICE_VARIABLE), 0);
}

static void a_node_of_something_else_is_an_error(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);

	(void)state;
	assert_int_equal(setenv(DEVICE_VARIABLE, "/dev/null", 1), 0);
	o.engine = TA_ENGINE_AUTO;
	assert_err(create(&o), -ENOTTY);
	assert_non_null(strstr(why, "/dev/null"));
	assert_int_equal(unsetenv(DEVICE_VARIABLE), 0);
}

static void a_node_that_is_not_for_this_user_is_named(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	char path[] = "/tmp/tensorarena-node-XXXXXX";
	int fd = mkstemp(path);
	int status;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0), 0);
	assert_int_equal(setenv(DEVICE_VARIABLE, path, 1), 0);
	o.engine = TA_ENGINE_DEVICE;
	pid = fork();
	if (!pid) {
		/* Root may open anything. */
		if (!getuid() && setuid(65534))
			_exit(1);
		_exit(create(&o) != -EACCES || !strstr(why, path) ||
		      !strstr(why, "may not open"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unsetenv(DEVICE_VARIABLE), 0);
}

static void reader_and_writer_know_their_engine(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct ta_reader *reader;
	struct arena arena;

	(void)state;
	arena_open(&arena, &o, 0);
	assert_ok(ta_attach(ta_handle(arena.writer), &reader));
	assert_int_equal(ta_writer_engine(arena.writer), test_engine());
	assert_int_equal(ta_reader_engine(reader), test_engine());
	assert_int_equal(ta_reader_seat(reader), 0);
	assert_true(ta_reader_id(reader) > 0);
	ta_reader_close(reader);
	arena_close(&arena);
}

static void closing_nothing_is_nothing(void **state)
{
	(void)state;
	ta_writer_close(NULL);
	ta_reader_close(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impossible_options_are_refused_with_a_reason),
		cmocka_unit_test(the_reason_is_optional_and_cut_to_its_buffer),
		cmocka_unit_test(defaults_are_those_documented),
		cmocka_unit_test(the_largest_arena_works),
		cmocka_unit_test(
			more_than_there_is_memory_is_refused_with_figures),
		cmocka_unit_test(the_memory_check_can_be_switched_off),
		cmocka_unit_test(auto_falls_back_to_the_embedded_engine),
		cmocka_unit_test(a_node_of_something_else_is_an_error),
		cmocka_unit_test(a_node_that_is_not_for_this_user_is_named),
		cmocka_unit_test(reader_and_writer_know_their_engine),
		cmocka_unit_test(closing_nothing_is_nothing),
	};

	return run_cases(argc, argv, tests);
}
