// SPDX-License-Identifier: MIT
/* Slots' memory: who may do what to it, when it grows, and when it goes. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fixture.h"

static void a_reader_cannot_change_the_memory(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	char path[64];
	uint8_t *data;
	int sock, fd, again;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	sock = raw_open(&arena);
	reader_open(&arena, &r);
	put(&arena, MIB, 3);
	fd = raw_memory(sock);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(ftruncate(fd, 4 * MIB), -1);
	assert_cannot_change(fd, 2 * MIB);
	/* Nor through another descriptor, which the owner of it may open. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0);
	assert_cannot_change(again, 2 * MIB);

	data = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	assert_int_equal(mprotect(data, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(madvise(data, 4096, MADV_REMOVE), -1);
	munmap(data, 4096);

	assert_int_equal(next(&r, &b), 0);
	data = r.port->base + b.offset;
	assert_int_equal(mprotect(data, 4096, PROT_READ | PROT_WRITE), -1);
	assert_true(sees(&r, &b, 3));
	close(again);
	close(fd);
	close(sock);
	reader_close(&r);
	arena_close(&arena);
}

/*
 * Longer than its slot, though, anybody can make it who may open it anew: that
 * is no seal's to forbid, since slots grow.  It costs only who does it.
 */
static void memory_made_longer_by_a_reader_grows_as_before(void **state)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	char path[64];
	int sock, fd, again;

	(void)state;
	arena_init(&arena, 2);
	arena.args.slots = 1;
	arena_open(&arena);
	sock = raw_open(&arena);
	reader_open(&arena, &r);
	ticket = put(&arena, MIB, 3);
	fd = raw_memory(sock);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again >= 0);
	assert_int_equal(ftruncate(again, 1024 * MIB), 0);
	close(sock);
	assert_int_equal(release(&r, &ticket), 0);
	settle(&r);

	put(&arena, 3 * MIB, 4);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 4));
	assert_int_equal(stats(&arena).declined_no_memory, 0);
	assert_int_equal(stats(&arena).allocated_bytes, 4 * MIB);
	close(again);
	close(fd);
	reader_close(&r);
	arena_close(&arena);
}

static void writable_readers_can(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.flags = TENSORARENA_CREATE_WRITABLE_READERS;
	arena_open(&arena);
	reader_open(&arena, &r);
	assert_int_equal(r.args.arena_flags,
			 TENSORARENA_CREATE_WRITABLE_READERS);
	put(&arena, MIB, 3);
	assert_int_equal(next(&r, &b), 0);
	r.port->base[b.offset] = 4;
	assert_int_equal(writer_data(&arena, b.ticket.slot)[0], 4);
	reader_close(&r);
	arena_close(&arena);
}

static void ranges_are_aligned_for_huge_pages(void **state)
{
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slot_bytes = 5;
	arena_open(&arena);
	reader_open(&arena, &r);
	assert_int_equal(arena.args.stride, 2 * MIB);
	assert_int_equal((uintptr_t)arena.port->base % (2 * MIB), 0);
	assert_int_equal((uintptr_t)r.port->base % (2 * MIB), 0);
	assert_int_equal(arena.port->bytes, 4 * 2 * MIB);
	assert_int_equal(r.port->bytes, 4 * 2 * MIB);
	reader_close(&r);
	arena_close(&arena);
}

static void memory_that_is_not_built_is_sigbus(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	assert_int_equal(touch(arena.port->base), SIGBUS);
	assert_int_equal(touch(r.port->base), SIGBUS);
	put(&arena, 1, 3);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(touch(arena.port->base), 0);
	assert_int_equal(touch(r.port->base), 0);
	assert_int_equal(touch(arena.port->base + 2 * MIB), SIGBUS);
	assert_int_equal(touch(r.port->base + 2 * MIB), SIGBUS);
	assert_int_equal(touch(arena.port->base + 4 * MIB), SIGBUS);
	reader_close(&r);
	arena_close(&arena);
}

static void a_child_inherits_no_mapping(void **state)
{
	struct arena arena;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, 1, 3);
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile uint8_t *)arena.port->base);
	}
	assert_int_equal(reap(pid), -SIGSEGV);
	arena_close(&arena);
}

static void slots_grow_in_powers_of_two_up_to_the_stride(void **state)
{
	static const struct {
		uint64_t nbytes;
		uint64_t built;
	} steps[] = {
		{ 0, 0 },
		{ 1, 2 * MIB },
		{ 2 * MIB, 2 * MIB },
		{ 2 * MIB + 1, 4 * MIB },
		{ 5 * MIB, 8 * MIB },
		{ 9 * MIB, 14 * MIB },
		{ 1, 14 * MIB },
	};
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	size_t i;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slot_bytes = 13 * MIB;
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		put(&arena, steps[i].nbytes, (uint8_t)i);
		assert_int_equal(stats(&arena).allocated_bytes, steps[i].built);
		/* The reader keeps up, whatever it had mapped before. */
		assert_int_equal(next(&r, &b), 0);
		assert_true(sees(&r, &b, (uint8_t)i));
		assert_int_equal(b.wanted, 0);
		assert_int_equal(release(&r, &b.ticket), 0);
	}
	reader_close(&r);
	arena_close(&arena);
}

static void growing_keeps_the_memory_there_was(void **state)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, MIB, 0x11);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(release(&r, &b.ticket), 0);
	assert_int_equal(acquire(&arena, 4 * MIB, &acq), 0);
	assert_int_equal(writer_data(&arena, 0)[MIB - 1], 0x11);
	/* What the reader has mapped is the same memory still. */
	writer_data(&arena, 0)[0] = 0x22;
	assert_int_equal(r.port->base[0], 0x22);
	reader_close(&r);
	arena_close(&arena);
}

static void acquire_prefers_slots_that_are_built(void **state)
{
	struct tensorarena_populate pop = { .nbytes = 3 * MIB, .slots = 2 };
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(pop.ready, 2);
	assert_int_equal(stats(&arena).allocated_bytes, 8 * MIB);
	assert_int_equal(stats(&arena).free, 4);
	assert_int_equal(stats(&arena).aborted, 0);
	pop.ready = 0;
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(pop.ready, 2);
	assert_int_equal(acquire(&arena, 4 * MIB, &acq), 0);
	assert_int_equal(acquire(&arena, 4 * MIB, &acq), 0);
	assert_int_equal(stats(&arena).allocated_bytes, 8 * MIB);
	/* Slots in use are not waited for. */
	pop.slots = 4;
	assert_int_equal(acquire(&arena, 0, &acq), 0);
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(pop.ready, 3);
	arena_close(&arena);
}

static void trim_frees_idle_slots_from_the_last(void **state)
{
	struct tensorarena_populate pop = { .nbytes = 2 * MIB, .slots = 4 };
	struct tensorarena_trim trim = { .keep_bytes = 5 * MIB };
	struct tensorarena_acquire acq;
	struct arena arena;
	uint32_t fds;
	long kib;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	fds = count_fds();
	kib = shared_kib();
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(shared_kib(), kib + 8 * 1024);
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim), 0);
	assert_int_equal(trim.freed_bytes, 4 * MIB);
	assert_int_equal(trim.allocated_bytes, 4 * MIB);
	assert_int_equal(trim.busy, 0);
	assert_int_equal(touch(writer_data(&arena, 3)), SIGBUS);
	assert_int_equal(touch(writer_data(&arena, 1)), 0);
	/* One in use stays. */
	assert_int_equal(acquire(&arena, 1, &acq), 0);
	trim.keep_bytes = 0;
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim), 0);
	assert_int_equal(trim.freed_bytes, 2 * MIB);
	assert_int_equal(trim.allocated_bytes, 2 * MIB);
	assert_int_equal(shared_kib(), kib + 2 * 1024);
	assert_int_equal(count_fds(), fds + 1);
	assert_int_equal(stats(&arena).free, 3);
	arena_close(&arena);
}

static void trim_reaches_readers_mappings(void **state)
{
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_borrow held, b;
	struct arena arena;
	struct reader r, other;
	long kib;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 2;
	arena_open(&arena);
	reader_open(&arena, &r);
	kib = shared_kib();
	put(&arena, 2 * MIB, 1);
	assert_int_equal(next(&r, &held), 0);
	put(&arena, 2 * MIB, 2);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(release(&r, &b.ticket), 0);
	assert_false(reader_ready(&r));
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim), 0);
	assert_int_equal(trim.freed_bytes, 2 * MIB);
	/* A reader that waits is woken to let go; nothing has come. */
	reader_open(&arena, &other);
	settle(&other);
	reader_close(&other);
	assert_true(reader_ready(&r));
	assert_int_equal(next(&r, &b), -EAGAIN);
	assert_false(reader_ready(&r));
	/* The slot left is mapped by the writer and the reader, both here. */
	assert_int_equal(shared_kib(), kib + 2 * 2 * 1024);
	assert_true(sees(&r, &held, 1));
	assert_int_equal(touch(r.port->base + arena.args.stride), SIGBUS);

	/* New memory, and word that old pins are void, once. */
	put(&arena, MIB, 3);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(b.ticket.slot, 1);
	assert_int_equal(b.wanted, 1);
	assert_true(sees(&r, &b, 3));
	assert_int_equal(release(&r, &b.ticket), 0);
	put(&arena, MIB, 4);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(b.wanted, 0);
	reader_close(&r);
	arena_close(&arena);
}

static void trim_replaces_the_memory(void **state)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_RELEASE);
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_ticket t;
	struct stat before, after;
	struct arena arena;
	int sock, old, new;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	sock = raw_open(&arena);
	t = put(&arena, 10, 1);
	old = raw_memory(sock);
	msg.ref.generation = t.generation;
	assert_int_equal(raw_ask(sock, &msg), 0);
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim), 0);
	put(&arena, 10, 2);
	new = raw_memory(sock);
	assert_int_equal(fstat(old, &before), 0);
	assert_int_equal(fstat(new, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	close(old);
	close(new);
	close(sock);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_cannot_change_the_memory),
		cmocka_unit_test(
			memory_made_longer_by_a_reader_grows_as_before),
		cmocka_unit_test(writable_readers_can),
		cmocka_unit_test(ranges_are_aligned_for_huge_pages),
		cmocka_unit_test(memory_that_is_not_built_is_sigbus),
		cmocka_unit_test(a_child_inherits_no_mapping),
		cmocka_unit_test(slots_grow_in_powers_of_two_up_to_the_stride),
		cmocka_unit_test(growing_keeps_the_memory_there_was),
		cmocka_unit_test(acquire_prefers_slots_that_are_built),
		cmocka_unit_test(trim_frees_idle_slots_from_the_last),
		cmocka_unit_test(trim_reaches_readers_mappings),
		cmocka_unit_test(trim_replaces_the_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded memory", tests, NULL,
					   NULL);
}
