// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every tier on a machine whose free memory is in pieces: one page of every
 * 64 KiB is held where nobody can move it, by a pipe that it was spliced into.
 *
 * A slot that cannot be had has to be declined soon.  Looking for huge pages
 * ends with the first that is not there, looking for one extent after a quarter
 * of a second; so a decline takes less than BOUND_MS on a machine that is not
 * emulated.  It is shown and not judged; what is judged is fifty times that.
 *
 * The tests depend on their order: the last ones put pieces together again.
 */
#include <kselftest_harness.h>
#include <sys/uio.h>

#include "pinned.h"

#define BOUND_MS 500
#define LIMIT_S 240 /* against hanging */

#define SLOT (128 * MIB)
#define HOLD_EVERY 16UL /* pages */
#define RESERVE (64 * MIB) /* left free while the rest is taken */
#define PIPE_PAGES 256
#define MAX_PIPES 1024

#define CONTIGUOUS TENSORARENA_CREATE_CONTIGUOUS
#define FALLBACK_SMALL TENSORARENA_CREATE_FALLBACK_SMALL

/* Pipes full of held pages, in the order of their frame numbers. */
static int pipes[MAX_PIPES][2];
static size_t nr_pipes;

struct held {
	uint64_t frame;
	uint8_t *page;
};

static int by_frame(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Takes nearly all memory, in single pages. */
static uint8_t *take_memory(size_t *nbytes)
{
	const size_t most = figure_in("/proc/meminfo", "MemTotal:") << 10;
	uint8_t *p = mmap(NULL, most, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	MUST(p != MAP_FAILED);
	MUST(!madvise(p, most, MADV_NOHUGEPAGE));
	for (i = 0; i < most; i += PAGE) {
		if (!(i % MIB) && free_bytes() < RESERVE)
			break;
		p[i] = 1;
	}
	*nbytes = i;
	return p;
}

/* The first page of each HOLD_EVERY frames that we have one of. */
static size_t choose(uint8_t *p, size_t nbytes, struct held *held)
{
	const size_t nr = nbytes / PAGE;
	uint64_t *frame = malloc(nr * sizeof(*frame));
	size_t i, n = 0, kept = 0;

	MUST(frame);
	frames_of(p, frame, nr);
	for (i = 0; i < nr; i++) {
		if (frame[i] % HOLD_EVERY)
			continue;
		held[n].frame = frame[i];
		held[n++].page = p + i * PAGE;
	}
	qsort(held, n, sizeof(*held), by_frame);
	for (i = 0; i < n; i++)
		if (!kept || held[i].frame != held[kept - 1].frame)
			held[kept++] = held[i];
	free(frame);
	return kept;
}

static void hold(const struct held *held, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		struct iovec iov = { .iov_base = held[i].page,
				     .iov_len = PAGE };

		if (!(i % PIPE_PAGES)) {
			MUST(nr_pipes < MAX_PIPES);
			MUST(!pipe(pipes[nr_pipes]));
			MUST(!fcntl(pipes[nr_pipes][0], F_SETFL, O_NONBLOCK));
			MUST(fcntl(pipes[nr_pipes][1], F_SETPIPE_SZ,
				   PIPE_PAGES * PAGE) >= 0);
			nr_pipes++;
		}
		MUST(vmsplice(pipes[nr_pipes - 1][1], &iov, 1, 0) ==
		     (ssize_t)PAGE);
	}
}

/* Before any test, once: it takes its time. */
static void __attribute__((constructor)) fragment(void)
{
	static struct held held[MAX_PIPES * PIPE_PAGES];
	const double start = now_ms();
	size_t nbytes, nr;
	uint8_t *p;

	stop_numa_balancing();
	run_on(0);
	MUST(!write_figure("/proc/sys/vm/min_free_kbytes", 2048));
	p = take_memory(&nbytes);
	nr = choose(p, nbytes, held);
	hold(held, nr);
	MUST(!munmap(p, nbytes));
	printf("# %zu of %zu MiB taken, %zu pages held, in %.0f ms\n",
	       nbytes / MIB,
	       (size_t)figure_in("/proc/meminfo", "MemTotal:") >> 10, nr,
	       now_ms() - start);
	MUST(!fflush(stdout));
}

/* Lets the pages of a pipe go, for all processes. */
static void let_go(size_t nr)
{
	static uint8_t bytes[PIPE_PAGES * PAGE];

	while (read(pipes[nr][0], bytes, sizeof(bytes)) > 0)
		;
	MUST(errno == EAGAIN);
}

FIXTURE(pieces)
{
	struct arena a;
	struct tensorarena_acquire acq;
	uint64_t before;
	uint64_t kills;
};

FIXTURE_SETUP(pieces)
{
	self->before = free_in_peace();
	self->kills = oom_kills();
}

FIXTURE_TEARDOWN(pieces)
{
	/* Whatever the tier, nobody is killed for it. */
	EXPECT_EQ(self->kills, oom_kills());
}

TEST_F(pieces, are_what_the_memory_is_in)
{
	char line[512], *p;
	FILE *f = fopen("/proc/buddyinfo", "re");
	uint64_t huge = 0;

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		int order;

		p = strstr(line, "zone");
		ASSERT_NE(NULL, p);
		p += strcspn(p, " ");
		p += strspn(p, " ");
		p += strcspn(p, " ");
		for (order = 0; order <= 10; order++) {
			uint64_t blocks = strtoull(p, &p, 10);

			if (order >= 9)
				huge += blocks * PAGE << order;
		}
	}
	MUST(!fclose(f));
	printf("# %" PRIu64 " MiB free, %" PRIu64 " MiB in huge blocks\n",
	       self->before / MIB, huge / MIB);
	EXPECT_LE(4 * SLOT, self->before);
	EXPECT_GT(SLOT / 2, huge);
}

/* Declines in time, counts it, and leaves nothing allocated. */
static void declines(struct __test_metadata *_metadata,
		     FIXTURE_DATA(pieces) * self, uint64_t slot_bytes,
		     uint32_t flags)
{
	double start;
	int err;

	ASSERT_EQ(0, arena_try(&self->a, 1, slot_bytes, 0, flags));
	start = now_ms();
	err = acquire(&self->a, slot_bytes, &self->acq);
	EXPECT_EQ(-ENOMEM, err);
	printf("# declined after %.0f ms; the bound is %d\n", now_ms() - start,
	       BOUND_MS);
	EXPECT_GT(50 * BOUND_MS, now_ms() - start);
	EXPECT_EQ(1, stats_get(&self->a).declined_no_memory);
	EXPECT_EQ(1, arena_figure(self->a.made.arena, "declined_no_memory"));
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(1, stats_get(&self->a).free);
	EXPECT_TRUE(free_again(self->before, 0));
	kernel_fact("fragmented", "%s: %s",
		    flags & CONTIGUOUS ? "contiguous" : "huge",
		    err ? strerrorname_np(-err) : "ok");
	/* It stays an arena: what there is can be had. */
	EXPECT_EQ(0, acquire(&self->a, 0, &self->acq));
}

TEST_F_TIMEOUT(pieces, are_not_enough_for_huge, LIMIT_S)
{
	declines(_metadata, self, SLOT, 0);
}

TEST_F_TIMEOUT(pieces, are_not_enough_for_contiguous, LIMIT_S)
{
	declines(_metadata, self, SLOT, CONTIGUOUS);
}

TEST_F_TIMEOUT(pieces, are_populated_as_far_as_they_go, LIMIT_S)
{
	struct tensorarena_populate args = { .nbytes = SLOT, .slots = 2 };

	ASSERT_EQ(0, arena_try(&self->a, 2, SLOT, 0, 0));
	EXPECT_EQ(-ENOMEM, request(self->a.fd, TENSORARENA_POPULATE, &args));
	EXPECT_EQ(0, args.ready);
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_TRUE(free_again(self->before, 0));
}

TEST_F_TIMEOUT(pieces, are_enough_for_fallback_small, LIMIT_S)
{
	struct tensorarena_borrow b;
	struct extents e;
	struct reader r;
	uint64_t huge;
	int fd;

	pin_module_load();
	ASSERT_EQ(0, arena_try(&self->a, 1, SLOT, 0, FALLBACK_SMALL));
	reader_attach(&self->a, &r);
	reader_map(&r);
	put(&self->a, SLOT, 1);
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_TRUE(delivered(&r, &b));
	EXPECT_EQ(SLOT, stats_get(&self->a).allocated_bytes);
	EXPECT_EQ(0, stats_get(&self->a).declined_no_memory);

	huge = slot_figure(&self->a, "slot_huge_bytes", 0);
	EXPECT_GT(SLOT, huge);
	e = extents_of(self->a.map, SLOT);
	EXPECT_EQ(e.count, slot_figure(&self->a, "slot_extents", 0));
	EXPECT_EQ(e.largest,
		  slot_figure(&self->a, "slot_largest_extent_bytes", 0));
	EXPECT_LT(SLOT / CHUNK, e.count);
	EXPECT_EQ(huge, smaps_bytes(self->a.map, "FilePmdMapped"));
	kernel_fact("fragmented",
		    "fallback_small: %" PRIu64 " extents in %lu MiB", e.count,
		    SLOT / MIB);

	/* A device takes it as it is. */
	fd = pin(r.map, SLOT, false);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(pin_matches(fd, SLOT, 1));
	ASSERT_EQ(0, release(&r, &b.ticket));
	EXPECT_EQ(-EBUSY, trim(&self->a, 0));
	MUST(!close(fd));
	EXPECT_EQ(0, trim(&self->a, 0));
	/* Their page tables. */
	MUST(!munmap(self->a.map, self->a.bytes));
	MUST(!munmap(r.map, r.bytes));
	EXPECT_TRUE(free_again(self->before, 0));
}

/* ---- some of them are put together ---- */

static bool is_zero(const uint8_t *p, size_t nbytes)
{
	static const uint8_t zero[PAGE];
	size_t i;

	for (i = 0; i < nbytes; i += PAGE)
		if (memcmp(p + i, zero, PAGE))
			return false;
	return true;
}

/*
 * Pipes, each of which holds 16 MiB apart; the first ones, since the search for
 * one extent begins at low frames and has little time.
 */
#define REGION 6

TEST_F_TIMEOUT(pieces, that_are_joined_are_used_by_every_tier, LIMIT_S)
{
	struct arena contiguous, small;
	uint64_t huge;
	size_t i;

	for (i = 0; i < REGION; i++)
		let_go(i);
	ASSERT_EQ(0, arena_try(&contiguous, 1, 4 * CHUNK, 0, CONTIGUOUS));
	ASSERT_EQ(0, acquire_patiently(&contiguous, 1, &self->acq));
	EXPECT_EQ(1, slot_figure(&contiguous, "slot_extents", 0));
	EXPECT_EQ(4 * CHUNK,
		  slot_figure(&contiguous, "slot_largest_extent_bytes", 0));
	arena_map(&contiguous);
	EXPECT_EQ(1, extents_of(contiguous.map, 4 * CHUNK).count);
	/* We had it before, and wrote to it. */
	EXPECT_TRUE(is_zero(contiguous.map, 4 * CHUNK));

	ASSERT_EQ(0, arena_try(&self->a, 1, 4 * CHUNK, 0, 0));
	ASSERT_EQ(0, acquire(&self->a, 4 * CHUNK, &self->acq));
	EXPECT_EQ(4 * CHUNK, slot_figure(&self->a, "slot_huge_bytes", 0));

	/* Some huge, the rest not. */
	ASSERT_EQ(0, arena_try(&small, 1, 256 * MIB, 0, FALLBACK_SMALL));
	ASSERT_EQ(0, acquire(&small, 256 * MIB, &self->acq));
	arena_map(&small);
	huge = slot_figure(&small, "slot_huge_bytes", 0);
	EXPECT_LT(0, huge);
	EXPECT_GT(256 * MIB, huge);
	EXPECT_TRUE(is_zero(small.map, 256 * MIB));
	pattern_fill(small.map, 256 * MIB, 1);
	EXPECT_EQ(huge, smaps_bytes(small.map, "FilePmdMapped"));
	EXPECT_TRUE(pattern_matches(small.map, 256 * MIB, 1));
	MUST(!munmap(contiguous.map, contiguous.bytes));
	MUST(!close(contiguous.fd));
	MUST(!munmap(small.map, small.bytes));
	MUST(!close(small.fd));
	MUST(!close(self->a.fd));
	EXPECT_EQ(0, info_get().arenas);
}

/* There is a part of what it takes; that part is not kept. */
TEST_F_TIMEOUT(pieces, of_which_some_are_joined_are_all_given_back, LIMIT_S)
{
	declines(_metadata, self, 256 * MIB, 0);
}

TEST_F_TIMEOUT(pieces, when_all_are_joined_give_huge_slots_again, LIMIT_S)
{
	size_t i;

	for (i = 0; i < nr_pipes; i++)
		let_go(i);
	ASSERT_EQ(0, arena_try(&self->a, 1, 256 * MIB, 0, 0));
	EXPECT_EQ(0, acquire(&self->a, 256 * MIB, &self->acq));
	EXPECT_EQ(256 * MIB, slot_figure(&self->a, "slot_huge_bytes", 0));
}

TEST_HARNESS_MAIN
