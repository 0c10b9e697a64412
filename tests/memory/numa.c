// SPDX-License-Identifier: GPL-2.0-only
/* On which node slots are, on a machine that has two. */
#include <kselftest_harness.h>
#include <sys/stat.h>

#include "pinned.h"

#define SLOT (8 * CHUNK)
#define STRICT TENSORARENA_CREATE_NODE_STRICT
#define LIMIT_S 120 /* against hanging */

static int arena_on(struct arena *a, uint32_t slots, uint64_t slot_bytes,
		    int node, uint32_t flags)
{
	int err;

	memset(a, 0, sizeof(*a));
	a->made.slot_bytes = slot_bytes;
	a->made.slots = slots;
	a->made.flags = flags;
	a->made.node = node;
	err = control_request(TENSORARENA_CREATE, &a->made);
	a->fd = err ? -1 : a->made.fd;
	a->bytes = slots * a->made.stride;
	return err;
}

/* Pages of mapped memory that are on the node, by the kernel's word. */
static size_t pages_on(uint8_t *p, size_t nbytes, int node)
{
	const size_t nr = nbytes / PAGE;
	void **page = malloc(nr * sizeof(*page));
	int *status = malloc(nr * sizeof(*status));
	size_t i, on = 0;

	stop_numa_balancing();
	MUST(page && status);
	for (i = 0; i < nr; i++) {
		page[i] = p + i * PAGE;
		MUST(!touch_read(page[i]));
	}
	MUST(!syscall(SYS_move_pages, 0, nr, page, NULL, status, 0));
	for (i = 0; i < nr; i++)
		on += status[i] == node;
	free(page);
	free(status);
	return on;
}

TEST(this_machine_has_two_nodes)
{
	uint64_t on[2] = { node_free_bytes(0), node_free_bytes(1) };

	EXPECT_LE(64 * MIB, on[0]);
	EXPECT_LE(64 * MIB, on[1]);
}

FIXTURE(node)
{
	struct arena a;
	struct tensorarena_acquire acq;
};

FIXTURE_VARIANT(node)
{
	int node;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(node, 0){
	.node = 0,
};

FIXTURE_VARIANT_ADD(node, 1){
	.node = 1,
};

FIXTURE_VARIANT_ADD(node, 0_strict){
	.node = 0,
	.flags = STRICT,
};

FIXTURE_VARIANT_ADD(node, 1_strict){
	.node = 1,
	.flags = STRICT,
};

FIXTURE_VARIANT_ADD(node, 1_small){
	.node = 1,
	.flags = TENSORARENA_CREATE_FALLBACK_SMALL,
};

FIXTURE_VARIANT_ADD(node, 1_contiguous){
	.node = 1,
	.flags = TENSORARENA_CREATE_CONTIGUOUS,
};

FIXTURE_SETUP(node)
{
}

FIXTURE_TEARDOWN(node)
{
}

/* From wherever the writer runs. */
TEST_F(node, that_was_asked_for_is_honoured)
{
	run_on(!variant->node);
	ASSERT_EQ(0,
		  arena_on(&self->a, 1, SLOT, variant->node, variant->flags));
	EXPECT_EQ((uint64_t)variant->node,
		  arena_figure(self->a.made.arena, "node"));
	arena_map(&self->a);
	ASSERT_EQ(0, acquire_patiently(&self->a, SLOT, &self->acq));
	EXPECT_EQ(SLOT / PAGE, pages_on(self->a.map, SLOT, variant->node));
}

/* That of the creator, not of the processor that builds it. */
TEST(the_creators_node_is_the_default)
{
	struct tensorarena_acquire acq;
	struct arena a;
	int node;

	for (node = 0; node < 2; node++) {
		run_on(node);
		ASSERT_EQ(0, arena_on(&a, 1, SLOT, TENSORARENA_NODE_LOCAL, 0));
		EXPECT_EQ((uint64_t)node, arena_figure(a.made.arena, "node"));
		run_on(!node);
		arena_map(&a);
		ASSERT_EQ(0, acquire(&a, SLOT, &acq));
		EXPECT_EQ(SLOT / PAGE, pages_on(a.map, SLOT, node));
	}
}

#define CGROUPS "/sys/fs/cgroup/"
#define CONFINED CGROUPS "tensorarena-node0/"

/* What an arena that shall be on the other node gives one who is confined. */
static void acquire_elsewhere(int sock, void *arg)
{
	struct tensorarena_acquire acq;
	struct arena a;

	(void)arg;
	MUST(!write_to(CONFINED "cgroup.procs", "0"));
	MUST(!arena_on(&a, 1, SLOT, 1, STRICT));
	tell(sock, acquire(&a, SLOT, &acq));
	MUST(!close(a.fd));
	MUST(!arena_on(&a, 1, SLOT, 1, 0));
	arena_map(&a);
	tell(sock, acquire(&a, SLOT, &acq));
	tell(sock, (int64_t)pages_on(a.map, SLOT, 0));
}

TEST(a_cpuset_holds_for_slots)
{
	struct child c;

	if (write_to(CGROUPS "cgroup.subtree_control", "+cpuset"))
		SKIP(return, "no cpuset controller in cgroup v2");
	MUST(!mkdir(CONFINED, 0755));
	MUST(!write_to(CONFINED "cpuset.mems", "0"));
	c = child_start(acquire_elsewhere, NULL, -1);
	EXPECT_EQ(-ENOMEM, must_hear(c.sock));
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_EQ((int64_t)(SLOT / PAGE), must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
	MUST(!rmdir(CONFINED));
}

TEST(a_node_that_is_not_there_is_EINVAL)
{
	static const int node[] = { 2, 63, 1 << 20, -2, INT32_MIN, INT32_MAX };
	struct arena a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(node); i++)
		EXPECT_EQ(-EINVAL, arena_on(&a, 1, SLOT, node[i], 0));
	EXPECT_EQ(-EINVAL, arena_on(&a, 1, SLOT, 2, STRICT));
}

/* Takes all of a node that can be had in chunks, and keeps it in use. */
static void fill(struct arena *a, int node)
{
	struct tensorarena_acquire acq;
	int err, slots = 0;

	MUST(!write_figure("/sys/module/tensorarena/parameters/max_total_bytes",
			   4096 * MIB));
	MUST(!arena_on(a, TENSORARENA_MAX_SLOTS, 2 * CHUNK, node, STRICT));
	while (!(err = acquire(a, 2 * CHUNK, &acq)))
		slots++;
	MUST(err == -ENOMEM && slots > 10);
	while (!(err = acquire(a, CHUNK, &acq)))
		;
	MUST(err == -ENOMEM);
}

FIXTURE(full)
{
	struct arena filler, a;
	uint64_t kills;
};

FIXTURE_SETUP(full)
{
	self->kills = oom_kills();
	fill(&self->filler, 1);
}

FIXTURE_TEARDOWN(full)
{
}

TEST_F_TIMEOUT(full, node_declines_when_it_has_to_be_that_one, LIMIT_S)
{
	struct tensorarena_acquire acq;
	uint64_t other;

	ASSERT_EQ(0, arena_on(&self->a, 1, SLOT, 1, STRICT));
	other = node_free_bytes(0);
	EXPECT_EQ(-ENOMEM, acquire(&self->a, SLOT, &acq));
	EXPECT_EQ(1, stats_get(&self->a).declined_no_memory);
	EXPECT_EQ(0, stats_get(&self->a).allocated_bytes);
	EXPECT_LE(other, node_free_bytes(0) + 4 * NOISE);
	EXPECT_EQ(self->kills, oom_kills());

	/* When there is room again, so is the slot. */
	MUST(!close(self->filler.fd));
	arena_map(&self->a);
	ASSERT_EQ(0, acquire(&self->a, SLOT, &acq));
	EXPECT_EQ(SLOT / PAGE, pages_on(self->a.map, SLOT, 1));
}

TEST_F_TIMEOUT(full, node_spills_when_it_need_not_be_that_one, LIMIT_S)
{
	struct tensorarena_acquire acq;

	ASSERT_EQ(0, arena_on(&self->a, 1, SLOT, 1, 0));
	arena_map(&self->a);
	ASSERT_EQ(0, acquire(&self->a, SLOT, &acq));
	EXPECT_EQ(SLOT / PAGE, pages_on(self->a.map, SLOT, 0));
	EXPECT_EQ(1, arena_figure(self->a.made.arena, "node"));
	EXPECT_EQ(self->kills, oom_kills());
}

TEST_HARNESS_MAIN
