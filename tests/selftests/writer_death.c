// SPDX-License-Identifier: GPL-2.0-only
/* The writer dies: what readers hold stays theirs, all else is given up. */
#include <kselftest_harness.h>

#include "arena.h"
#include "dump.h"
#include "proc.h"
#include "text.h"

#define SLOTS 3

/* What the writer has under way, and what keeps its file open after it. */
FIXTURE(writer_death)
{
	struct arena *a; /* shared with the writer */
	struct child writer;
	struct reader r;
	bool dumping;
};

enum end {
	KILLED,
	DUMPING,
	EXITED
};

FIXTURE_VARIANT(writer_death)
{
	enum end end;
	bool forked_child_lives;
};

FIXTURE_VARIANT_ADD(writer_death, killed){
	.end = KILLED,
};

FIXTURE_VARIANT_ADD(writer_death, killed_forked_child_lives){
	.end = KILLED,
	.forked_child_lives = true,
};

FIXTURE_VARIANT_ADD(writer_death, dumping_core){
	.end = DUMPING,
};

FIXTURE_VARIANT_ADD(writer_death, exits){
	.end = EXITED,
};

/* Two seats more than there are readers; one slot written, one published. */
static void write_and_wait(int sock, void *arg)
{
	struct arena *a = arg;
	struct tensorarena_acquire acq;
	bool fork_child;

	arena_create(a, SLOTS, CHUNK, 3);
	tell(sock, 1);
	fork_child = hear_or_exit(sock);
	put(a, 1000, 1);
	MUST(!acquire(a, 1000, &acq));
	if (fork_child) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (!pid)
			wait_for_the_end(sock);
	}
	tell(sock, 1);
	hear_or_exit(sock);
}

FIXTURE_SETUP(writer_death)
{
	self->a = mmap(NULL, sizeof(*self->a), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(self->a != MAP_FAILED);
	self->writer = child_start(write_and_wait, self->a, -1);
	must_hear(self->writer.sock);
	reader_attach(self->a, &self->r);
	reader_map(&self->r);
	tell(self->writer.sock, variant->forked_child_lives);
	must_hear(self->writer.sock);
}

FIXTURE_TEARDOWN(writer_death)
{
	if (self->dumping)
		MUST(end_dump(&self->writer));
	MUST(!close(self->writer.sock));
}

static void end_writer(FIXTURE_DATA(writer_death) * self, enum end end)
{
	switch (end) {
	case KILLED:
		child_kill(&self->writer);
		break;
	case DUMPING:
		start_dump(self->writer.pid);
		self->dumping = true;
		break;
	case EXITED:
		tell(self->writer.sock, 1);
		MUST(child_wait(&self->writer) == 0);
		break;
	}
}

/* Everything but the reader's own publication, which it may read on. */
TEST_F(writer_death, leaves_readers_what_was_published)
{
	const uint64_t arena = self->a->made.arena;
	struct tensorarena_borrow b, held;
	double killed = now_ms();
	struct reader late;

	EXPECT_EQ(1, arena_figure(arena, "published"));
	EXPECT_EQ(1, arena_figure(arena, "free"));
	EXPECT_EQ(3, arena_figure(arena, "readers"));
	ASSERT_EQ(POLLIN, poll_now(self->r.fd));
	EXPECT_EQ(0, poll_for(self->r.fd, POLLRDHUP, 0));

	end_writer(self, variant->end);
	while (arena_figure(arena, "readers") != 1 &&
	       now_ms() < killed + HANG_MS)
		usleep(1000);
	TH_LOG("unclaimed seats closed within %.1f ms", now_ms() - killed);
	EXPECT_EQ(1, arena_figure(arena, "readers"));
	EXPECT_EQ(1, arena_figure(arena, "published"));
	EXPECT_EQ(SLOTS - 1, arena_figure(arena, "free"));
	EXPECT_EQ(-EPIPE, attach(self->a, &late));

	EXPECT_EQ(POLLIN, poll_now(self->r.fd));
	EXPECT_EQ(POLLRDHUP, poll_for(self->r.fd, POLLRDHUP, 0));
	ASSERT_EQ(0, next(&self->r, &held));
	EXPECT_TRUE(delivered(&self->r, &held));
	EXPECT_EQ(POLLHUP, poll_now(self->r.fd));
	EXPECT_EQ(-EPIPE, next(&self->r, &b));
	EXPECT_EQ(0, borrow(&self->r, &held.ticket, &b));
	EXPECT_EQ(1, arena_figure(arena, "published"));
}

/* A reader with nothing to read is told without having to ask. */
TEST_F(writer_death, hangs_up_on_a_reader_that_waits)
{
	const uint64_t arena = self->a->made.arena;
	struct tensorarena_borrow b, ended;
	double released;

	ASSERT_EQ(0, next(&self->r, &b));
	ASSERT_EQ(0, poll_now(self->r.fd));
	end_writer(self, variant->end);
	EXPECT_EQ(POLLHUP, poll_for(self->r.fd, POLLIN, HANG_MS));
	EXPECT_EQ(-EPIPE, next(&self->r, &ended));
	/* What it holds it still can give back. */
	EXPECT_EQ(0, release(&self->r, &b.ticket));
	/* A slot is taken for a moment while its memory is given back. */
	released = now_ms();
	while (arena_figure(arena, "free") != SLOTS &&
	       now_ms() < released + HANG_MS)
		usleep(1000);
	EXPECT_EQ(SLOTS, arena_figure(arena, "free"));
}

TEST_F(writer_death, the_arena_ends_with_its_last_file)
{
	const uint64_t arena = self->a->made.arena;
	double start = now_ms();

	end_writer(self, variant->end);
	EXPECT_TRUE(arena_exists(arena));
	MUST(!munmap(self->r.map, self->r.bytes));
	MUST(!close(self->r.fd));
	/* Somebody may still have the dead writer's file. */
	MUST(!close(self->writer.sock));
	if (self->dumping)
		MUST(end_dump(&self->writer));
	self->dumping = false;
	while (arena_exists(arena) && now_ms() < start + HANG_MS)
		usleep(1000);
	EXPECT_FALSE(arena_exists(arena));
	EXPECT_EQ(0, info_get().arenas);
	self->writer.sock = dup(0);
}

/* ---- killed at any moment ---- */

/* Builds, fills, publishes and frees memory as fast as it can. */
static void churn(int sock, void *arg)
{
	struct tensorarena_populate populate = { .nbytes = 2 * CHUNK,
						 .slots = 4 };
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;
	uint32_t i;

	(void)arg;
	arena_create(&a, 4, 2 * CHUNK, 1);
	reader_attach(&a, &r);
	reader_map(&r);
	tell(sock, 1);
	for (i = 0;; i++) {
		struct tensorarena_trim trim = { 0 };

		put(&a, 2 * CHUNK, i);
		MUST(!next(&r, &b));
		MUST(!touch_read(r.map + b.offset));
		MUST(!release(&r, &b.ticket));
		MUST(!request(a.fd, TENSORARENA_POPULATE, &populate));
		MUST(!request(a.fd, TENSORARENA_TRIM, &trim));
	}
}

TEST(killed_at_any_moment_leaves_nothing)
{
	int round;

	for (round = 0; round < 12; round++) {
		struct child c = child_start(churn, NULL, -1);
		double start;

		must_hear(c.sock);
		usleep((useconds_t)round * 7919 % 60000);
		child_kill(&c);
		MUST(!close(c.sock));
		start = now_ms();
		while (info_get().arenas && now_ms() < start + HANG_MS)
			usleep(1000);
		ASSERT_EQ(0, info_get().arenas);
		ASSERT_EQ(0, info_get().total_bytes);
	}
}

TEST_HARNESS_MAIN
