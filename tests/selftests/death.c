// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readers that die, in every way that leaves something of them behind.
 *
 * The arena has one slot, which the victim has pending, so that the writer,
 * asleep in poll, is woken by nothing but the victim's death being noticed.
 */
#include <kselftest_harness.h>

#include "arena.h"
#include "dump.h"
#include "proc.h"
#include "text.h"
#include "uring.h"
#include "waiter.h"

/* How far the victim gets before its end. */
enum progress {
	ATTACHED, /* the file was never used: it has no owner */
	USED, /* it has an owner but no mapping */
	MAPPED,
	READING, /* mapped, and the publication was taken */
};

enum end {
	KILLED,
	CRASHED,
	DUMPING, /* the dump of its core is never read, and so never ends */
	EXITED,
	EXECED
};

/* What keeps the file, or the address space, alive beyond the end. */
typedef void (*remains_fn)(const struct reader *r);

FIXTURE(death)
{
	struct arena a;
	/* Both ends stay open here: what is queued in it stays queued. */
	int queue[2];
	/* What remains of a victim remains until the other end closes. */
	int life[2];
};

FIXTURE_VARIANT(death)
{
	enum progress progress;
	enum end end;
	remains_fn remains;
	/* Without an owner it is the closing of the file that counts. */
	bool counts_as_detached;
};

static int queue_end, life_end, victim_sock;

static void __attribute__((noreturn)) remain_on(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void remains_none(const struct reader *r)
{
	(void)r;
}

static void remains_forked_child(const struct reader *r)
{
	pid_t pid = fork();

	(void)r;
	MUST(pid >= 0);
	if (!pid)
		remain_on(life_end);
}

static void remains_child_sharing_the_table(const struct reader *r)
{
	long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	(void)r;
	MUST(pid >= 0);
	if (!pid)
		remain_on(life_end);
}

/* Tells in its parent's place, which is asleep until this ends. */
static int vfork_child(void *arg)
{
	(void)arg;
	tell(victim_sock, 1);
	remain_on(life_end);
}

/* Like vfork(): the parent sleeps, its address space lives on in the child. */
static void remains_vfork_child(const struct reader *r)
{
	static char stack[65536] __attribute__((aligned(16)));

	(void)r;
	MUST(clone(vfork_child, stack + sizeof(stack),
		   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) >= 0);
}

static void remains_in_a_socket_queue(const struct reader *r)
{
	send_fd(queue_end, r->fd);
}

/*
 * The ring, which a child keeps, holds the file alone: no descriptor of it is
 * left for the victim's end to close.
 */
static void remains_in_a_ring(const struct reader *r)
{
	struct uring ring;
	pid_t pid;

	MUST(!uring_open(&ring));
	MUST(!uring_register_file(&ring, r->fd));
	MUST(!close(r->fd));
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		remain_on(life_end);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void remains_threads(const struct reader *r)
{
	pthread_t thread;
	int i;

	(void)r;
	for (i = 0; i < 4; i++)
		MUST(!pthread_create(&thread, NULL, sleep_for_ever, NULL));
}

static void remains_descriptor_over_exec(const struct reader *r)
{
	MUST(!fcntl(r->fd, F_SETFD, 0));
}

#define REMAIN_VARIABLE "TENSORARENA_TEST_REMAIN_ON"

/* The image after exec does nothing but keep what it inherited. */
static void __attribute__((constructor)) remain_after_exec(void)
{
	const char *fd = getenv(REMAIN_VARIABLE);

	if (fd)
		remain_on(atoi(fd));
}

static void exec_and_remain(void)
{
	char variable[64];
	char *argv[] = { (char *)"death", NULL };
	char *env[] = { variable, NULL };

	MUST(!fcntl(life_end, F_SETFD, 0));
	snprintf(variable, sizeof(variable), REMAIN_VARIABLE "=%d", life_end);
	execve("/proc/self/exe", argv, env);
	MUST(!"exec returned");
}

struct plan {
	struct arena *a;
	int life_of_test;
	const FIXTURE_VARIANT(death) * how;
};

static void victim(int sock, void *arg)
{
	const struct plan *plan = arg;
	const FIXTURE_VARIANT(death) *how = plan->how;
	struct tensorarena_borrow b;
	struct reader r;

	victim_sock = sock;
	MUST(!close(plan->life_of_test));
	reader_attach(plan->a, &r);
	if (how->progress >= MAPPED)
		reader_map(&r);
	else if (how->progress == USED)
		MUST(next(&r, &b) == -EAGAIN);
	tell(sock, 1);
	hear_or_exit(sock);
	if (how->progress == READING) {
		MUST(!next(&r, &b));
		MUST(delivered(&r, &b));
	}
	how->remains(&r);
	tell(sock, 1);
	hear_or_exit(sock);
	switch (how->end) {
	case EXITED:
		_exit(0);
	case EXECED:
		exec_and_remain();
		break;
	case CRASHED:
		raise(SIGSEGV);
		break;
	case KILLED:
	case DUMPING:
		break;
	}
	for (;;)
		pause();
}

FIXTURE_SETUP(death)
{
	arena_create(&self->a, 1, CHUNK, 0);
	arena_map(&self->a);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, self->queue));
	queue_end = self->queue[1];
	MUST(!pipe2(self->life, O_CLOEXEC));
	life_end = self->life[0];
}

FIXTURE_TEARDOWN(death)
{
	MUST(!close(self->queue[0]));
	MUST(!close(self->queue[1]));
	MUST(!close(self->life[0]));
}

#define DEATH(name, how_far, how_ends, what_remains)                           \
	FIXTURE_VARIANT_ADD(death, name)                                       \
	{                                                                      \
		.progress = how_far, .end = how_ends, .remains = what_remains, \
		.counts_as_detached = (how_far) == ATTACHED,                   \
	}

DEATH(killed_while_reading, READING, KILLED, remains_none);
DEATH(killed_before_reading, MAPPED, KILLED, remains_none);
DEATH(killed_without_a_mapping, USED, KILLED, remains_none);
DEATH(killed_without_ever_using_the_file, ATTACHED, KILLED, remains_none);
DEATH(crashed, READING, CRASHED, remains_none);
DEATH(dumping_core, READING, DUMPING, remains_none);
DEATH(dumping_core_without_a_mapping, USED, DUMPING, remains_none);
DEATH(dumping_core_with_threads, READING, DUMPING, remains_threads);
DEATH(exited, READING, EXITED, remains_none);
DEATH(exited_without_a_mapping, USED, EXITED, remains_none);
DEATH(killed_with_threads, READING, KILLED, remains_threads);
DEATH(forked_child_lives, READING, KILLED, remains_forked_child);
DEATH(forked_child_lives_no_mapping, USED, KILLED, remains_forked_child);
DEATH(exited_forked_child_lives, READING, EXITED, remains_forked_child);
DEATH(table_sharer_lives, READING, KILLED, remains_child_sharing_the_table);
DEATH(table_sharer_lives_no_mapping, USED, KILLED,
      remains_child_sharing_the_table);
DEATH(vfork_child_lives, READING, KILLED, remains_vfork_child);
DEATH(vfork_child_lives_no_mapping, USED, KILLED, remains_vfork_child);
DEATH(queued_in_a_socket, READING, KILLED, remains_in_a_socket_queue);
DEATH(queued_in_a_socket_no_mapping, USED, KILLED, remains_in_a_socket_queue);
DEATH(registered_with_io_uring, READING, KILLED, remains_in_a_ring);
DEATH(registered_with_io_uring_no_mapping, USED, KILLED, remains_in_a_ring);
DEATH(exec_closes, READING, EXECED, remains_none);
DEATH(exec_closes_no_mapping, USED, EXECED, remains_none);
DEATH(exec_keeps_the_descriptor, READING, EXECED, remains_descriptor_over_exec);
DEATH(exec_keeps_the_descriptor_no_mapping, USED, EXECED,
      remains_descriptor_over_exec);

static void end_of(const struct child *c, enum end end)
{
	if (end == KILLED)
		MUST(!kill(c->pid, SIGKILL));
	else if (end == DUMPING)
		start_dump(c->pid);
	else
		tell(c->sock, 1);
}

TEST_F(death, frees_the_slot_and_the_seat)
{
	struct plan plan = { .a = &self->a,
			     .life_of_test = self->life[1],
			     .how = variant };
	struct tensorarena_stats st;
	struct tensorarena_borrow b;
	struct reader again;
	struct waiter w;
	struct child c;
	double start;

	c = child_start(victim, &plan, self->a.fd);
	must_hear(c.sock);
	put(&self->a, 1000, 1);
	tell(c.sock, 1);
	must_hear(c.sock);
	EXPECT_EQ(1, arena_figure(self->a.made.arena, "published"));

	waiter_start(&w, self->a.fd, POLLOUT);
	start = now_ms();
	end_of(&c, variant->end);
	ASSERT_EQ(POLLOUT, waiter_result(&w));
	TH_LOG("free %.1f ms later", w.woken_at - start);

	st = stats_get(&self->a);
	EXPECT_EQ(1, st.free);
	EXPECT_EQ(0, st.nr_readers);
	EXPECT_EQ(1, st.reclaimed_dead_readers + st.detached);
	EXPECT_EQ(variant->counts_as_detached, st.detached);
	EXPECT_EQ(0, st.released);

	/* The arena works on, for the next reader on the same seat. */
	reader_attach(&self->a, &again);
	EXPECT_EQ(0, again.made.seat);
	reader_map(&again);
	put(&self->a, 1000, 2);
	ASSERT_EQ(0, next(&again, &b));
	EXPECT_TRUE(delivered(&again, &b));

	MUST(!close(self->life[1]));
	MUST(!close(c.sock));
	if (variant->end == DUMPING) {
		EXPECT_TRUE(end_dump(&c));
	} else {
		child_wait(&c);
	}
}

/* ---- what lives on in the dead reader's address space ---- */

static const uint8_t *mapped;

static int touch_when_told(void *arg)
{
	(void)arg;
	MUST(!touch_read(mapped));
	tell(victim_sock, 1);
	hear_or_exit(victim_sock);
	tell(victim_sock, touch_read(mapped));
	_exit(0);
}

static void share_memory_with_a_child(int sock, void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	mapped = r.map;
	victim_sock = sock;
	tell(sock, 1);
	hear_or_exit(sock);
	MUST(clone(touch_when_told, stack + sizeof(stack),
		   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) >= 0);
	for (;;)
		pause();
}

TEST(a_vfork_child_finds_the_dead_readers_mapping_revoked)
{
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(share_memory_with_a_child, &a, a.fd);
	must_hear(c.sock);
	put(&a, 1000, 1);
	tell(c.sock, 1);
	must_hear(c.sock);
	child_kill(&c);
	EXPECT_EQ(POLLOUT, poll_for(a.fd, POLLOUT, HANG_MS));
	tell(c.sock, 1);
	EXPECT_EQ(SIGBUS, must_hear(c.sock));
	MUST(!close(c.sock));
}

TEST_HARNESS_MAIN
