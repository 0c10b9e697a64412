// SPDX-License-Identifier: MIT
/*
 * Deaths of readers and writers, with forked children that live on and hold
 * every descriptor; and what those children may do.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fixture.h"

/* Exit codes of processes made here. */
enum {
	FINE,
	WRONG,
	NOT_POSSIBLE = 77
};

/* Waits in a child until the parent closes its end of @gate or is dead. */
static void linger(const int gate[2])
{
	char byte;

	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static void make_gate(int gate[2])
{
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
}

static void open_gate(int gate[2])
{
	close(gate[0]);
	close(gate[1]);
}

/* Says on @ready that it has come this far. */
static void say(int ready, const void *data, size_t size)
{
	if (write(ready, data, size) != (ssize_t)size)
		_exit(WRONG);
}

static void hear(int ready, void *data, size_t size)
{
	assert_int_equal(read(ready, data, size), size);
}

enum reading {
	NOTHING,
	ONE,
	ALL
};

/**
 * struct victim - a reader process that is to be killed
 * @reads: what it takes of what it was sent
 * @has_child: whether it leaves a child with all its descriptors
 */
struct victim {
	enum reading reads;
	bool has_child;
};

static void be_victim(const struct arena *arena, const struct victim *victim,
		      const int gate[2], int ready)
{
	struct tensorarena_borrow b;
	struct reader r;
	pid_t child = 0;

	if (attach(arena, -1, &r))
		_exit(WRONG);
	if (victim->reads != NOTHING)
		next(&r, &b);
	if (victim->reads == ALL)
		while (!next(&r, &b))
			;
	if (victim->has_child) {
		child = fork();
		if (!child) {
			linger(gate);
			_exit(FINE);
		}
	}
	say(ready, &child, sizeof(child));
	pause();
}

static void killed_readers_hold_nothing(void **state)
{
	static const struct victim victims[] = {
		{ NOTHING, false }, { ONE, false }, { ALL, false },
		{ NOTHING, true },  { ONE, true },  { ALL, true },
	};
	struct arena arena;
	int gate[2], ready[2];
	pid_t pid, child;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(victims) / sizeof(victims[0]); i++) {
		arena_init(&arena, 1);
		arena_open(&arena);
		put(&arena, 10, 1);
		put(&arena, 10, 2);
		make_gate(gate);
		make_gate(ready);
		pid = fork();
		if (!pid)
			be_victim(&arena, &victims[i], gate, ready[1]);
		hear(ready[0], &child, sizeof(child));
		assert_int_equal(stats(&arena).published, 2);
		kill(pid, SIGKILL);
		assert_int_equal(reap(pid), -SIGKILL);
		await_open_seats(&arena, 0);
		assert_int_equal(stats(&arena).free, 4);
		assert_int_equal(stats(&arena).reclaimed_dead_readers, 1);
		assert_int_equal(stats(&arena).detached, 0);
		if (child)
			assert_int_equal(kill(child, 0), 0);
		open_gate(gate);
		open_gate(ready);
		arena_close(&arena);
	}
}

static void a_reader_that_just_exits_has_died(void **state)
{
	struct arena arena;
	struct reader r;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, 10, 1);
	pid = fork();
	if (!pid)
		_exit(attach(&arena, -1, &r) ? WRONG : FINE);
	assert_int_equal(reap(pid), FINE);
	await_open_seats(&arena, 0);
	assert_int_equal(stats(&arena).reclaimed_dead_readers, 1);
	assert_int_equal(stats(&arena).free, 4);
	arena_close(&arena);
}

static void an_inherited_connection_is_worth_nothing(void **state)
{
	struct ta_wire_message msg;
	struct arena arena;
	int sock;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	sock = raw_open(&arena);
	put(&arena, 10, 1);
	pid = fork();
	if (!pid) {
		msg = raw_message(TENSORARENA_NEXT);
		_exit(-raw_ask(sock, &msg));
	}
	assert_int_equal(reap(pid), EIO);
	pid = fork();
	if (!pid) {
		msg = raw_message(TENSORARENA_DETACH);
		_exit(-raw_ask(sock, &msg));
	}
	assert_int_equal(reap(pid), EIO);
	/* The parent still has its seat and its publication. */
	msg = raw_message(TENSORARENA_NEXT);
	assert_int_equal(raw_ask(sock, &msg), 0);
	close(sock);
	await_open_seats(&arena, 0);
	arena_close(&arena);
}

static void children_close_their_copies_and_nothing_else(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	uint32_t before = count_fds();
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, MIB, 1);
	assert_int_equal(next(&r, &b), 0);
	settle(&r);
	pid = fork();
	if (!pid) {
		r.port->ops->close(r.port, true);
		arena.port->ops->close(arena.port, true);
		_exit(count_fds() == before ? FINE : WRONG);
	}
	assert_int_equal(reap(pid), FINE);
	assert_true(sees(&r, &b, 1));
	assert_int_equal(release(&r, &b.ticket), 0);
	put(&arena, MIB, 2);
	assert_int_equal(next(&r, &b), 0);
	reader_close(&r);
	assert_int_equal(stats(&arena).detached, 1);
	arena_close(&arena);
	assert_int_equal(count_fds(), before);
}

/**
 * struct doomed - a writer in a process of its own, with a child that has
 * copies of all its descriptors
 * @arena: as it is there: for its handle
 * @pid: the process
 * @gate: closed when the child may go
 */
struct doomed {
	struct arena arena;
	pid_t pid;
	int gate[2];
};

static void be_doomed(const int gate[2], int go, int ready)
{
	struct arena arena;
	char byte;

	arena_init(&arena, 2);
	arena_open(&arena);
	put(&arena, MIB, 1);
	put(&arena, MIB, 2);
	say(ready, &arena, sizeof(arena));
	/* So that its end of the reader's connection is among the copies. */
	if (read(go, &byte, 1) != 1)
		_exit(WRONG);
	if (!fork()) {
		linger(gate);
		_exit(FINE);
	}
	say(ready, "", 1);
	pause();
}

/* Starts a writer, attaches a reader, and lets the writer have its child. */
static void doom(struct doomed *d, struct reader *reader)
{
	int go[2], ready[2];
	char byte;

	make_gate(d->gate);
	make_gate(go);
	make_gate(ready);
	d->pid = fork();
	if (!d->pid)
		be_doomed(d->gate, go[0], ready[1]);
	hear(ready[0], &d->arena, sizeof(d->arena));
	reader_open(&d->arena, reader);
	say(go[1], "", 1);
	hear(ready[0], &byte, 1);
	open_gate(go);
	open_gate(ready);
}

static void a_dead_writer_is_noticed_whoever_holds_its_sockets(void **state)
{
	struct tensorarena_borrow held, b;
	struct reader r, late;
	struct doomed d;

	(void)state;
	doom(&d, &r);
	assert_int_equal(next(&r, &held), 0);
	kill(d.pid, SIGKILL);
	assert_int_equal(reap(d.pid), -SIGKILL);
	assert_int_equal(next(&r, &b), -EPIPE);
	assert_true(reader_ready(&r));
	assert_true(sees(&r, &held, 1));
	assert_int_equal(release(&r, &held.ticket), 0);
	/* Its child listens still, but nobody will answer. */
	assert_int_equal(attach(&d.arena, -1, &late), -EPIPE);
	reader_close(&r);
	open_gate(d.gate);
}

static void a_waiting_reader_is_woken_by_the_writers_death(void **state)
{
	struct tensorarena_borrow b;
	struct doomed d;
	struct reader r;
	short events;
	int i;

	(void)state;
	doom(&d, &r);
	for (i = 0; i < 2; i++)
		assert_int_equal(next(&r, &b), 0);
	assert_false(reader_ready(&r));
	kill(d.pid, SIGKILL);
	assert_true(
		polls(r.port->ops->poll_fd(r.port, &events), POLLIN, GUARD_MS));
	assert_int_equal(next(&r, &b), -EPIPE);
	assert_int_equal(reap(d.pid), -SIGKILL);
	reader_close(&r);
	open_gate(d.gate);
}

/*
 * A child of the writer holds copies of connections that have ended.  What they
 * report must not be taken for news of whoever came after.
 */
static void copies_of_ended_connections_are_not_heard(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	int gate[2], sock, i;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	sock = raw_open(&arena);
	make_gate(gate);
	pid = fork();
	if (!pid) {
		close(sock);
		linger(gate);
		_exit(FINE);
	}
	close(sock);
	await_open_seats(&arena, 0);
	for (i = 0; i < 10; i++) {
		reader_open(&arena, &r);
		put(&arena, 10, 1);
		assert_int_equal(next(&r, &b), 0);
		settle(&r);
		assert_int_equal(release(&r, &b.ticket), 0);
		reader_close(&r);
	}
	open_gate(gate);
	assert_int_equal(reap(pid), FINE);
	arena_close(&arena);
}

static void a_closed_arena_is_noticed_whoever_holds_its_sockets(void **state)
{
	struct tensorarena_borrow b;
	struct reader r, late;
	struct arena arena;
	int gate[2], handed;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	handed = arena.port->ops->connect(arena.port);
	settle(&r);
	make_gate(gate);
	pid = fork();
	if (!pid) {
		linger(gate);
		_exit(FINE);
	}
	arena_close(&arena);
	assert_true(reader_ready(&r));
	assert_int_equal(next(&r, &b), -EPIPE);
	assert_int_equal(attach(&arena, -1, &late), -ECONNREFUSED);
	assert_int_equal(attach(&arena, handed, &late), -EPIPE);
	close(handed);
	reader_close(&r);
	open_gate(gate);
	assert_int_equal(reap(pid), FINE);
}

static void a_reader_may_give_up_its_privileges(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("# only root has any to give up\n");
		skip();
	}
	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, 10, 1);
	pid = fork();
	if (!pid) {
		if (attach(&arena, -1, &r) || setgid(1234) || setuid(1234) ||
		    next(&r, &b) || !sees(&r, &b, 1))
			_exit(WRONG);
		reader_close(&r);
		_exit(FINE);
	}
	assert_int_equal(reap(pid), FINE);
	assert_int_equal(stats(&arena).detached, 1);
	arena_close(&arena);
}

/*
 * The writer, in a pid namespace of its own where it cannot see the reader:
 * its statistics once there is a reader, and again once there is none.
 */
static void be_contained(int go, int ready)
{
	struct tensorarena_reader_stats row = { 0 };
	struct tensorarena_stats st = { .readers = (uintptr_t)&row,
					.row_bytes = sizeof(row) };
	struct arena arena;
	char byte;

	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, 10, 1);
	say(ready, &arena, sizeof(arena));
	if (read(go, &byte, 1) != 1)
		_exit(WRONG);
	st.nr_readers = 1;
	writer_call(&arena, TENSORARENA_STATS, &st);
	say(ready, &row, sizeof(row));
	await_open_seats(&arena, 0);
	st = stats(&arena);
	say(ready, &st, sizeof(st));
	_exit(FINE);
}

static void readers_out_of_sight_are_seen_to_die(void **state)
{
	const struct victim victim = { ONE, true };
	struct tensorarena_reader_stats row;
	struct tensorarena_stats st;
	struct arena arena;
	int gate[2], ready[2], go[2], mine[2];
	pid_t outer, pid, child;

	(void)state;
	make_gate(gate);
	make_gate(ready);
	make_gate(go);
	make_gate(mine);
	outer = fork();
	if (!outer) {
		/* Only children are in the new namespace. */
		if (unshare(CLONE_NEWPID)) {
			memset(&arena, 0, sizeof(arena));
			say(ready[1], &arena, sizeof(arena));
			_exit(NOT_POSSIBLE);
		}
		pid = fork();
		if (!pid)
			be_contained(go[0], ready[1]);
		_exit(reap(pid));
	}
	hear(ready[0], &arena, sizeof(arena));
	if (!arena.port) {
		assert_int_equal(reap(outer), NOT_POSSIBLE);
		print_message("# no pid namespace may be made here\n");
		skip();
	}
	pid = fork();
	if (!pid)
		be_victim(&arena, &victim, gate, mine[1]);
	hear(mine[0], &child, sizeof(child));
	say(go[1], "", 1);
	hear(ready[0], &row, sizeof(row));
	assert_int_equal(row.reader, 1);
	assert_int_equal(row.pid, 0);
	assert_int_equal(row.pending, 1);
	kill(pid, SIGKILL);
	assert_int_equal(reap(pid), -SIGKILL);
	hear(ready[0], &st, sizeof(st));
	assert_int_equal(st.reclaimed_dead_readers, 1);
	assert_int_equal(st.free, 4);
	assert_int_equal(reap(outer), FINE);
	open_gate(gate);
	open_gate(ready);
	open_gate(go);
	open_gate(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_readers_hold_nothing),
		cmocka_unit_test(a_reader_that_just_exits_has_died),
		cmocka_unit_test(an_inherited_connection_is_worth_nothing),
		cmocka_unit_test(children_close_their_copies_and_nothing_else),
		cmocka_unit_test(
			a_dead_writer_is_noticed_whoever_holds_its_sockets),
		cmocka_unit_test(
			a_waiting_reader_is_woken_by_the_writers_death),
		cmocka_unit_test(
			a_closed_arena_is_noticed_whoever_holds_its_sockets),
		cmocka_unit_test(copies_of_ended_connections_are_not_heard),
		cmocka_unit_test(a_reader_may_give_up_its_privileges),
		cmocka_unit_test(readers_out_of_sight_are_seen_to_die),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded death", tests, NULL, NULL);
}
