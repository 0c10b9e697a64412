// SPDX-License-Identifier: GPL-2.0-only
/* What anybody may read of an arena under /sys/class/tensorarena. */
#include <dirent.h>
#include <kselftest_harness.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "arena.h"
#include "proc.h"
#include "text.h"

TEST(the_control_node_belongs_to_the_class)
{
	struct stat st;

	ASSERT_EQ(0, stat("/dev/tensorarena", &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0660, st.st_mode & 07777);
	EXPECT_EQ(0, access("/sys/class/tensorarena/tensorarena/dev", R_OK));
	EXPECT_NE(0, access("/sys/class/misc/tensorarena", F_OK));
}

TEST(figures_follow_what_happens)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;
	uint64_t id;

	arena_create(&a, 2, CHUNK + 1, 2);
	id = a.made.arena;
	EXPECT_EQ(2, arena_figure(id, "slots"));
	EXPECT_EQ(CHUNK + 1, arena_figure(id, "slot_bytes"));
	EXPECT_EQ(2, arena_figure(id, "free"));
	EXPECT_EQ(0, arena_figure(id, "published"));
	EXPECT_EQ(2, arena_figure(id, "readers"));
	EXPECT_EQ(0, arena_figure(id, "allocated_bytes"));
	EXPECT_EQ(0, arena_figure(id, "puts"));

	reader_attach(&a, &r);
	EXPECT_EQ(2, arena_figure(id, "readers"));
	MUST(!evict(&a, 1, TENSORARENA_EVICT_SEAT));
	EXPECT_EQ(1, arena_figure(id, "readers"));
	ticket = put(&a, 1000, 1);
	put(&a, CHUNK + 1, 2);
	EXPECT_EQ(0, arena_figure(id, "free"));
	EXPECT_EQ(2, arena_figure(id, "published"));
	EXPECT_EQ(2, arena_figure(id, "puts"));
	EXPECT_EQ(1000 + CHUNK + 1, arena_figure(id, "put_bytes"));
	EXPECT_EQ(3 * CHUNK, arena_figure(id, "allocated_bytes"));

	EXPECT_EQ(-EAGAIN, acquire(&a, 1, &acq));
	EXPECT_EQ(-EMSGSIZE, acquire(&a, CHUNK + 2, &acq));
	EXPECT_EQ(1, arena_figure(id, "declined_no_slot"));
	EXPECT_EQ(1, arena_figure(id, "declined_oversize"));
	EXPECT_EQ(0, arena_figure(id, "declined_no_memory"));

	ASSERT_EQ(0, release(&r, &ticket));
	EXPECT_EQ(1, arena_figure(id, "released"));
	EXPECT_EQ(1, arena_figure(id, "free"));
	EXPECT_EQ(0, arena_figure(id, "reclaimed_dead_readers"));
	ASSERT_EQ(1, detach(&r));
	EXPECT_EQ(0, arena_figure(id, "readers"));
	EXPECT_EQ(2, arena_figure(id, "free"));
	EXPECT_EQ(1, arena_figure(id, "released"));
}

static void die(int sock, void *arg)
{
	struct reader r;

	reader_attach(arg, &r);
	reader_map(&r);
	tell(sock, 1);
}

TEST(dead_readers_are_counted)
{
	struct child c;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	c = child_start(die, &a, a.fd);
	must_hear(c.sock);
	EXPECT_TRUE(child_ended_well(&c));
	EXPECT_EQ(1, arena_figure(a.made.arena, "reclaimed_dead_readers"));
	EXPECT_EQ(0, arena_figure(a.made.arena, "readers"));
}

TEST(figures_agree_with_stats)
{
	struct tensorarena_stats st;
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;
	uint64_t id;

	arena_create(&a, 4, CHUNK, 0);
	id = a.made.arena;
	reader_attach(&a, &r);
	put(&a, 100, 1);
	put(&a, 200, 2);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	st = stats_get(&a);
	EXPECT_EQ(st.slots, arena_figure(id, "slots"));
	EXPECT_EQ(st.free, arena_figure(id, "free"));
	EXPECT_EQ(st.published, arena_figure(id, "published"));
	EXPECT_EQ(st.nr_readers, arena_figure(id, "readers"));
	EXPECT_EQ(st.allocated_bytes, arena_figure(id, "allocated_bytes"));
	EXPECT_EQ(st.puts, arena_figure(id, "puts"));
	EXPECT_EQ(st.put_bytes, arena_figure(id, "put_bytes"));
	EXPECT_EQ(1, st.free);
	EXPECT_EQ(1, st.writing);
	EXPECT_EQ(2, st.published);
	EXPECT_EQ(1, st.nr_readers);
	EXPECT_EQ(1, st.attached);
	EXPECT_GT(st.oldest_ns, 0);
}

TEST(the_directory_goes_with_the_arena)
{
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	EXPECT_TRUE(arena_exists(a.made.arena));
	reader_attach(&a, &r);
	arena_map(&a);
	MUST(!close(a.fd));
	/* The writer's mapping, then the reader's file, still keep it. */
	EXPECT_TRUE(arena_exists(a.made.arena));
	MUST(!munmap(a.map, a.bytes));
	EXPECT_TRUE(arena_exists(a.made.arena));
	reader_map(&r);
	MUST(!close(r.fd));
	EXPECT_TRUE(arena_exists(a.made.arena));
	MUST(!munmap(r.map, r.bytes));
	EXPECT_FALSE(arena_exists(a.made.arena));
}

TEST(arenas_do_not_mix)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct arena a, other, forged;
	struct reader r;

	arena_create(&a, 1, CHUNK, 0);
	arena_create(&other, 1, CHUNK, 0);
	/* The one's id with the other's secret. */
	forged = other;
	forged.made.arena = a.made.arena;
	EXPECT_EQ(-EACCES, attach(&forged, &r));
	forged = a;
	forged.made.arena = other.made.arena;
	EXPECT_EQ(-EACCES, attach(&forged, &r));

	reader_attach(&other, &r);
	EXPECT_EQ(0, arena_figure(a.made.arena, "readers"));
	EXPECT_EQ(1, arena_figure(other.made.arena, "readers"));
	MUST(!acquire(&a, 1, &(struct tensorarena_acquire){ 0 }));
	ticket = put(&other, 10, 1);
	ticket.arena = a.made.arena;
	EXPECT_EQ(-ESTALE, borrow(&r, &ticket, &b));
	EXPECT_EQ(0, arena_figure(a.made.arena, "puts"));
	EXPECT_EQ(1, arena_figure(other.made.arena, "puts"));
}

TEST(nobody_can_write_there)
{
	struct dirent *entry;
	struct arena a;
	char path[128];
	int files = 0;
	DIR *dir;

	arena_create(&a, 1, CHUNK, 0);
	arena_dir(path, sizeof(path), a.made.arena);
	dir = opendir(path);
	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		struct stat st;

		if (entry->d_type != DT_REG || !strcmp(entry->d_name, "uevent"))
			continue;
		ASSERT_EQ(0, fstatat(dirfd(dir), entry->d_name, &st, 0));
		EXPECT_EQ(0444, st.st_mode & 0777);
		files++;
	}
	MUST(!closedir(dir));
	EXPECT_LE(13, files);
}

TEST_HARNESS_MAIN
