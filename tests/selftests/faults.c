// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many page faults a slot costs: one for each 2 MiB, and all of it mapped
 * by PMD entries.
 */
#include <kselftest_harness.h>
#include <sys/resource.h>

#include "machine.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define SLOT (256 * MIB)
#define MOST_FAULTS 130 /* 128 chunks, and the stack may grow */
#define LIMIT_S 240 /* against hanging */

static long faults_so_far(void)
{
	struct rusage usage;

	MUST(!getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

/* Touches each page; how many faults that took. */
static long faults_of_touching(volatile uint8_t *p, bool write)
{
	long before;
	size_t i;

	before = faults_so_far();
	for (i = 0; i < SLOT; i += PAGE) {
		if (write)
			p[i] = (uint8_t)(i / PAGE);
		else
			(void)p[i];
	}
	return faults_so_far() - before;
}

FIXTURE(slot)
{
	struct arena a;
};

FIXTURE_SETUP(slot)
{
	struct tensorarena_acquire acq;

	arena_create(&self->a, 1, SLOT, 0);
	arena_map(&self->a);
	MUST(!acquire(&self->a, SLOT, &acq));
}

FIXTURE_TEARDOWN(slot)
{
}

static void touch_as_a_reader(int sock, void *arg)
{
	struct reader r;
	size_t i;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, faults_of_touching(r.map, false));
	tell(sock, (int64_t)smaps_bytes(r.map, "FilePmdMapped"));
	for (i = 0; i < SLOT && r.map[i] == (uint8_t)(i / PAGE); i += PAGE)
		;
	tell(sock, i == SLOT);
	wait_for_the_end(sock);
}

TEST_F_TIMEOUT(slot, costs_a_fault_for_each_chunk, LIMIT_S)
{
	struct utsname name;
	long writer, reader = 0;
	uint64_t mapped;
	int i;

	if (!maps_huge_pages())
		SKIP(return, "this kernel maps single pages");
	MUST(!uname(&name));
	kernel_fact("release", "%s", name.release);
	writer = faults_of_touching(self->a.map, true);
	EXPECT_GE(MOST_FAULTS, writer);
	mapped = smaps_bytes(self->a.map, "FilePmdMapped");
	EXPECT_EQ(SLOT, mapped);
	for (i = 0; i < 2; i++) {
		struct child c =
			child_start(touch_as_a_reader, &self->a, self->a.fd);

		reader = must_hear(c.sock);
		EXPECT_GE(MOST_FAULTS, reader);
		EXPECT_EQ(SLOT, must_hear(c.sock));
		EXPECT_TRUE(must_hear(c.sock));
		EXPECT_TRUE(child_ended_well(&c));
	}
	kernel_fact("pmd", "%" PRIu64 " of %lu MiB", mapped / MIB, SLOT / MIB);
	kernel_fact("faults", "writer %ld, reader %ld", writer, reader);
}

TEST_F_TIMEOUT(slot, can_be_mapped_ahead, LIMIT_S)
{
	struct reader r;

	if (!maps_huge_pages())
		SKIP(return, "this kernel maps single pages");
	reader_attach(&self->a, &r);
	reader_map(&r);
	ASSERT_EQ(0, madvise(r.map, SLOT, MADV_POPULATE_READ));
	EXPECT_EQ(SLOT, smaps_bytes(r.map, "FilePmdMapped"));
	EXPECT_GE(2, faults_of_touching(r.map, false));
}

static const char *fate(int sig)
{
	return sig == SIGSEGV ? "SIGSEGV" : sig == SIGBUS ? "SIGBUS" : "?";
}

static void touch_what_was_inherited(int sock, void *arg)
{
	const struct arena *a = arg;

	tell(sock, touch_read(a->map));
	wait_for_the_end(sock);
}

static int touched_by_a_child(struct arena *a)
{
	struct child c = child_start(touch_what_was_inherited, a, -1);
	int sig = (int)must_hear(c.sock);

	MUST(child_ended_well(&c));
	return sig;
}

TEST_F_TIMEOUT(slot, stays_mapped_across_a_fork, LIMIT_S)
{
	int plain, forced = 0;
	bool refused;

	MUST(faults_of_touching(self->a.map, true) > 0);
	plain = touched_by_a_child(&self->a);
	EXPECT_EQ(SIGSEGV, plain);
	if (maps_huge_pages())
		EXPECT_EQ(SLOT, smaps_bytes(self->a.map, "FilePmdMapped"));
	EXPECT_GE(2, faults_of_touching(self->a.map, true));

	refused = madvise(self->a.map, self->a.bytes, MADV_DOFORK);
	if (!refused) {
		forced = touched_by_a_child(&self->a);
		EXPECT_EQ(SIGBUS, forced);
	}
	EXPECT_EQ(0, touch_write(self->a.map));
	kernel_fact("fork", "not inherited: %s; MADV_DOFORK: %s", fate(plain),
		    refused ? "refused" : fate(forced));
}

TEST_HARNESS_MAIN
