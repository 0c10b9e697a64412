// SPDX-License-Identifier: GPL-2.0-only
/*
 * A 32-bit caller: the whole life of a tensor.  On x86 through the 32-bit system
 * call gate, which a 64-bit program may use with addresses below 4 GiB; where
 * there is none, this is built as a 32-bit program.
 */
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"

#ifdef __x86_64__

#define NR_IOCTL_32 54

static int request32(int fd, unsigned long command, void *args)
{
	long ret;

	/* The gate does not preserve r8 to r11. */
	asm volatile("int $0x80"
		     : "=a"(ret)
		     : "a"(NR_IOCTL_32), "b"(fd), "c"(command), "d"(args)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

/* Without 32-bit emulation the gate is a fault. */
static bool gate_works(void)
{
	struct child c;
	int status;

	c.pid = fork();
	MUST(c.pid >= 0);
	if (!c.pid)
		_exit(request32(-1, TENSORARENA_INFO, NULL) != -EBADF);
	status = child_wait(&c);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#elif !defined(__LP64__)

#define MAP_32BIT 0

static int request32(int fd, unsigned long command, void *args)
{
	return ioctl(fd, command, args) < 0 ? -errno : 0;
}

static bool gate_works(void)
{
	return true;
}

#endif

#if defined(__x86_64__) || !defined(__LP64__)

struct low_memory {
	struct tensorarena_info info;
	struct tensorarena_create create;
	struct tensorarena_attach attach;
	struct tensorarena_acquire acquire;
	struct tensorarena_publish publish;
	struct tensorarena_slot_ref ref;
	struct tensorarena_populate populate;
	struct tensorarena_trim trim;
	struct tensorarena_stats stats;
	struct tensorarena_reader_stats row;
	struct tensorarena_borrow borrow;
	struct tensorarena_detach detach;
	struct tensorarena_evict evict;
	struct tensorarena_retract retract;
	uint64_t reader;
};

TEST(every_command_works_unchanged)
{
	struct low_memory *m;
	int control, writer, reader;

	if (!gate_works())
		SKIP(return, "this kernel has no 32-bit emulation");
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, m);
	control = control_open();
	ASSERT_EQ(0, request32(control, TENSORARENA_INFO, &m->info));
	EXPECT_EQ(TENSORARENA_MAX_SLOTS, m->info.max_slots);

	m->create.slot_bytes = CHUNK;
	m->create.slots = 2;
	m->create.node = TENSORARENA_NODE_LOCAL;
	ASSERT_EQ(0, request32(control, TENSORARENA_CREATE, &m->create));
	writer = m->create.fd;
	m->attach.arena = m->create.arena;
	memcpy(m->attach.cookie, m->create.cookie, sizeof(m->attach.cookie));
	ASSERT_EQ(0, request32(control, TENSORARENA_ATTACH, &m->attach));
	reader = m->attach.fd;

	m->populate.nbytes = CHUNK;
	m->populate.slots = 2;
	ASSERT_EQ(0, request32(writer, TENSORARENA_POPULATE, &m->populate));
	EXPECT_EQ(2, m->populate.ready);
	ASSERT_EQ(0, request32(writer, TENSORARENA_TRIM, &m->trim));
	EXPECT_EQ(2 * CHUNK, m->trim.freed_bytes);

	m->acquire.nbytes = 100;
	ASSERT_EQ(0, request32(writer, TENSORARENA_ACQUIRE, &m->acquire));
	m->reader = m->attach.reader;
	m->publish.slot = m->acquire.slot;
	m->publish.generation = m->acquire.generation;
	m->publish.nbytes = 100;
	m->publish.readers = (uintptr_t)&m->reader;
	m->publish.nr_readers = 1;
	ASSERT_EQ(0, request32(writer, TENSORARENA_PUBLISH, &m->publish));
	EXPECT_EQ(1, m->publish.addressed);
	m->stats.readers = (uintptr_t)&m->row;
	m->stats.nr_readers = 1;
	m->stats.row_bytes = sizeof(m->row);
	ASSERT_EQ(0, request32(writer, TENSORARENA_STATS, &m->stats));
	EXPECT_EQ(1, m->stats.published);
	EXPECT_EQ(m->reader, m->row.reader);

	ASSERT_EQ(0, request32(reader, TENSORARENA_NEXT, &m->borrow));
	EXPECT_EQ(100, m->borrow.ticket.nbytes);
	ASSERT_EQ(0, request32(reader, TENSORARENA_BORROW, &m->borrow));
	m->retract.slot = m->borrow.ticket.slot;
	m->retract.generation = m->borrow.ticket.generation;
	ASSERT_EQ(0, request32(writer, TENSORARENA_RETRACT, &m->retract));
	EXPECT_EQ(1, m->retract.pending);
	m->ref.slot = m->borrow.ticket.slot;
	m->ref.generation = m->borrow.ticket.generation;
	ASSERT_EQ(0, request32(reader, TENSORARENA_RELEASE, &m->ref));
	ASSERT_EQ(0, request32(reader, TENSORARENA_DETACH, &m->detach));
	EXPECT_EQ(-ESHUTDOWN, request32(reader, TENSORARENA_NEXT, &m->borrow));

	memset(&m->acquire, 0, sizeof(m->acquire));
	ASSERT_EQ(0, request32(writer, TENSORARENA_ACQUIRE, &m->acquire));
	m->ref.slot = m->acquire.slot;
	m->ref.generation = m->acquire.generation;
	ASSERT_EQ(0, request32(writer, TENSORARENA_ABORT, &m->ref));
	m->evict.reader = m->reader;
	EXPECT_EQ(-ESTALE, request32(writer, TENSORARENA_EVICT, &m->evict));
}

#else

TEST(every_command_works_unchanged)
{
	SKIP(return, "a 64-bit program cannot call as a 32-bit one here");
}

#endif

TEST_HARNESS_MAIN
