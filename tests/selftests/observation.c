// SPDX-License-Identifier: GPL-2.0-only
/*
 * What operators and their tools see: who holds what under
 * /sys/class/tensorarena, the module's totals, events for udev, and the table in
 * debugfs.
 */
#include <kselftest_harness.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "machine.h"
#include "waiter.h"

#define TOTALS "/sys/class/tensorarena/tensorarena/"
#define TABLE "/sys/kernel/debug/tensorarena/arenas"

static uint64_t total(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), TOTALS "%s", name);
	return figure_in(path, "");
}

TEST(the_shape_of_an_arena_and_who_made_it)
{
	char pid[32];
	struct arena a;

	arena_create(&a, 2, CHUNK + 1, 0);
	EXPECT_EQ(CHUNK + 1, arena_figure(a.made.arena, "slot_bytes"));
	EXPECT_EQ(2 * CHUNK, arena_figure(a.made.arena, "stride"));
	EXPECT_TRUE(arena_text_is(&a, "flags", "0x0"));
	EXPECT_EQ(getuid(), arena_figure(a.made.arena, "uid"));
	EXPECT_TRUE(arena_text_is(&a, "writer_pid", "0"));
	arena_map(&a);
	snprintf(pid, sizeof(pid), "%d", getpid());
	EXPECT_TRUE(arena_text_is(&a, "writer_pid", pid));
	MUST(!arena_try(&a, 1, CHUNK, 0, TENSORARENA_CREATE_WRITABLE_READERS));
	EXPECT_TRUE(arena_text_is(&a, "flags", "0x1"));
}

TEST(every_open_seat_has_its_place_in_the_lists)
{
	char pids[32];
	struct tensorarena_ticket first;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;

	arena_create(&a, 4, CHUNK, 3);
	MUST(!evict(&a, 1, TENSORARENA_EVICT_SEAT));
	EXPECT_TRUE(arena_text_is(&a, "seats", "0 2"));
	EXPECT_TRUE(arena_text_is(&a, "seat_readers", "0 0"));
	EXPECT_TRUE(arena_text_is(&a, "seat_pids", "0 0"));
	EXPECT_TRUE(arena_text_is(&a, "seat_pending", "0 0"));
	EXPECT_TRUE(arena_text_is(&a, "seat_oldest_ns", "0 0"));
	reader_attach(&a, &r);
	first = put(&a, 1, 1);
	put(&a, 1, 2);
	ASSERT_EQ(0, borrow(&r, &first, &b));
	ASSERT_EQ(0, release(&r, &first));
	snprintf(pids, sizeof(pids), "%d 0", getpid());
	EXPECT_TRUE(arena_text_is(&a, "seat_readers", "1 0"));
	EXPECT_TRUE(arena_text_is(&a, "seat_pids", pids));
	EXPECT_TRUE(arena_text_is(&a, "seat_pending", "1 2"));
	EXPECT_FALSE(arena_text_is(&a, "seat_oldest_ns", "0 0"));
	MUST(evict(&a, 2, TENSORARENA_EVICT_SEAT) == 1);
	EXPECT_EQ(0, detach(&r) < 0);
	EXPECT_TRUE(arena_text_is(&a, "seats", ""));
	EXPECT_TRUE(arena_text_is(&a, "seat_pids", ""));
}

TEST(sixty_four_seats_fit)
{
	struct arena a;

	arena_create(&a, TENSORARENA_MAX_SLOTS, CHUNK, TENSORARENA_MAX_READERS);
	EXPECT_EQ(TENSORARENA_MAX_READERS,
		  arena_figure(a.made.arena, "readers"));
	put(&a, 1, 1);
	EXPECT_EQ(1,
		  slot_figure(&a, "seat_pending", TENSORARENA_MAX_READERS - 1));
	EXPECT_EQ(0,
		  slot_figure(&a, "slot_extents", TENSORARENA_MAX_SLOTS - 1));
}

TEST(the_oldest_publication_names_who_holds_it)
{
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct reader fast, slow;
	struct arena a;
	uint64_t id;

	arena_create(&a, 2, CHUNK, 0);
	id = a.made.arena;
	reader_attach(&a, &fast);
	reader_attach(&a, &slow);
	EXPECT_EQ(0, arena_figure(id, "oldest_reader"));
	t = put(&a, 1, 1);
	ASSERT_EQ(0, borrow(&fast, &t, &b));
	ASSERT_EQ(0, release(&fast, &t));
	EXPECT_EQ(slow.made.reader, arena_figure(id, "oldest_reader"));
	/* It has done nothing yet that would make it anybody's. */
	EXPECT_EQ(0, arena_figure(id, "oldest_reader_pid"));
	ASSERT_EQ(0, borrow(&slow, &t, &b));
	EXPECT_EQ((uint64_t)getpid(), arena_figure(id, "oldest_reader_pid"));
	EXPECT_LT(0, arena_figure(id, "oldest_ns"));
	ASSERT_EQ(0, release(&slow, &t));
	EXPECT_EQ(0, arena_figure(id, "oldest_reader"));
	EXPECT_EQ(0, arena_figure(id, "oldest_reader_pid"));
}

TEST(extents_are_those_of_the_slots)
{
	struct tensorarena_populate args = { .nbytes = 4 * CHUNK, .slots = 2 };
	struct arena a;

	arena_create(&a, 2, 4 * CHUNK, 0);
	EXPECT_EQ(0, arena_figure(a.made.arena, "extents"));
	ASSERT_EQ(0, request(a.fd, TENSORARENA_POPULATE, &args));
	EXPECT_EQ(slot_figure(&a, "slot_extents", 0) +
			  slot_figure(&a, "slot_extents", 1),
		  arena_figure(a.made.arena, "extents"));
	EXPECT_LE(2, arena_figure(a.made.arena, "extents"));
}

TEST(who_has_to_wait_is_counted)
{
	struct tensorarena_acquire acq;
	struct waiter w;
	struct reader r;
	struct arena a;
	uint64_t id;

	arena_create(&a, 1, CHUNK, 0);
	id = a.made.arena;
	reader_attach(&a, &r);
	EXPECT_EQ(POLLOUT, poll_now(a.fd));
	EXPECT_EQ(0, arena_figure(id, "writer_waits"));
	EXPECT_EQ(0, poll_now(r.fd));
	EXPECT_EQ(1, arena_figure(id, "reader_waits"));
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	waiter_start(&w, a.fd, POLLOUT);
	EXPECT_LE(1, arena_figure(id, "writer_waits"));
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST(totals_are_those_of_all_arenas_and_outlast_them)
{
	uint64_t puts = total("puts"), put_bytes = total("put_bytes");
	uint64_t arenas = total("arenas"), declined = total("declined_no_slot");
	uint64_t bytes = total("allocated_bytes");
	uint64_t limited = total("total_bytes");
	struct tensorarena_acquire acq;
	struct reader r, s;
	struct arena a, b;

	arena_create(&a, 1, CHUNK, 0);
	arena_create(&b, 2, CHUNK, 0);
	reader_attach(&a, &r);
	reader_attach(&b, &s);
	put(&a, 100, 1);
	put(&b, 200, 2);
	ASSERT_EQ(-EAGAIN, acquire(&a, 1, &acq));
	EXPECT_EQ(arenas + 2, total("arenas"));
	EXPECT_EQ(puts + 2, total("puts"));
	EXPECT_EQ(put_bytes + 300, total("put_bytes"));
	EXPECT_EQ(declined + 1, total("declined_no_slot"));
	EXPECT_EQ(bytes + 2 * CHUNK, total("allocated_bytes"));
	EXPECT_EQ(limited + 3 * CHUNK, total("total_bytes"));
	EXPECT_EQ(info_get().total_bytes, total("total_bytes"));
	EXPECT_LE(2, total("published"));
	MUST(!munmap(a.map, a.bytes));
	MUST(!munmap(b.map, b.bytes));
	MUST(!close(a.fd));
	MUST(!close(r.fd));
	MUST(!close(s.fd));
	MUST(!close(b.fd));
	EXPECT_EQ(arenas, total("arenas"));
	EXPECT_EQ(puts + 2, total("puts"));
	EXPECT_EQ(put_bytes + 300, total("put_bytes"));
	EXPECT_EQ(declined + 1, total("declined_no_slot"));
	EXPECT_EQ(bytes, total("allocated_bytes"));
}

/* ---- events for udev ---- */

static int listen_to_the_kernel(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = 1 };
	struct timeval limit = { .tv_sec = HANG_MS / 1000 };
	int sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
			  NETLINK_KOBJECT_UEVENT);

	MUST(sock >= 0);
	MUST(!bind(sock, (struct sockaddr *)&address, sizeof(address)));
	MUST(!setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	return sock;
}

/* Whether the kernel says so, whatever else it has to say before. */
static bool hear_of(int sock, const char *action, uint64_t arena)
{
	char wanted[128], message[4096];
	ssize_t n;

	snprintf(wanted, sizeof(wanted),
		 "%s@/devices/virtual/tensorarena/arena%" PRIu64, action,
		 arena);
	while ((n = recv(sock, message, sizeof(message) - 1, 0)) > 0) {
		message[n] = '\0';
		if (!strcmp(message, wanted))
			return true;
	}
	return false;
}

TEST(udev_hears_of_arenas_that_come_and_go)
{
	int sock = listen_to_the_kernel();
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	EXPECT_TRUE(hear_of(sock, "add", a.made.arena));
	MUST(!close(a.fd));
	EXPECT_TRUE(hear_of(sock, "remove", a.made.arena));
}

/* ---- the table for people ---- */

static bool table_has(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static bool table_has(const char *format, ...)
{
	char wanted[256], line[256];
	bool found = false;
	va_list args;
	FILE *f;

	va_start(args, format);
	vsnprintf(wanted, sizeof(wanted), format, args);
	va_end(args);
	f = fopen(TABLE, "re");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		printf("# %s", line);
		found = found || strstr(line, wanted);
	}
	MUST(!fclose(f));
	return found;
}

TEST(the_table_shows_arenas_slots_and_seats)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;

	arena_create(&a, 3, CHUNK, 2);
	reader_attach(&a, &r);
	put(&a, 100, 1);
	ASSERT_EQ(0, next(&r, &b));
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_TRUE(table_has("arena %llu: 3 slots of 2097152 bytes, "
			      "node 0, writer pid %d\n",
			      a.made.arena, getpid()));
	EXPECT_TRUE(table_has("  slot 0   published generation 1, 2048 KiB of "
			      "memory, 100 bytes, pending 0x3, unseen 0x2, "));
	EXPECT_TRUE(table_has("  slot 1   writing   generation 1, 2048 KiB of "
			      "memory\n"));
	EXPECT_TRUE(table_has("  slot 2   free      generation 0, 0 KiB of "
			      "memory\n"));
	EXPECT_TRUE(table_has("  seat 0   reader 1, pid %d, pending 1, the "
			      "oldest for ",
			      getpid()));
	EXPECT_TRUE(table_has("  seat 1   unclaimed, pending 1, the oldest "
			      "for "));
	MUST(!munmap(a.map, a.bytes));
	MUST(!close(a.fd));
	EXPECT_TRUE(table_has("node 0, writer gone\n"));
}

TEST(the_table_is_for_root)
{
	MUST(!setuid(65534));
	EXPECT_EQ(NULL, fopen(TABLE, "re"));
	EXPECT_EQ(EACCES, errno);
}

TEST_HARNESS_MAIN
