// SPDX-License-Identifier: GPL-2.0-only
/* What is not a death: the reader keeps its seat and what it holds. */
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"
#include "waiter.h"

FIXTURE(survival)
{
	struct arena a;
	struct reader r;
	struct tensorarena_ticket ticket;
};

FIXTURE_SETUP(survival)
{
	struct tensorarena_borrow b;

	arena_create(&self->a, 2, CHUNK, 0);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	self->ticket = put(&self->a, 1000, 1);
	MUST(!borrow(&self->r, &self->ticket, &b));
}

FIXTURE_TEARDOWN(survival)
{
}

/* Still seated, still holding, still served. */
static bool survives(FIXTURE_DATA(survival) * self)
{
	struct tensorarena_stats st = stats_get(&self->a);
	struct tensorarena_borrow b;

	if (st.nr_readers != 1 || st.published != 1 ||
	    st.reclaimed_dead_readers || st.detached)
		return false;
	if (borrow(&self->r, &self->ticket, &b) || !delivered(&self->r, &b))
		return false;
	put(&self->a, 1000, 2);
	return !next(&self->r, &b) && delivered(&self->r, &b);
}

static int child_code(pid_t pid)
{
	struct child c = { .pid = pid };
	int status = child_wait(&c);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(survival, a_forked_child_ends)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(7);
	EXPECT_EQ(7, child_code(pid));
	EXPECT_TRUE(survives(self));
}

TEST_F(survival, a_forked_child_is_killed)
{
	struct child c;

	c.pid = fork();
	ASSERT_LE(0, c.pid);
	if (!c.pid)
		for (;;)
			pause();
	child_kill(&c);
	EXPECT_TRUE(survives(self));
}

TEST_F(survival, a_forked_child_closes_everything_and_execs)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		close(self->r.fd);
		execl("/bin/true", "true", NULL);
		_exit(0);
	}
	EXPECT_EQ(0, child_code(pid));
	EXPECT_TRUE(survives(self));
}

TEST_F(survival, a_child_sharing_the_descriptor_table_ends)
{
	long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(7);
	EXPECT_EQ(7, child_code((pid_t)pid));
	EXPECT_TRUE(survives(self));
}

static int end_at_once(void *arg)
{
	(void)arg;
	_exit(7);
}

TEST_F(survival, a_vfork_child_ends)
{
	static char stack[65536] __attribute__((aligned(16)));
	int pid = clone(end_at_once, stack + sizeof(stack),
			CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	ASSERT_LE(0, pid);
	EXPECT_EQ(7, child_code(pid));
	EXPECT_TRUE(survives(self));
}

TEST_F(survival, a_duplicate_is_closed_and_the_mapping_goes)
{
	int copy = dup(self->r.fd);

	ASSERT_LE(0, copy);
	MUST(!close(copy));
	MUST(!munmap(self->r.map, self->r.bytes));
	reader_map(&self->r);
	EXPECT_TRUE(survives(self));
}

static void *attach_in_a_thread(void *arg)
{
	FIXTURE_DATA(survival) *self = arg;
	struct tensorarena_borrow b;

	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	self->ticket = put(&self->a, 1000, 1);
	MUST(!borrow(&self->r, &self->ticket, &b));
	return NULL;
}

TEST(the_thread_that_attached_ends)
{
	FIXTURE_DATA(survival) self;
	pthread_t thread;

	arena_create(&self.a, 2, CHUNK, 0);
	MUST(!pthread_create(&thread, NULL, attach_in_a_thread, &self));
	MUST(!pthread_join(thread, NULL));
	EXPECT_TRUE(survives(&self));
}

static void *end_with_a_table_of_its_own(void *arg)
{
	MUST(!unshare(CLONE_FILES));
	return arg;
}

TEST_F(survival, a_thread_with_its_own_descriptor_table_ends)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, end_with_a_table_of_its_own, NULL));
	MUST(!pthread_join(thread, NULL));
	EXPECT_TRUE(survives(self));
}

/* ---- the process goes on when its first thread has ended ---- */

struct leaderless {
	struct arena *a;
	int sock;
	pid_t leader;
};

static void *go_on(void *arg)
{
	const struct leaderless *l = arg;
	struct tensorarena_borrow b;
	struct reader r;

	reader_attach(l->a, &r);
	reader_map(&r);
	MUST(next(&r, &b) == -EAGAIN);
	tell(l->sock, 1);
	/* By now the leader is a zombie. */
	hear_or_exit(l->sock);
	MUST(thread_state(l->leader) == 'Z');
	MUST(!next(&r, &b));
	MUST(delivered(&r, &b));
	tell(l->sock, 1);
	hear_or_exit(l->sock);
	_exit(0);
}

static void end_the_leader(int sock, void *arg)
{
	struct leaderless *l = malloc(sizeof(*l));
	pthread_t thread;

	MUST(l);
	l->a = arg;
	l->sock = sock;
	l->leader = getpid();
	MUST(!pthread_create(&thread, NULL, go_on, l));
	pthread_exit(NULL);
}

/* The third field of /proc/PID/stat. */
static char process_state(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f) {
		MUST(fscanf(f, "%*d %*s %c", &state) == 1);
		MUST(!fclose(f));
	}
	return state;
}

TEST(the_first_thread_ends)
{
	double end = now_ms() + HANG_MS;
	struct tensorarena_stats st;
	struct child c;
	struct arena a;

	arena_create(&a, 2, CHUNK, 0);
	c = child_start(end_the_leader, &a, a.fd);
	must_hear(c.sock);
	while (process_state(c.pid) != 'Z' && now_ms() < end)
		sched_yield();
	put(&a, 1000, 1);
	tell(c.sock, 1);
	EXPECT_EQ(1, must_hear(c.sock));
	st = stats_get(&a);
	EXPECT_EQ(1, st.published);
	EXPECT_EQ(0, st.reclaimed_dead_readers);
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(1, stats_get(&a).reclaimed_dead_readers);
}

TEST_HARNESS_MAIN
