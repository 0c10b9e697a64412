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

static void populate(struct arena *a)
{
	struct tensorarena_populate args = { .nbytes = SLOT, .slots = SLOTS };

	MUST(!request(a->fd, TENSORARENA_POPULATE, &args));
}

/* One is published; the others are built and idle. */
FIXTURE_SETUP(slots)
{
	arena_create(&self->a, SLOTS, SLOT, 0);
	reader_attach(&self->a, &self->r);
	reader_map(&self->r);
	populate(&self->a);
	put(&self->a, SLOT, 1);
	MUST(!next(&self->r, &self->b));
}

FIXTURE_TEARDOWN(slots)
{
}

TEST_F_TIMEOUT(slots, that_are_idle_are_memory_for_others, LIMIT_S)
{
	uint64_t kills = oom_kills(), left;
	struct child c = child_start(take_memory, NULL, self->a.fd);
	int64_t value;
	bool taken = hear(c.sock, &value);

	/*
	 * Reclaim does not wait for an arena that another one is working on, and
	 * gives up when it finds it so a few times; whoever works on it may not
	 * get a processor meanwhile.  That does not happen twice.
	 */
	if (!taken && oom_kills() > kills) {
		printf("# killed; once more\n");
		EXPECT_FALSE(child_ended_well(&c));
		populate(&self->a);
		kills = oom_kills();
		c = child_start(take_memory, NULL, self->a.fd);
		taken = hear(c.sock, &value);
	}
	ASSERT_TRUE(taken);
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
