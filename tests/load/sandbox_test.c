// SPDX-License-Identifier: MIT
/*
 * Loading files where system calls are forbidden, as in most containers: each
 * case in a child, under a filter of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

/**
 * struct rule - a call that is forbidden
 * @call: its number
 * @flags: only with one of these in its third argument; 0: always
 * @err: what it returns then
 */
struct rule {
	int call;
	uint32_t flags;
	int err;
};

/* Filters add up; 0 or -1. */
static int forbid(const struct rule *rule)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rule->flags, 0,
			 rule->flags ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | (uint32_t)rule->err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(code),
		.filter = (struct sock_filter *)code,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Fails with the line that @body returns in a child, if any. */
static void in_child(int (*body)(struct scene *s, const void *arg),
		     const void *arg)
{
	struct scene s;
	int status;
	pid_t pid;

	file_make(&s.file, SCENE_BYTES, 1);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int line = body(&s, arg);

		if (line)
			fprintf(stderr, "# child: line %d\n", line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	file_close(&s.file);
	if (status)
		fail_msg("the child ended with status 0x%x", status);
}

static const struct rule no_direct = { SYS_openat, O_DIRECT, EINVAL };

static int load_without_ring(struct scene *s, const void *arg)
{
	const struct rule *rule = arg;
	struct ta_load_stats st;

	CHECK(!scene_open(s));
	CHECK(!forbid(rule));
	CHECK(!scene_load_all(s, s->file.fd));
	st = scene_stats(s);
	CHECK(st.ring_error == -rule->err);
	CHECK(st.rings == 0 && st.fixed_bytes == 0);
	CHECK(!s->file.direct || st.direct_bytes >= SCENE_BYTES);
	scene_close(s);
	return 0;
}

static void without_io_uring_the_bytes_are_the_same(void **state)
{
	static const struct rule rules[] = {
		{ SYS_io_uring_setup, 0, EPERM },
		{ SYS_io_uring_setup, 0, ENOSYS },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rules); i++)
		in_child(load_without_ring, &rules[i]);
}

static int load_without_direct(struct scene *s, const void *arg)
{
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_direct));
	CHECK(!scene_load_all(s, s->file.fd));
	st = scene_stats(s);
	CHECK(st.direct_error == -EINVAL);
	CHECK(st.direct_bytes == 0 && st.bounced_bytes == 0);
	CHECK(!s->file.direct || st.buffered_bytes >= SCENE_BYTES);
	CHECK(st.rings == 1);
	scene_close(s);
	return 0;
}

static void without_o_direct_the_bytes_are_the_same(void **state)
{
	(void)state;
	in_child(load_without_direct, NULL);
}

static int load_without_either(struct scene *s, const void *arg)
{
	const struct rule no_ring = { SYS_io_uring_setup, 0, EPERM };
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_direct) && !forbid(&no_ring));
	CHECK(!scene_load_all(s, s->file.fd));
	st = scene_stats(s);
	CHECK(st.ring_error == -EPERM && st.direct_error == -EINVAL);
	CHECK(st.direct_bytes == 0 && st.bounced_bytes == 0);
	scene_close(s);
	return 0;
}

static void without_either_the_bytes_are_the_same(void **state)
{
	(void)state;
	in_child(load_without_either, NULL);
}

/* A process that locks itself up once it has all it thinks it needs. */
static int load_with_a_dead_ring(struct scene *s, const void *arg)
{
	const struct rule no_enter = { SYS_io_uring_enter, 0, EPERM };
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!scene_load_all(s, s->file.fd));
	CHECK(!forbid(&no_enter));
	CHECK(!scene_load_all(s, s->file.fd));
	st = scene_stats(s);
	CHECK(st.ring_error == -EPERM);
	CHECK(st.registered_bytes == 0);
	CHECK(st.failures == 0);
	scene_close(s);
	return 0;
}

static void a_ring_that_is_forbidden_later_is_done_without(void **state)
{
	(void)state;
	in_child(load_with_a_dead_ring, NULL);
}

static int load_unregistered(struct scene *s, const void *arg)
{
	const struct rule no_register = { SYS_io_uring_register, 0, EPERM };
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_register));
	CHECK(!scene_load_all(s, s->file.fd));
	CHECK(!scene_load_all(s, s->file.fd));
	st = scene_stats(s);
	CHECK(st.rings == 1 && st.fixed_bytes == 0 && st.registrations == 0);
	CHECK(!s->file.direct || st.register_error == -EPERM);
	scene_close(s);
	return 0;
}

static void nothing_has_to_be_registered(void **state)
{
	(void)state;
	in_child(load_unregistered, NULL);
}

static const struct rule no_cachestat = { SYS_cachestat, 0, ENOSYS };

/* All of it, when the page cache has all of it. */
static int load_cached(struct scene *s)
{
	file_cache(&s->file);
	memset(s->loan->data, 0xee, SCENE_BYTES);
	CHECK(!ta_load(s->loan, 0, s->file.fd, 0, SCENE_BYTES));
	CHECK(!memcmp(s->loan->data, s->file.bytes, SCENE_BYTES));
	return 0;
}

static int load_probed(struct scene *s, const void *arg)
{
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_cachestat));
	CHECK(!scene_load_all(s, s->file.fd));
	CHECK(!load_cached(s));
	st = scene_stats(s);
	CHECK(!s->file.direct || st.cached_bytes == SCENE_BYTES);
	scene_close(s);
	return 0;
}

static void what_is_cached_is_looked_for_where_nobody_tells(void **state)
{
	(void)state;
	in_child(load_probed, NULL);
}

static int load_unprobed(struct scene *s, const void *arg)
{
	const struct rule no_preadv2 = { SYS_preadv2, 0, ENOSYS };
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_cachestat));
	CHECK(!forbid(&no_preadv2));
	CHECK(!scene_load_all(s, s->file.fd));
	CHECK(!load_cached(s));
	st = scene_stats(s);
	CHECK(!s->file.direct || st.cached_bytes == 0);
	scene_close(s);
	return 0;
}

static void what_is_cached_need_not_be_known(void **state)
{
	(void)state;
	in_child(load_unprobed, NULL);
}

/* Without statx() blocks are taken for the largest there usually are. */
static int load_with_unknown_alignment(struct scene *s, const void *arg)
{
	const struct rule no_statx = { SYS_statx, 0, ENOSYS };
	struct ta_load_stats st;

	(void)arg;
	CHECK(!scene_open(s));
	CHECK(!forbid(&no_statx));
	CHECK(!scene_load(s, 0, s->file.fd, 512, 4 * MIB));
	st = scene_stats(s);
	CHECK(!s->file.direct ||
	      (st.direct_bytes == 0 && st.bounced_bytes == 4 * MIB));
	CHECK(!scene_load_all(s, s->file.fd));
	scene_close(s);
	return 0;
}

static void the_alignment_need_not_be_known(void **state)
{
	(void)state;
	in_child(load_with_unknown_alignment, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_io_uring_the_bytes_are_the_same),
		cmocka_unit_test(without_o_direct_the_bytes_are_the_same),
		cmocka_unit_test(without_either_the_bytes_are_the_same),
		cmocka_unit_test(
			a_ring_that_is_forbidden_later_is_done_without),
		cmocka_unit_test(nothing_has_to_be_registered),
		cmocka_unit_test(
			what_is_cached_is_looked_for_where_nobody_tells),
		cmocka_unit_test(what_is_cached_need_not_be_known),
		cmocka_unit_test(the_alignment_need_not_be_known),
	};

	return run_cases(argc, argv, tests);
}
