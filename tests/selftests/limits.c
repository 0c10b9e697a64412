// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's limits: they can be changed while it runs, they hold for
 * everybody but for the one that a privilege exceeds, and they keep one user
 * from taking the machine.
 */
#include <kselftest_harness.h>
#include <linux/capability.h>

#include "machine.h"

#define PARAMETERS "/sys/module/tensorarena/parameters/"
#define NOBODY 65534
#define LIMIT_S 240 /* against hanging */

static int set(const char *name, uint64_t value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return write_figure(path, value);
}

static int set_text(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return write_to(path, text);
}

static void set_defaults(void)
{
	MUST(!set("max_arena_bytes", 0));
	MUST(!set("max_total_bytes", 0));
	MUST(!set("max_arenas", 64));
	MUST(!set("max_arenas_per_uid", 16));
}

/* Whatever a test sets ends with it. */
FIXTURE(limit)
{
	struct arena a, b;
};

FIXTURE_SETUP(limit)
{
	set_defaults();
}

FIXTURE_TEARDOWN(limit)
{
	set_defaults();
}

TEST_F(limit, defaults_are_what_INFO_says)
{
	const struct tensorarena_info info = info_get();
	const uint64_t memory = figure_in("/proc/meminfo", "MemTotal:") << 10;

	EXPECT_EQ(64, info.max_arenas);
	EXPECT_EQ(16, info.max_arenas_per_uid);
	EXPECT_EQ(info.max_total_bytes, info.max_arena_bytes);
	EXPECT_GE(memory, info.max_total_bytes);
	EXPECT_LE(memory / 2, info.max_total_bytes);
}

TEST_F(limit, of_one_arenas_bytes)
{
	ASSERT_EQ(0, set("max_arena_bytes", 4 * CHUNK));
	EXPECT_EQ(4 * CHUNK, info_get().max_arena_bytes);
	EXPECT_EQ(-EDQUOT, arena_try(&self->a, 5, CHUNK, 0, 0));
	/* It is the stride that counts. */
	EXPECT_EQ(-EDQUOT, arena_try(&self->a, 3, CHUNK + 1, 0, 0));
	EXPECT_EQ(0, arena_try(&self->a, 4, CHUNK, 0, 0));
	EXPECT_EQ(0, arena_try(&self->b, 2, CHUNK + 1, 0, 0));
	ASSERT_EQ(0, set("max_arena_bytes", 5 * CHUNK));
	EXPECT_EQ(0, arena_try(&self->b, 5, CHUNK, 0, 0));
}

TEST_F(limit, of_all_arenas_bytes)
{
	ASSERT_EQ(0, set("max_total_bytes", 6 * CHUNK));
	EXPECT_EQ(6 * CHUNK, info_get().max_total_bytes);
	/* No arena may be larger than all together. */
	EXPECT_EQ(6 * CHUNK, info_get().max_arena_bytes);
	EXPECT_EQ(0, arena_try(&self->a, 4, CHUNK, 0, 0));
	EXPECT_EQ(-EDQUOT, arena_try(&self->b, 3, CHUNK, 0, 0));
	EXPECT_EQ(4 * CHUNK, info_get().total_bytes);
	EXPECT_EQ(0, arena_try(&self->b, 2, CHUNK, 0, 0));
	EXPECT_EQ(6 * CHUNK, info_get().total_bytes);
	MUST(!close(self->a.fd));
	EXPECT_EQ(0, arena_try(&self->a, 4, CHUNK, 0, 0));
}

TEST_F(limit, of_arenas)
{
	ASSERT_EQ(0, set("max_arenas", 1));
	EXPECT_EQ(0, arena_try(&self->a, 1, CHUNK, 0, 0));
	EXPECT_EQ(-EDQUOT, arena_try(&self->b, 1, CHUNK, 0, 0));
	ASSERT_EQ(0, set("max_arenas", 2));
	EXPECT_EQ(0, arena_try(&self->b, 1, CHUNK, 0, 0));
	EXPECT_EQ(2, info_get().arenas);
}

/* One that is lowered takes nothing from the arenas there are. */
TEST_F(limit, below_what_exists_only_stops_what_is_new)
{
	struct tensorarena_acquire acq;
	struct reader r;

	ASSERT_EQ(0, arena_try(&self->a, 4, CHUNK, 0, 0));
	ASSERT_EQ(0, set("max_arena_bytes", CHUNK));
	ASSERT_EQ(0, set("max_total_bytes", CHUNK));
	ASSERT_EQ(0, set("max_arenas", 1));
	EXPECT_EQ(-EDQUOT, arena_try(&self->b, 1, CHUNK, 0, 0));
	reader_attach(&self->a, &r);
	put(&self->a, CHUNK, 1);
	EXPECT_EQ(0, acquire(&self->a, CHUNK, &acq));
	ASSERT_EQ(0, set("max_arenas", 0));
	MUST(!close(self->a.fd));
	EXPECT_EQ(-EDQUOT, arena_try(&self->b, 1, CHUNK, 0, 0));
}

TEST_F(limit, refuses_what_is_no_number)
{
	EXPECT_EQ(-EINVAL, set_text("max_arena_bytes", "much"));
	EXPECT_EQ(-EINVAL, set_text("max_total_bytes", "-1"));
	EXPECT_EQ(-EINVAL, set_text("max_arenas", "-1"));
	EXPECT_EQ(-EINVAL, set_text("max_arenas_per_uid", " "));
	EXPECT_EQ(64, info_get().max_arenas);
	EXPECT_EQ(16, info_get().max_arenas_per_uid);
}

static void drop_capability(int capability)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	MUST(!syscall(SYS_capget, &head, data));
	data[capability / 32].effective &= ~(1U << capability % 32);
	MUST(!syscall(SYS_capset, &head, data));
}

static void create_twice(int sock, void *arg)
{
	const int *uid = arg;
	struct tensorarena_create args = { .slot_bytes = CHUNK, .slots = 1 };
	int control = control_open();

	args.node = TENSORARENA_NODE_LOCAL;
	if (*uid)
		MUST(!setresuid(*uid, *uid, *uid));
	else
		drop_capability(CAP_SYS_RESOURCE);
	tell(sock, request(control, TENSORARENA_CREATE, &args));
	tell(sock, request(control, TENSORARENA_CREATE, &args));
	wait_for_the_end(sock);
}

TEST_F(limit, of_one_users_arenas)
{
	int uid[] = { NOBODY, NOBODY - 1, 0 };
	struct child c[ARRAY_SIZE(uid)];
	size_t i;

	ASSERT_EQ(0, getuid());
	ASSERT_EQ(0, set("max_arenas_per_uid", 1));
	/* Each has one, be he root without the privilege to exceed it. */
	for (i = 0; i < ARRAY_SIZE(uid); i++) {
		c[i] = child_start(create_twice, &uid[i], -1);
		EXPECT_EQ(0, must_hear(c[i].sock));
		EXPECT_EQ(-EDQUOT, must_hear(c[i].sock));
	}
	/* With it there may be more, but not more than all may have. */
	EXPECT_EQ(0, arena_try(&self->a, 1, CHUNK, 0, 0));
	EXPECT_EQ(0, arena_try(&self->b, 1, CHUNK, 0, 0));
	EXPECT_EQ(5, info_get().arenas);
	ASSERT_EQ(0, set("max_arenas", 5));
	EXPECT_EQ(-EDQUOT, arena_try(&self->b, 1, CHUNK, 0, 0));
	/* Later children have the sockets of earlier ones. */
	while (i--)
		EXPECT_TRUE(child_ended_well(&c[i]));
}

enum last_act {
	LEAVE = 1,
	READ_AND_LEAVE
};

/* Makes an arena, does with it as he is told, and makes the next. */
static void create_again_and_again(int sock, void *arg)
{
	struct arena *a = arg;
	struct reader r;
	int64_t what;
	int err;

	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	do {
		err = arena_try(a, 1, CHUNK, 0, 0);
		tell(sock, err);
		what = hear_or_exit(sock);
		if (!err && what == READ_AND_LEAVE)
			MUST(!attach(a, &r));
		if (!err)
			MUST(!close(a->fd));
	} while (!err);
	wait_for_the_end(sock);
}

/* An arena without a writer counts for who keeps it. */
TEST_F(limit, of_one_users_arenas_has_those_that_he_keeps)
{
	struct reader keeper[3];
	struct child c;
	struct arena *a; /* shared with the child */
	size_t i;

	ASSERT_EQ(0, getuid());
	ASSERT_EQ(0, set("max_arenas_per_uid", 1));
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(a != MAP_FAILED);
	c = child_start(create_again_and_again, a, -1);
	for (i = 0; i < ARRAY_SIZE(keeper); i++) {
		EXPECT_EQ(0, must_hear(c.sock));
		reader_attach(a, &keeper[i]);
		tell(c.sock, LEAVE);
	}
	EXPECT_EQ(0, must_hear(c.sock));
	EXPECT_EQ(ARRAY_SIZE(keeper) + 1, info_get().arenas);
	tell(c.sock, READ_AND_LEAVE);
	ASSERT_EQ(-EDQUOT, must_hear(c.sock));
	tell(c.sock, LEAVE);
	EXPECT_TRUE(child_ended_well(&c));
}

/* ---- somebody who wants it all ---- */

/* Arenas as large as can be had, and every slot of them filled. */
static void take_everything(int sock, void *arg)
{
	struct arena a;
	int control = control_open();
	uint64_t bytes = 4096 * MIB;
	int64_t arenas = 0, taken = 0;

	(void)arg;
	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	while (bytes >= CHUNK) {
		struct tensorarena_acquire acq;

		memset(&a, 0, sizeof(a));
		a.made.slot_bytes = CHUNK;
		a.made.slots = TENSORARENA_MAX_SLOTS;
		a.made.node = TENSORARENA_NODE_LOCAL;
		a.made.flags = TENSORARENA_CREATE_FALLBACK_SMALL;
		if (bytes < TENSORARENA_MAX_SLOTS * CHUNK)
			a.made.slots = bytes / CHUNK;
		else
			a.made.slot_bytes = bytes / TENSORARENA_MAX_SLOTS;
		if (request(control, TENSORARENA_CREATE, &a.made)) {
			bytes /= 2;
			continue;
		}
		arenas++;
		a.fd = a.made.fd;
		while (!acquire(&a, a.made.slot_bytes, &acq))
			taken += (int64_t)a.made.stride;
	}
	tell(sock, arenas);
	tell(sock, taken);
	wait_for_the_end(sock);
}

TEST_F_TIMEOUT(limit, keeps_one_user_from_exhausting_the_machine, LIMIT_S)
{
	const uint64_t most = info_get().max_total_bytes;
	const uint64_t kills = oom_kills();
	const size_t modest = 64 * MIB;
	struct child c;
	uint64_t taken;
	uint8_t *p;
	size_t i;

	ASSERT_EQ(0, getuid());
	c = child_start(take_everything, NULL, -1);
	EXPECT_LE(1, must_hear(c.sock));
	taken = (uint64_t)must_hear(c.sock);
	printf("# %" PRIu64 " MiB taken, %" PRIu64 " MiB allowed\n",
	       taken / MIB, most / MIB);
	EXPECT_GE(most, taken);
	/* It did get far enough for this to mean something. */
	EXPECT_LE(most / 4 * 3, taken);

	/* Somebody else lives on. */
	p = mmap(NULL, modest, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < modest; i += PAGE)
		p[i] = 1;
	EXPECT_EQ(kills, oom_kills());
	EXPECT_TRUE(child_ended_well(&c));
}

TEST_HARNESS_MAIN
