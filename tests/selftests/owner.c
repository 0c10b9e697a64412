// SPDX-License-Identifier: GPL-2.0-only
/* A file belongs to the address space that first used it. */
#include <kselftest_harness.h>
#include <pthread.h>

#include "arena.h"
#include "proc.h"

/* Every command, and mmap, of a file that is somebody else's. */
static void use_the_writer(int sock, void *arg)
{
	struct tensorarena_populate populate = { 0 };
	struct tensorarena_acquire acq;
	struct tensorarena_stats st = { 0 };
	struct tensorarena_trim trim = { 0 };
	const struct arena *a = arg;

	tell(sock, acquire(a, 1, &acq));
	tell(sock, publish(a, 0, 1, 1));
	tell(sock, abort_slot(a, 0, 1));
	tell(sock, request(a->fd, TENSORARENA_POPULATE, &populate));
	tell(sock, request(a->fd, TENSORARENA_TRIM, &trim));
	tell(sock, evict(a, 1, 0));
	tell(sock, evict(a, 0, TENSORARENA_EVICT_SEAT));
	tell(sock, request(a->fd, TENSORARENA_STATS, &st));
	tell(sock, mmap(NULL, a->bytes, PROT_READ, MAP_SHARED, a->fd, 0) ==
				   MAP_FAILED ?
			   -errno :
			   0);
	tell(sock, 1);
}

static void use_the_reader(int sock, void *arg)
{
	struct tensorarena_ticket ticket = { .generation = 1 };
	const struct reader *r = arg;
	struct tensorarena_borrow b;

	tell(sock, next(r, &b));
	tell(sock, borrow(r, &ticket, &b));
	tell(sock, release(r, &ticket));
	tell(sock, detach(r));
	tell(sock, mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, r->fd, 0) ==
				   MAP_FAILED ?
			   -errno :
			   0);
	tell(sock, 1);
}

/* How many calls the child made; -1 when one gave anything but @expected. */
static int all_gave(struct child *c, int64_t expected)
{
	int64_t value;
	int calls = 0;

	for (;; calls++) {
		value = must_hear(c->sock);
		if (value == 1)
			return calls;
		if (value != expected) {
			fprintf(stderr, "# call %d gave %d\n", calls,
				(int)value);
			return -1;
		}
	}
}

TEST(another_address_space_gets_EIO)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct child c;
	struct reader r;
	struct arena a;

	arena_create(&a, 2, CHUNK, 1);
	reader_attach(&a, &r);
	ticket = put(&a, 10, 1);
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	c = child_start(use_the_writer, &a, -1);
	EXPECT_EQ(9, all_gave(&c, -EIO));
	EXPECT_TRUE(child_ended_well(&c));
	c = child_start(use_the_reader, &r, -1);
	EXPECT_EQ(5, all_gave(&c, -EIO));
	EXPECT_TRUE(child_ended_well(&c));

	/* Nothing of that took effect. */
	EXPECT_EQ(1, stats_get(&a).published);
	EXPECT_EQ(1, stats_get(&a).nr_readers);
	EXPECT_EQ(0, release(&r, &ticket));
}

TEST(a_mapping_makes_the_owner_as_well_as_a_command)
{
	struct child c;
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	arena_map(&a);
	reader_attach(&a, &r);
	reader_map(&r);
	MUST(!munmap(a.map, a.bytes));
	MUST(!munmap(r.map, r.bytes));
	c = child_start(use_the_writer, &a, -1);
	EXPECT_EQ(9, all_gave(&c, -EIO));
	EXPECT_TRUE(child_ended_well(&c));
	c = child_start(use_the_reader, &r, -1);
	EXPECT_EQ(5, all_gave(&c, -EIO));
	EXPECT_TRUE(child_ended_well(&c));
}

/* Gets both files over the socket, and uses them until it is told to end. */
static void own_what_was_passed(int sock, void *arg)
{
	struct arena a = *(struct arena *)arg;
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct reader r = { .bytes = a.bytes };

	a.fd = receive_fd(sock);
	a.map = NULL;
	r.fd = receive_fd(sock);
	ticket = put(&a, 1000, 1);
	reader_map(&r);
	MUST(!borrow(&r, &ticket, &b));
	MUST(delivered(&r, &b));
	tell(sock, (int64_t)ticket.generation);
	hear_or_exit(sock);
}

TEST(the_first_user_is_the_owner_not_the_creator)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r;
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	c = child_start(own_what_was_passed, &a, -1);
	send_fd(c.sock, a.fd);
	send_fd(c.sock, r.fd);
	EXPECT_EQ(1, must_hear(c.sock));
	EXPECT_EQ(-EIO, acquire(&a, 1, &acq));
	EXPECT_EQ(-EIO, next(&r, &b));
	EXPECT_EQ(MAP_FAILED,
		  mmap(NULL, r.bytes, PROT_READ, MAP_SHARED, r.fd, 0));
	EXPECT_EQ(EIO, errno);

	/* The owner's end is the files' end, though we still have both open. */
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(-EIO, acquire(&a, 1, &acq));
	EXPECT_EQ(-EIO, next(&r, &b));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(r.fd));
	EXPECT_EQ(POLLERR | POLLHUP, poll_now(a.fd));
	EXPECT_EQ(-EPIPE, attach(&a, &r));
}

static void *use_from_a_thread(void *arg)
{
	struct arena *a = arg;
	struct tensorarena_acquire acq;

	return (void *)(intptr_t)acquire(a, 1, &acq);
}

TEST(every_thread_of_the_owner_may_use_it)
{
	struct tensorarena_acquire acq;
	pthread_t thread;
	struct arena a;
	void *err;

	arena_create(&a, 2, CHUNK, 0);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	MUST(!pthread_create(&thread, NULL, use_from_a_thread, &a));
	MUST(!pthread_join(thread, &err));
	EXPECT_EQ(NULL, err);
	EXPECT_EQ(2, stats_get(&a).writing);
}

static void attach_for_itself(int sock, void *arg)
{
	struct tensorarena_borrow b;
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, 1);
	MUST(poll_for(r.fd, POLLIN, HANG_MS) == POLLIN);
	MUST(!next(&r, &b));
	tell(sock, delivered(&r, &b));
	hear_or_exit(sock);
}

TEST(a_forked_child_attaches_for_itself)
{
	struct tensorarena_reader_stats row;
	struct tensorarena_stats st = { .readers = (uintptr_t)&row,
					.row_bytes = sizeof(row),
					.nr_readers = 1 };
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(attach_for_itself, &a, a.fd);
	must_hear(c.sock);
	put(&a, 1000, 1);
	EXPECT_EQ(1, must_hear(c.sock));
	ASSERT_EQ(0, request(a.fd, TENSORARENA_STATS, &st));
	EXPECT_EQ(c.pid, row.pid);
	EXPECT_EQ(1, row.pending);
	EXPECT_GT(row.oldest_ns, 0);
	EXPECT_GT(st.oldest_ns, 0);
	EXPECT_TRUE(child_ended_well(&c));
}

TEST_HARNESS_MAIN
