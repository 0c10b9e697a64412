// SPDX-License-Identifier: MIT
/*
 * Readers in containers: in namespaces of their own, of every kind that could
 * come between them and the writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define SEED 5
/* Exit codes that are no error numbers. */
#define NO_NAMESPACE 200
#define WRONG_BYTES 201

/* How the reader comes to the embedded engine; the device needs its node only. */
enum way {
	BY_NAME,
	BY_PATH,
	BY_CONNECTION,
};

struct scene {
	struct arena arena;
	char path[64];
	int connection;
};

static void scene_open(struct scene *s, enum way way)
{
	struct ta_options o = test_options(1, MIB, 1);

	snprintf(s->path, sizeof(s->path), "/tmp/tensorarena.%d", getpid());
	s->connection = -1;
	if (way == BY_PATH && test_engine() == TA_ENGINE_EMBEDDED)
		o.socket_path = s->path;
	arena_open(&s->arena, &o, 0);
	if (way == BY_CONNECTION && test_engine() == TA_ENGINE_EMBEDDED) {
		s->connection = ta_writer_connect(s->arena.writer);
		assert_true(s->connection >= 0);
	}
	assert_ok(put_pattern(s->arena.writer, MIB, SEED, NULL));
}

static void scene_close(struct scene *s)
{
	if (s->connection >= 0)
		close(s->connection);
	arena_close(&s->arena);
}

/* ---- in the child ---- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

/* Root inside is who it was outside. */
static bool map_ids(uid_t uid, gid_t gid)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", uid);
	snprintf(gids, sizeof(gids), "0 %u 1", gid);
	return write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", uids) &&
	       write_file("/proc/self/gid_map", gids);
}

/* What is in /tmp outside is not there inside. */
static bool hide_tmp(void)
{
	return !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/tmp", "tmpfs", 0, NULL);
}

/* Goes into new namespaces, as root where that takes a user's of its own. */
static bool enter(int kinds)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid)
		kinds |= CLONE_NEWUSER;
	if (unshare(kinds))
		return false;
	if (kinds & CLONE_NEWUSER && !map_ids(uid, gid))
		return false;
	return !(kinds & CLONE_NEWNS) || hide_tmp();
}

static int attach(const struct scene *s, struct ta_reader **reader)
{
	const char *handle = ta_handle(s->arena.writer);

	if (s->connection >= 0)
		return ta_attach_fd(handle, dup(s->connection), reader);
	return ta_attach(handle, reader);
}

static int read_tensor(const struct scene *s)
{
	struct ta_reader *reader;
	struct ta_view *view;
	int err;

	err = attach(s, &reader);
	if (err)
		return -err;
	err = ta_next(reader, HANG_MS, &view);
	if (err)
		return -err;
	err = is_pattern(view->data, MIB, SEED) ? ta_release(view) :
						  -WRONG_BYTES;
	ta_reader_close(reader);
	return -err;
}

/* The same, but it dies with all it has, in its first process's arms. */
static int hold_tensor(const struct scene *s)
{
	struct ta_reader *reader;
	struct ta_view *view;

	if (attach(s, &reader) || ta_next(reader, HANG_MS, &view))
		return WRONG_BYTES;
	return raise(SIGKILL);
}

/* Only children are in a new pid namespace. */
static int be_reader(const struct scene *s, int kinds,
		     int (*read)(const struct scene *s))
{
	int status;
	pid_t pid;

	if (!enter(kinds))
		return NO_NAMESPACE;
	if (!(kinds & CLONE_NEWPID))
		return read(s);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(read(s));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return NO_NAMESPACE;
	return WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
}

/* ---- in the writer's process ---- */

/* Exit code of a reader in namespaces of these kinds. */
static int reader_in(const struct scene *s, int kinds,
		     int (*read)(const struct scene *s))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(be_reader(s, kinds, read));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(int kinds, enum way way, int expected)
{
	struct scene s;
	int code;

	scene_open(&s, way);
	code = reader_in(&s, kinds, read_tensor);
	if (code == NO_NAMESPACE) {
		scene_close(&s);
		print_message("# such namespaces may not be made here\n");
		skip();
	}
	if (code != expected)
		fail_msg("exit code %d (%s)", code, ta_strerror(-code));
	if (!expected)
		assert_int_equal(stats_of(s.arena.writer).free, 1);
	scene_close(&s);
}

static void a_user_namespace(void **state)
{
	(void)state;
	expect(CLONE_NEWUSER, BY_NAME, 0);
}

static void a_pid_namespace(void **state)
{
	(void)state;
	expect(CLONE_NEWPID, BY_NAME, 0);
}

static void an_ipc_namespace(void **state)
{
	(void)state;
	expect(CLONE_NEWIPC, BY_NAME, 0);
}

static void a_mount_namespace(void **state)
{
	(void)state;
	expect(CLONE_NEWNS, BY_NAME, 0);
}

/* An abstract socket's name is a network namespace's own. */
static void a_network_namespace_by_name(void **state)
{
	(void)state;
	expect(CLONE_NEWNET, BY_NAME,
	       test_engine() == TA_ENGINE_DEVICE ? 0 : ECONNREFUSED);
}

static void a_network_namespace_by_path(void **state)
{
	(void)state;
	expect(CLONE_NEWNET, BY_PATH, 0);
}

static void a_network_namespace_by_connection(void **state)
{
	(void)state;
	expect(CLONE_NEWNET, BY_CONNECTION, 0);
}

static void a_path_that_is_hidden(void **state)
{
	(void)state;
	expect(CLONE_NEWNS, BY_PATH,
	       test_engine() == TA_ENGINE_DEVICE ? 0 : ENOENT);
}

static void a_container_with_all_of_them(void **state)
{
	(void)state;
	expect(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		       CLONE_NEWNS | CLONE_NEWUTS,
	       BY_CONNECTION, 0);
}

static void one_killed_in_its_pid_namespace_holds_nothing(void **state)
{
	struct ta_stats st;
	struct scene s;
	int code;

	(void)state;
	scene_open(&s, BY_NAME);
	code = reader_in(&s, CLONE_NEWPID, hold_tensor);
	if (code == NO_NAMESPACE) {
		scene_close(&s);
		print_message("# such namespaces may not be made here\n");
		skip();
	}
	assert_int_equal(code, 0);
	await_stats(s.arena.writer, st, st.free == 1);
	assert_int_equal(st.reclaimed_dead_readers, 1);
	scene_close(&s);
}

/* A user namespace without a map: nobody has a uid there that can be named. */
static int read_without_uid(const struct scene *s)
{
	if (unshare(CLONE_NEWUSER))
		return NO_NAMESPACE;
	return read_tensor(s);
}

static void one_whose_uid_has_no_name_in_its_namespace(void **state)
{
	struct scene s;
	int code;

	(void)state;
	scene_open(&s, BY_NAME);
	code = reader_in(&s, 0, read_without_uid);
	scene_close(&s);
	if (code == NO_NAMESPACE) {
		print_message("# no user namespace may be made here\n");
		skip();
	}
	assert_int_equal(code, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_namespace),
		cmocka_unit_test(a_pid_namespace),
		cmocka_unit_test(an_ipc_namespace),
		cmocka_unit_test(a_mount_namespace),
		cmocka_unit_test(a_network_namespace_by_name),
		cmocka_unit_test(a_network_namespace_by_path),
		cmocka_unit_test(a_network_namespace_by_connection),
		cmocka_unit_test(a_path_that_is_hidden),
		cmocka_unit_test(a_container_with_all_of_them),
		cmocka_unit_test(one_killed_in_its_pid_namespace_holds_nothing),
		cmocka_unit_test(one_whose_uid_has_no_name_in_its_namespace),
	};

	return run_cases(argc, argv, tests);
}
