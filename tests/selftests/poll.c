// SPDX-License-Identifier: GPL-2.0-only
/* What poll says, and that whoever sleeps in it is woken. */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>

#include "arena.h"
#include "proc.h"
#include "waiter.h"

/* One slot, which a reader in this process has pending. */
FIXTURE(poll)
{
	struct arena a;
	struct reader r;
	struct tensorarena_ticket ticket;
};

FIXTURE_SETUP(poll)
{
	arena_create(&self->a, 1, CHUNK, 0);
	reader_attach(&self->a, &self->r);
	self->ticket = put(&self->a, 10, 1);
}

FIXTURE_TEARDOWN(poll)
{
}

TEST(a_new_arena_is_writable_and_has_nothing_to_read)
{
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	EXPECT_EQ(POLLOUT, poll_now(a.fd));
	EXPECT_EQ(0, poll_now(r.fd));
}

TEST_F(poll, the_writer_is_writable_while_a_slot_is_free)
{
	struct tensorarena_acquire acq;

	EXPECT_EQ(0, poll_now(self->a.fd));
	ASSERT_EQ(0, release(&self->r, &self->ticket));
	EXPECT_EQ(POLLOUT, poll_now(self->a.fd));
	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	EXPECT_EQ(0, poll_now(self->a.fd));
}

TEST_F(poll, a_reader_is_readable_while_next_has_something)
{
	struct tensorarena_borrow b;

	EXPECT_EQ(POLLIN, poll_now(self->r.fd));
	ASSERT_EQ(0, next(&self->r, &b));
	EXPECT_EQ(0, poll_now(self->r.fd));
	ASSERT_EQ(0, release(&self->r, &b.ticket));
	EXPECT_EQ(0, poll_now(self->r.fd));
}

TEST_F(poll, a_publication_released_unseen_is_not_readable)
{
	ASSERT_EQ(0, release(&self->r, &self->ticket));
	EXPECT_EQ(0, poll_now(self->r.fd));
}

TEST_F(poll, without_its_writer_a_reader_reads_on_and_then_hangs_up)
{
	struct tensorarena_borrow b;

	MUST(!close(self->a.fd));
	/* Its mapping still keeps the writer's file: not closed yet. */
	EXPECT_EQ(POLLIN, poll_now(self->r.fd));
	MUST(!munmap(self->a.map, self->a.bytes));
	EXPECT_EQ(POLLIN, poll_now(self->r.fd));
	ASSERT_EQ(0, next(&self->r, &b));
	EXPECT_EQ(POLLHUP, poll_now(self->r.fd));
	EXPECT_EQ(-EPIPE, next(&self->r, &b));
	/* What it holds it holds. */
	EXPECT_EQ(0, borrow(&self->r, &self->ticket, &b));
	EXPECT_EQ(0, release(&self->r, &self->ticket));
	EXPECT_EQ(POLLHUP, poll_now(self->r.fd));
}

TEST_F(poll, an_evicted_or_detached_reader_is_in_error)
{
	struct reader second;

	reader_attach(&self->a, &second);
	ASSERT_EQ(0, detach(&second));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(second.fd));
	ASSERT_EQ(1, evict(&self->a, self->r.made.reader, 0));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(self->r.fd));
}

TEST_F(poll, release_wakes_the_writer)
{
	struct waiter w;

	waiter_start(&w, self->a.fd, POLLOUT);
	ASSERT_EQ(0, release(&self->r, &self->ticket));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST_F(poll, detach_wakes_the_writer)
{
	struct waiter w;

	waiter_start(&w, self->a.fd, POLLOUT);
	ASSERT_EQ(1, detach(&self->r));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST_F(poll, closing_wakes_the_writer)
{
	struct waiter w;

	waiter_start(&w, self->a.fd, POLLOUT);
	MUST(!close(self->r.fd));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
	EXPECT_EQ(1, stats_get(&self->a).detached);
}

TEST_F(poll, evict_wakes_the_writer_and_the_reader)
{
	struct tensorarena_borrow b;
	struct waiter w, r;

	ASSERT_EQ(0, next(&self->r, &b));
	waiter_start(&w, self->a.fd, POLLOUT);
	waiter_start(&r, self->r.fd, POLLIN);
	ASSERT_EQ(1, evict(&self->a, self->r.made.reader, 0));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
	EXPECT_EQ(POLLERR | POLLHUP, waiter_result(&r));
}

TEST(closing_a_seat_wakes_the_writer)
{
	struct waiter w;
	struct arena a;

	arena_create(&a, 1, CHUNK, 1);
	put(&a, 1, 1);
	waiter_start(&w, a.fd, POLLOUT);
	ASSERT_EQ(1, evict(&a, 0, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST(abort_and_a_publication_for_nobody_wake_the_writer)
{
	struct tensorarena_acquire acq;
	struct waiter w;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	waiter_start(&w, a.fd, POLLOUT);
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));
	EXPECT_EQ(POLLOUT, waiter_result(&w));

	ASSERT_EQ(0, acquire(&a, 1, &acq));
	waiter_start(&w, a.fd, POLLOUT);
	ASSERT_EQ(0, publish(&a, acq.slot, acq.generation, 1));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST_F(poll, publish_wakes_the_readers_it_addresses)
{
	struct reader addressed, other;
	struct tensorarena_acquire acq;
	struct waiter w;
	uint64_t id;

	reader_attach(&self->a, &addressed);
	reader_attach(&self->a, &other);
	ASSERT_EQ(0, release(&self->r, &self->ticket));
	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	waiter_start(&w, addressed.fd, POLLIN);
	id = addressed.made.reader;
	ASSERT_EQ(1, publish_to(&self->a, acq.slot, acq.generation, 1, &id, 1));
	EXPECT_EQ(POLLIN, waiter_result(&w));
	EXPECT_EQ(0, poll_now(other.fd));
}

TEST_F(poll, the_writers_end_wakes_readers)
{
	struct tensorarena_borrow b;
	struct waiter w;

	ASSERT_EQ(0, next(&self->r, &b));
	waiter_start(&w, self->r.fd, POLLIN);
	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!close(self->a.fd));
	EXPECT_EQ(POLLHUP, waiter_result(&w));
}

/* ---- woken by a death ---- */

static void hold_a_mapping(int sock, void *arg)
{
	struct tensorarena_borrow b;
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, 1);
	MUST(poll_for(r.fd, POLLIN, HANG_MS) == POLLIN);
	MUST(!next(&r, &b));
	tell(sock, 2);
	wait_for_the_end(sock);
}

TEST(a_readers_death_wakes_the_writer)
{
	struct waiter w;
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(hold_a_mapping, &a, a.fd);
	must_hear(c.sock);
	put(&a, 10, 1);
	must_hear(c.sock);
	waiter_start(&w, a.fd, POLLOUT);
	child_kill(&c);
	EXPECT_EQ(POLLOUT, waiter_result(&w));
	EXPECT_EQ(1, stats_get(&a).reclaimed_dead_readers);
}

/*
 * Neither a mapping nor a flush tells of this death: nothing is mapped, and
 * the descriptor table lives on in a child.
 */
static void hold_what_only_the_sweep_sees(int sock, void *arg)
{
	struct tensorarena_borrow b;
	struct reader r;
	long pid;

	reader_attach(arg, &r);
	MUST(next(&r, &b) == -EAGAIN);
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	MUST(pid >= 0);
	if (!pid)
		wait_for_the_end(sock);
	tell(sock, pid);
	for (;;)
		pause();
}

TEST(the_sweep_wakes_the_writer)
{
	struct waiter w;
	struct child c;
	struct arena a;
	double killed;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(hold_what_only_the_sweep_sees, &a, a.fd);
	must_hear(c.sock);
	put(&a, 10, 1);
	waiter_start(&w, a.fd, POLLOUT);
	killed = now_ms();
	child_kill(&c);
	EXPECT_EQ(POLLOUT, waiter_result(&w));
	TH_LOG("noticed %.0f ms after the kill", w.woken_at - killed);
	EXPECT_EQ(1, stats_get(&a).reclaimed_dead_readers);
	MUST(!close(c.sock));
}

/*
 * A NEXT that sleeps while it stores its answer, having taken the publication:
 * its page is write-protected by userfaultfd(2), and nobody answers.
 */
struct sleeper {
	pthread_t thread;
	int fd, uffd, err;
	void *page;
};

static void *next_asleep(void *arg)
{
	struct sleeper *s = arg;

	s->err = request(s->fd, TENSORARENA_NEXT, s->page);
	return NULL;
}

static bool sleeper_start(struct sleeper *s, int fd)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = {
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	s->fd = fd;
	s->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (s->uffd < 0 || ioctl(s->uffd, UFFDIO_API, &api))
		return false;
	s->page = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->page != MAP_FAILED);
	memset(s->page, 0, size);
	reg.range.start = protect.range.start = (uintptr_t)s->page;
	reg.range.len = protect.range.len = size;
	if (ioctl(s->uffd, UFFDIO_REGISTER, &reg) ||
	    ioctl(s->uffd, UFFDIO_WRITEPROTECT, &protect))
		return false;
	MUST(!pthread_create(&s->thread, NULL, next_asleep, s));
	return true;
}

/* What NEXT says when its page cannot be written to after all. */
static int sleeper_fail(struct sleeper *s)
{
	MUST(!mprotect(s->page, 1, PROT_READ));
	MUST(!close(s->uffd));
	MUST(!pthread_join(s->thread, NULL));
	return s->err;
}

TEST_F(poll, what_could_not_be_told_wakes_who_found_nothing_meanwhile)
{
	const double end = now_ms() + HANG_MS;
	struct tensorarena_borrow b;
	struct sleeper s;
	struct waiter w;

	if (!sleeper_start(&s, self->r.fd))
		SKIP(return, "no userfaultfd(2) for writes");
	while (poll_now(self->r.fd))
		MUST(now_ms() < end);
	waiter_start(&w, self->r.fd, POLLIN);
	EXPECT_EQ(-EFAULT, sleeper_fail(&s));
	EXPECT_EQ(POLLIN, waiter_result(&w));
	EXPECT_EQ(0, next(&self->r, &b));
}

TEST_HARNESS_MAIN
