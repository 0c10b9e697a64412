// SPDX-License-Identifier: MIT
/* How readers find the server: by name, by path, by an inherited connection. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fixture.h"

static char dir[64];
static char path[96];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/tensorarena-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	/* Readers of other uids are to get as far as the socket. */
	if (chmod(dir, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static int create_at(struct arena *arena, const char *where)
{
	arena_init(arena, 1);
	arena->options.socket_path = where;
	return ta_engine_embedded.create(&arena->options, &arena->args,
					 &arena->handle, &arena->port);
}

static bool exists(const char *file)
{
	struct stat st;

	return !lstat(file, &st);
}

static void deliver(struct arena *arena, int fd)
{
	struct tensorarena_borrow b;
	struct reader r;

	assert_int_equal(attach(arena, fd, &r), 0);
	put(arena, 10, 6);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 6));
	reader_close(&r);
}

static void a_path_serves_as_a_name(void **state)
{
	struct arena arena;
	struct stat st;

	(void)state;
	assert_int_equal(create_at(&arena, path), 0);
	assert_string_equal(arena.handle.socket, path);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	deliver(&arena, -1);
	arena_close(&arena);
	assert_false(exists(path));
}

static void an_arena_for_any_uid_has_a_path_for_any_uid(void **state)
{
	struct arena arena;
	struct stat st;

	(void)state;
	arena_init(&arena, 1);
	arena.options.socket_path = path;
	arena.options.flags = TA_ANY_UID;
	arena_open(&arena);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	arena_close(&arena);
}

static void a_path_in_use_is_left_alone(void **state)
{
	struct arena arena, other;
	struct stat before, after;
	int file;

	(void)state;
	assert_int_equal(create_at(&arena, path), 0);
	assert_int_equal(lstat(path, &before), 0);
	assert_int_equal(create_at(&other, path), -EADDRINUSE);
	assert_int_equal(lstat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	deliver(&arena, -1);
	arena_close(&arena);

	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	close(file);
	assert_int_equal(create_at(&other, path), -EADDRINUSE);
	assert_true(exists(path));
}

static void a_dead_writers_path_is_taken_over(void **state)
{
	struct arena arena;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid) {
		if (!create_at(&arena, path))
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(reap(pid), -SIGKILL);
	assert_true(exists(path));
	assert_int_equal(create_at(&arena, path), 0);
	deliver(&arena, -1);
	arena_close(&arena);
	assert_false(exists(path));
}

static void only_the_own_path_is_removed(void **state)
{
	struct arena arena;
	int file;

	(void)state;
	assert_int_equal(create_at(&arena, path), 0);
	assert_int_equal(unlink(path), 0);
	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	close(file);
	arena_close(&arena);
	assert_true(exists(path));
}

static void impossible_paths_are_refused(void **state)
{
	char longest[TA_SOCKET_NAME_MAX + 2];
	char missing[128];
	struct arena arena;
	uint32_t fds = count_fds();

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	snprintf(missing, sizeof(missing), "%s/missing/socket", dir);
	assert_int_equal(create_at(&arena, ""), -EINVAL);
	assert_int_equal(create_at(&arena, "relative"), -EINVAL);
	assert_int_equal(create_at(&arena, "@abstract"), -EINVAL);
	assert_int_equal(create_at(&arena, longest), -EINVAL);
	assert_int_equal(create_at(&arena, missing), -ENOENT);
	assert_int_equal(count_fds(), fds);
}

static void names_are_not_guessable_and_leave_nothing(void **state)
{
	struct arena a, b;

	(void)state;
	arena_init(&a, 1);
	arena_open(&a);
	arena_init(&b, 1);
	arena_open(&b);
	assert_int_equal(a.handle.socket[0], '@');
	assert_string_not_equal(a.handle.socket, b.handle.socket);
	assert_int_not_equal(a.handle.arena, b.handle.arena);
	assert_int_equal(a.handle.arena >> 63, 0);
	assert_memory_not_equal(a.handle.cookie, b.handle.cookie,
				TENSORARENA_COOKIE_BYTES);
	arena_close(&a);
	arena_close(&b);
}

static void a_connection_can_be_handed_over(void **state)
{
	struct arena arena;
	struct reader r;
	int fd;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	fd = arena.port->ops->connect(arena.port);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	/* Whoever gets it may take time to start. */
	assert_false(polls(fd, POLLIN | POLLRDHUP, TA_ATTACH_MS * 3 / 2));
	deliver(&arena, fd);
	/* It was the port's, and is closed. */
	assert_int_equal(fcntl(fd, F_GETFD), -1);

	fd = arena.port->ops->connect(arena.port);
	arena_close(&arena);
	assert_int_equal(attach(&arena, fd, &r), -EPIPE);
	assert_int_equal(close(fd), 0);
}

static void other_descriptors_are_no_connections(void **state)
{
	struct arena arena;
	struct reader r;
	int null, stream;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(attach(&arena, null, &r), -ENOTSOCK);
	assert_int_equal(attach(&arena, stream, &r), -EPROTOTYPE);
	assert_int_equal(attach(&arena, 1 << 20, &r), -EBADF);
	assert_int_equal(close(null), 0);
	assert_int_equal(close(stream), 0);
	arena_close(&arena);
}

static void handed_connections_are_bounded(void **state)
{
	int fds[TA_MAX_HANDED];
	struct arena arena;
	struct reader r;
	int i, fd;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < TA_MAX_HANDED; i++) {
		fds[i] = arena.port->ops->connect(arena.port);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(arena.port->ops->connect(arena.port), -EUSERS);
	close(fds[0]);
	settle(&r);
	fd = arena.port->ops->connect(arena.port);
	assert_true(fd >= 0);
	deliver(&arena, fd);
	fds[0] = arena.port->ops->connect(arena.port);
	assert_true(fds[0] >= 0);
	for (i = 0; i < TA_MAX_HANDED; i++)
		close(fds[i]);
	reader_close(&r);
	arena_close(&arena);
}

/* In a network namespace of its own: 0 when all is as it should be. */
static int from_another_network(const struct arena *abstract,
				const struct arena *at_path, int fd)
{
	struct reader r;

	if (unshare(CLONE_NEWNET))
		return 77;
	if (attach(abstract, -1, &r) != -ECONNREFUSED)
		return 1;
	if (attach(at_path, -1, &r))
		return 2;
	reader_close(&r);
	if (attach(abstract, fd, &r))
		return 3;
	reader_close(&r);
	return 0;
}

static void paths_and_connections_cross_network_namespaces(void **state)
{
	struct arena abstract, at_path;
	int fd, status;
	pid_t pid;

	(void)state;
	arena_init(&abstract, 1);
	arena_open(&abstract);
	assert_int_equal(create_at(&at_path, path), 0);
	fd = abstract.port->ops->connect(abstract.port);
	pid = fork();
	if (!pid)
		_exit(from_another_network(&abstract, &at_path, fd));
	status = reap(pid);
	close(fd);
	arena_close(&abstract);
	arena_close(&at_path);
	if (status == 77) {
		print_message("# no network namespace may be made here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_path_serves_as_a_name, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			an_arena_for_any_uid_has_a_path_for_any_uid, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_path_in_use_is_left_alone,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_dead_writers_path_is_taken_over, setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_own_path_is_removed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(impossible_paths_are_refused,
						setup, teardown),
		cmocka_unit_test(names_are_not_guessable_and_leave_nothing),
		cmocka_unit_test(a_connection_can_be_handed_over),
		cmocka_unit_test(other_descriptors_are_no_connections),
		cmocka_unit_test(handed_connections_are_bounded),
		cmocka_unit_test_setup_teardown(
			paths_and_connections_cross_network_namespaces, setup,
			teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded names", tests, NULL, NULL);
}
