// SPDX-License-Identifier: GPL-2.0-only
/* Whatever happens to an arena can be traced. */
#include <kselftest_harness.h>

#include "proc.h"
#include "tracing.h"

FIXTURE(trace)
{
	struct arena a;
	unsigned long long id;
};

FIXTURE_SETUP(trace)
{
	trace_start();
	arena_create(&self->a, 2, CHUNK, 0);
	self->id = self->a.made.arena;
}

FIXTURE_TEARDOWN(trace)
{
	trace_stop();
	trace_show();
}

static const char *const events[] = {
	"ta_abort",	 "ta_acquire", "ta_attach",  "ta_borrow",
	"ta_close_seat", "ta_create",  "ta_death",   "ta_decline",
	"ta_destroy",	 "ta_detach",  "ta_evict",   "ta_next",
	"ta_populate",	 "ta_publish", "ta_release", "ta_retract",
	"ta_trim",
};

TEST(events_are_where_tools_look_for_them)
{
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path),
			 TRACING "/events/tensorarena/%s/format", events[i]);
		EXPECT_EQ(0, access(path, F_OK)) TH_LOG("%s", events[i]);
	}
}

TEST_F(trace, an_arena_comes_and_goes)
{
	EXPECT_TRUE(trace_saw("ta_create: arena=%llu slots=2 slot_bytes=%lu "
			      "seats=0 flags=0x0 ",
			      self->id, CHUNK));
	MUST(!close(self->a.fd));
	EXPECT_TRUE(trace_saw("ta_detach: arena=%llu writer ", self->id));
	EXPECT_TRUE(trace_saw("ta_destroy: arena=%llu ", self->id));
}

TEST_F(trace, a_tensor_from_the_writer_to_a_reader)
{
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct reader r;

	reader_attach(&self->a, &r);
	EXPECT_TRUE(
		trace_saw("ta_attach: arena=%llu reader=1 seat=0", self->id));
	t = put(&self->a, 1000, 1);
	EXPECT_TRUE(trace_saw("ta_acquire: arena=%llu slot=0 generation=1 "
			      "nbytes=1000 open=1 built=1",
			      self->id));
	EXPECT_TRUE(trace_saw("ta_publish: arena=%llu slot=0 generation=1 "
			      "nbytes=1000 addressed=0x1",
			      self->id));
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_TRUE(trace_saw("ta_next: arena=%llu slot=0 generation=1 "
			      "nbytes=1000 reader=1 seat=0 age_ns=",
			      self->id));
	ASSERT_EQ(0, borrow(&r, &t, &b));
	EXPECT_TRUE(trace_saw("ta_borrow: arena=%llu slot=0 generation=1 "
			      "nbytes=1000 reader=1 seat=0 age_ns=",
			      self->id));
	ASSERT_EQ(0, release(&r, &t));
	EXPECT_TRUE(trace_saw("ta_release: arena=%llu slot=0 generation=1 "
			      "reader=1 seat=0 age_ns=",
			      self->id));
	EXPECT_TRUE(trace_saw(" freed=1"));
	/* What was refused has not happened. */
	ASSERT_EQ(-EAGAIN, next(&r, &b));
	ASSERT_EQ(-ESTALE, borrow(&r, &t, &b));
	ASSERT_EQ(-ESTALE, release(&r, &t));
	EXPECT_EQ(1, trace_count("ta_next: "));
	EXPECT_EQ(1, trace_count("ta_borrow: "));
	EXPECT_EQ(1, trace_count("ta_release: "));
}

TEST_F(trace, the_age_at_release_is_that_of_the_publication)
{
	struct tensorarena_ticket t;
	unsigned long long age = 0;
	char line[1024];
	struct reader r;
	double start;
	FILE *f;

	reader_attach(&self->a, &r);
	start = now_ms();
	t = put(&self->a, 1, 1);
	usleep(20000);
	ASSERT_EQ(0, release(&r, &t));
	start = now_ms() - start;
	f = fopen(TRACING "/trace", "re");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "ta_release: "))
			ASSERT_EQ(1, sscanf(strstr(line, "age_ns="),
					    "age_ns=%llu", &age));
	MUST(!fclose(f));
	EXPECT_LE(20000000ULL, age);
	EXPECT_GE(start * 1e6, (double)age);
}

TEST_F(trace, an_abort)
{
	struct tensorarena_acquire acq;

	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	ASSERT_EQ(0, abort_slot(&self->a, acq.slot, acq.generation));
	EXPECT_TRUE(trace_saw("ta_abort: arena=%llu slot=0 generation=1",
			      self->id));
}

TEST_F(trace, a_publication_called_back)
{
	struct tensorarena_ticket t;
	struct reader r;

	reader_attach(&self->a, &r);
	t = put(&self->a, 1, 1);
	ASSERT_EQ(0, retract(&self->a, t.slot, t.generation));
	EXPECT_TRUE(trace_saw("ta_retract: arena=%llu slot=0 generation=1 "
			      "retracted=1 pending=0",
			      self->id));
	MUST(!close(r.fd));
}

TEST_F(trace, an_acquire_whose_answer_could_not_be_stored_is_an_abort)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	MUST(!mprotect(page, 4096, PROT_READ));
	ASSERT_EQ(-EFAULT, request(self->a.fd, TENSORARENA_ACQUIRE, page));
	EXPECT_TRUE(trace_saw("ta_acquire: arena=%llu ", self->id));
	EXPECT_TRUE(trace_saw("ta_abort: arena=%llu ", self->id));
}

TEST_F(trace, a_publication_that_addresses_nobody)
{
	put(&self->a, 1, 1);
	EXPECT_TRUE(trace_saw("ta_publish: arena=%llu slot=0 generation=1 "
			      "nbytes=1 addressed=0",
			      self->id));
}

TEST_F(trace, declines_with_their_reason)
{
	struct tensorarena_acquire acq;

	ASSERT_EQ(-EMSGSIZE, acquire(&self->a, CHUNK + 1, &acq));
	EXPECT_TRUE(trace_saw("ta_decline: arena=%llu nbytes=%lu "
			      "reason=oversize",
			      self->id, CHUNK + 1));
	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	ASSERT_EQ(0, acquire(&self->a, 1, &acq));
	ASSERT_EQ(-EAGAIN, acquire(&self->a, 1, &acq));
	EXPECT_TRUE(trace_saw("ta_decline: arena=%llu nbytes=1 reason=no_slot",
			      self->id));
}

TEST_F(trace, a_decline_for_want_of_memory)
{
	struct tensorarena_acquire acq;
	struct arena big;

	/* More than the machine has. */
	ASSERT_EQ(0, write_figure("/sys/module/tensorarena/parameters/"
				  "max_total_bytes",
				  64ULL << 30));
	MUST(!arena_try(&big, 1, 32ULL << 30, 0, 0));
	EXPECT_EQ(-ENOMEM, acquire(&big, 32ULL << 30, &acq));
	EXPECT_TRUE(trace_saw("ta_decline: arena=%llu nbytes=%llu "
			      "reason=no_memory",
			      (unsigned long long)big.made.arena, 32ULL << 30));
	ASSERT_EQ(0, write_figure("/sys/module/tensorarena/parameters/"
				  "max_total_bytes",
				  0));
}

TEST_F(trace, detach_evict_and_the_closing_of_a_seat)
{
	struct reader leaves, closes, thrown_out;
	struct arena b;

	reader_attach(&self->a, &leaves);
	reader_attach(&self->a, &closes);
	reader_attach(&self->a, &thrown_out);
	put(&self->a, 1, 1);
	EXPECT_EQ(0, detach(&leaves));
	EXPECT_TRUE(trace_saw("ta_detach: arena=%llu reader reader=1 seat=0 "
			      "pid=%d freed=0",
			      self->id, getpid()));
	EXPECT_EQ(0, evict(&self->a, thrown_out.made.reader, 0));
	EXPECT_TRUE(trace_saw("ta_evict: arena=%llu reader reader=3 seat=2 "
			      "pid=0 freed=0",
			      self->id));
	/* Nobody has used it, so it is nobody's. */
	MUST(!close(closes.fd));
	EXPECT_TRUE(trace_saw("ta_detach: arena=%llu reader reader=2 seat=1 "
			      "pid=0 freed=1",
			      self->id));

	arena_create(&b, 1, CHUNK, 2);
	put(&b, 1, 1);
	MUST(!evict(&b, 0, TENSORARENA_EVICT_SEAT));
	EXPECT_TRUE(trace_saw("ta_close_seat: arena=%llu seat=0 freed=0",
			      (unsigned long long)b.made.arena));
	MUST(evict(&b, 1, TENSORARENA_EVICT_SEAT) == 1);
	EXPECT_TRUE(trace_saw("ta_close_seat: arena=%llu seat=1 freed=1",
			      (unsigned long long)b.made.arena));
}

TEST_F(trace, memory_built_ahead_and_given_back)
{
	struct tensorarena_populate args = { .nbytes = CHUNK, .slots = 2 };

	ASSERT_EQ(0, request(self->a.fd, TENSORARENA_POPULATE, &args));
	EXPECT_TRUE(trace_saw("ta_populate: arena=%llu slot=0 capacity=%lu "
			      "err=0",
			      self->id, CHUNK));
	EXPECT_TRUE(trace_saw("ta_populate: arena=%llu slot=1 ", self->id));
	ASSERT_EQ(0, trim(&self->a, CHUNK));
	EXPECT_TRUE(trace_saw("ta_trim: arena=%llu slot=1 nbytes=%lu "
			      "why=writer err=0",
			      self->id, CHUNK));
	EXPECT_EQ(1, trace_count("ta_trim: "));
}

TEST_F(trace, memory_that_reclaim_took)
{
	struct tensorarena_populate args = { .nbytes = CHUNK, .slots = 2 };
	double end = now_ms() + HANG_MS;

	ASSERT_EQ(0, request(self->a.fd, TENSORARENA_POPULATE, &args));
	while (!trace_count("why=reclaim err=0") && now_ms() < end)
		ASSERT_EQ(0, write_to("/proc/sys/vm/drop_caches", "2"));
	EXPECT_LE(1, trace_count("ta_trim: arena=%llu slot=1 nbytes=%lu "
				 "why=reclaim err=0",
				 self->id, CHUNK));
	EXPECT_LE(CHUNK, arena_figure(self->id, "reclaimed_bytes"));
}

TEST_F(trace, memory_of_an_arena_whose_writer_is_gone)
{
	double end = now_ms() + HANG_MS;
	struct reader r;

	reader_attach(&self->a, &r);
	put(&self->a, 1, 1);
	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!close(self->a.fd));
	EXPECT_EQ(1, detach(&r));
	while (!trace_count("why=orphan err=0") && now_ms() < end)
		usleep(10000);
	EXPECT_TRUE(trace_saw("ta_trim: arena=%llu slot=0 nbytes=%lu "
			      "why=orphan err=0",
			      self->id, CHUNK));
}

/* ---- deaths, each seen by something else ---- */

static int queue[2];

static void die_with_a_mapping(int sock, void *arg)
{
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, 1);
}

TEST_F(trace, a_death_that_a_mapping_shows)
{
	struct child c = child_start(die_with_a_mapping, &self->a, self->a.fd);

	must_hear(c.sock);
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_TRUE(trace_saw("ta_death: arena=%llu reader reader=1 seat=0 "
			      "pid=%d cause=unmapped freed=0",
			      self->id, c.pid));
}

static void use(const struct arena *a, struct reader *r)
{
	struct tensorarena_borrow b;

	reader_attach(a, r);
	MUST(next(r, &b) == -EAGAIN);
}

static void die_with_a_file(int sock, void *arg)
{
	struct reader r;

	use(arg, &r);
	tell(sock, 1);
}

TEST_F(trace, a_death_that_the_exit_shows)
{
	struct child c = child_start(die_with_a_file, &self->a, self->a.fd);

	must_hear(c.sock);
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_TRUE(trace_saw("ta_death: arena=%llu reader reader=1 seat=0 "
			      "pid=%d cause=exited freed=0",
			      self->id, c.pid));
}

static void die_without_a_file(int sock, void *arg)
{
	struct reader r;

	use(arg, &r);
	send_fd(queue[1], r.fd);
	MUST(!close(r.fd));
	tell(sock, 1);
}

static struct child die_unseen(const struct arena *a)
{
	struct child c;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, queue));
	c = child_start(die_without_a_file, (void *)a, a->fd);
	must_hear(c.sock);
	MUST(child_ended_well(&c));
	return c;
}

TEST_F(trace, a_death_that_a_sweep_finds)
{
	struct child c = die_unseen(&self->a);

	EXPECT_EQ(0, trace_count("ta_death: "));
	put(&self->a, 1, 1);
	EXPECT_TRUE(trace_saw("ta_death: arena=%llu reader reader=1 seat=0 "
			      "pid=%d cause=found freed=0",
			      self->id, c.pid));
}

TEST_F(trace, a_death_that_the_last_close_shows)
{
	struct child c = die_unseen(&self->a);
	int fd = receive_fd(queue[0]);

	EXPECT_EQ(0, trace_count("ta_death: "));
	MUST(!close(fd));
	EXPECT_TRUE(trace_saw("ta_death: arena=%llu reader reader=1 seat=0 "
			      "pid=%d cause=closed freed=0",
			      self->id, c.pid));
}

static void write_and_die(int sock, void *arg)
{
	struct arena a;

	(void)arg;
	arena_create(&a, 1, CHUNK, 0);
	arena_map(&a);
	tell(sock, (int64_t)a.made.arena);
}

TEST_F(trace, the_death_of_a_writer)
{
	struct child c = child_start(write_and_die, NULL, -1);
	unsigned long long id = (unsigned long long)must_hear(c.sock);

	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_TRUE(trace_saw("ta_death: arena=%llu writer reader=0 seat=0 "
			      "pid=%d cause=unmapped freed=0",
			      id, c.pid));
	EXPECT_TRUE(trace_saw("ta_destroy: arena=%llu ", id));
}

TEST_HARNESS_MAIN
