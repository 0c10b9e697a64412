// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that takes more than is free gets the memory of idle slots, and
 * nobody is killed for it.
 */
#include <kselftest_harness.h>

#include "tests/selftests/machine.h"

#define SLOTS 16
#define SLOT (16 * MIB)
#define LIMIT_S 240 /* against hanging */

/*
 * All that is free and a quarter of what the slots have.  Not much more: of what
 * is free the kernel keeps a reserve, and of what is freed tens of megabytes on
 * per-cpu lists.
 */
static void take_memory(int sock, void *arg)
{
	const size_t nbytes = free_bytes() + SLOTS * SLOT / 4;
	uint8_t *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	(void)arg;
	MUST(p != MAP_FAILED);
	for (i = 0; i < nbytes; i += PAGE)
		p[i] = 1;
	tell(sock, 0);
	wait_for_the_end(sock);
}

FIXTURE(slots)
{
	struct arena a;
	struct reader r;
	struct tensorarena_borrow b;
};

/* One is published; the others are built and idle. */
FIXTURE_SETUP(slots)
{
	struct tensorarena_populate args = { .nbytes = SLOT, .slots = SLOTS };

	arena_create(&self->a, SLOTS, SLOT, 0);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	MUST(!request(self->a.fd, TENSORARENA_POPULATE, &args));
	put(&self->a, SLOT, 1);
	MUST(!next(&self->r, &self->b));
}

FIXTURE_TEARDOWN(slots)
{
}

TEST_F_TIMEOUT(slots, that_are_idle_are_memory_for_others, LIMIT_S)
{
	const uint64_t kills = oom_kills();
	struct child c = child_start(take_memory, NULL, self->a.fd);
	uint64_t left;
	int64_t value;

	ASSERT_TRUE(hear(c.sock, &value));
	left = stats_get(&self->a).allocated_bytes;
	printf("# %" PRIu64 " of %lu MiB left\n", left / MIB,
	       SLOTS * SLOT / MIB);
	EXPECT_GE(SLOTS * SLOT / 4 * 3, left);
	EXPECT_LE(SLOT, left);
	EXPECT_EQ(kills, oom_kills());
	EXPECT_TRUE(delivered(&self->r, &self->b));
	EXPECT_TRUE(child_ended_well(&c));

	/* When they are needed again they are built again. */
	ASSERT_EQ(0, release(&self->r, &self->b.ticket));
	put(&self->a, SLOT, 2);
	ASSERT_EQ(0, next(&self->r, &self->b));
	EXPECT_TRUE(delivered(&self->r, &self->b));
}

TEST_HARNESS_MAIN
