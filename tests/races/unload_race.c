// SPDX-License-Identifier: GPL-2.0-only
/* CREATE, ATTACH and use of an arena against the removal of the module. */
#include <kselftest_harness.h>

#include "race.h"

#define MODULE_PATH "/lib/modules/tensorarena.ko"

static int load(void)
{
	int fd = open(MODULE_PATH, O_RDONLY | O_CLOEXEC);
	int err;

	MUST(fd >= 0);
	err = syscall(SYS_finit_module, fd, "", 0) < 0 ? -errno : 0;
	MUST(!close(fd));
	return err;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensorarena", O_NONBLOCK) < 0 ?
		       -errno :
		       0;
}

struct outcome {
	atomic_int created;
	int unloaded;
	atomic_int wrong;
};

/* A whole little life, where the node is still there. */
static void side_live(void *arg)
{
	struct outcome *o = arg;
	struct tensorarena_create args = {
		.slot_bytes = CHUNK,
		.slots = 2,
		.node = TENSORARENA_NODE_LOCAL,
	};
	struct tensorarena_acquire acq = { .nbytes = 1 };
	int fd = open("/dev/tensorarena", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		if (errno != ENOENT && errno != ENXIO)
			atomic_fetch_add(&o->wrong, 1);
		return;
	}
	if (request(fd, TENSORARENA_CREATE, &args)) {
		atomic_fetch_add(&o->wrong, 1);
		MUST(!close(fd));
		return;
	}
	atomic_fetch_add(&o->created, 1);
	/* The node closed, the arena is what keeps the module. */
	MUST(!close(fd));
	if (request(args.fd, TENSORARENA_ACQUIRE, &acq))
		atomic_fetch_add(&o->wrong, 1);
	MUST(!close(args.fd));
}

static void side_unload(void *arg)
{
	struct outcome *o = arg;

	o->unloaded = unload();
}

TEST(create_against_unload)
{
	const unsigned int rounds = race_rounds(100);
	unsigned int i, created = 0, unloaded = 0;
	struct outcome o;
	struct race race = { .nr = 3,
			     .side = { side_live, side_live, side_unload },
			     .arg = &o };

	for (i = 0; i < rounds; i++) {
		memset(&o, 0, sizeof(o));
		MUST(!load());
		race_run(&race, i);
		EXPECT_EQ(0, atomic_load(&o.wrong));
		ASSERT_TRUE(!o.unloaded || o.unloaded == -EWOULDBLOCK);
		created += o.created > 0;
		unloaded += !o.unloaded;
		/* The last file goes a moment after its close. */
		if (o.unloaded)
			ASSERT_TRUE(RACE_AWAIT(!unload() || errno == ENOENT));
	}
	TH_LOG("in %u of %u rounds an arena was made, in %u the module went",
	       created, rounds, unloaded);
	race_fact("create against unload", rounds);
}

TEST_HARNESS_MAIN
