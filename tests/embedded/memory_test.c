// SPDX-License-Identifier: MIT
/* Slots' memory: who may do what to it, when it grows, and when it goes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "fixture.h"

/* ---- failures made to order ---- */

static bool fail_ftruncate;
static bool fail_populate;
static bool fail_memfd;
/* These two are looked at by the server as well. */
static atomic_bool fail_send;
static atomic_bool fail_map;

int __real_ftruncate(int fd, off_t length);
int __real_madvise(void *addr, size_t length, int advice);
int __real_memfd_create(const char *name, unsigned int flags);
ssize_t __real_sendmsg(int sock, const struct msghdr *hdr, int flags);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_madvise(void *addr, size_t length, int advice);
int __wrap_memfd_create(const char *name, unsigned int flags);
ssize_t __wrap_sendmsg(int sock, const struct msghdr *hdr, int flags);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset);

int __wrap_ftruncate(int fd, off_t length)
{
	if (!fail_ftruncate)
		return __real_ftruncate(fd, length);
	errno = ENOSPC;
	return -1;
}

/* Half of the work, then a failure: what a full machine does. */
int __wrap_madvise(void *addr, size_t length, int advice)
{
	if (!fail_populate || advice != MADV_POPULATE_WRITE)
		return __real_madvise(addr, length, advice);
	assert_int_equal(__real_madvise(addr, length / 2, advice), 0);
	errno = ENOMEM;
	return -1;
}

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	if (!fail_memfd)
		return __real_memfd_create(name, flags);
	errno = EMFILE;
	return -1;
}

/* Only messages with descriptors, as when too many are in sockets' queues. */
ssize_t __wrap_sendmsg(int sock, const struct msghdr *hdr, int flags)
{
	if (!fail_send || !hdr->msg_controllen)
		return __real_sendmsg(sock, hdr, flags);
	errno = ETOOMANYREFS;
	return -1;
}

/* Once: what follows is the attempt to clean up. */
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset)
{
	if (!fail_map || !(flags & MAP_FIXED))
		return __real_mmap(addr, length, prot, flags, fd, offset);
	fail_map = false;
	errno = ENOMEM;
	return MAP_FAILED;
}

static int setup(void **state)
{
	(void)state;
	test_headroom = UINT64_MAX;
	test_headroom_error = 0;
	fail_ftruncate = false;
	fail_populate = false;
	fail_memfd = false;
	fail_send = false;
	fail_map = false;
	return 0;
}

/* Shared memory of this process that is resident, in KiB. */
static long shared_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "RssShmem: %ld kB", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

/* The memory that the server sends a peer for the publication in slot 0. */
static int raw_memory(int sock)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_NEXT);
	struct ta_wire_parcel parcel;

	assert_int_equal(raw_send(sock, &msg), 0);
	assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
	assert_int_equal(msg.header.result, 0);
	assert_int_equal(parcel.nr_fds, 1);
	return parcel.fds[0];
}

static void assert_cannot_change(int fd, off_t size)
{
	struct stat st;
	char byte = 1;

	assert_true(write(fd, &byte, 1) < 0);
	assert_true(pwrite(fd, &byte, 1, 0) < 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, size - 1), -1);
	assert_int_equal(fallocate(fd,
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, 4096),
			 -1);
	assert_int_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0),
			 MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, size);
}

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

static sigjmp_buf touched;

static void on_fault(int signal)
{
	siglongjmp(touched, signal);
}

/* The signal that touching @addr raises, or 0. */
static int touch(const volatile uint8_t *addr)
{
	struct sigaction action = { .sa_handler = on_fault }, bus, segv;
	int signal;

	assert_int_equal(sigaction(SIGBUS, &action, &bus), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &segv), 0);
	signal = sigsetjmp(touched, 1);
	if (!signal)
		(void)*addr;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return signal;
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
		{ 0, 0 },	    { 1, 2 * MIB },
		{ 2 * MIB, 2 * MIB },	    { 2 * MIB + 1, 4 * MIB },
		{ 5 * MIB, 8 * MIB },	    { 9 * MIB, 14 * MIB },
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

static void too_little_headroom_declines_and_takes_nothing(void **state)
{
	struct tensorarena_populate pop = { .nbytes = MIB, .slots = 4 };
	struct tensorarena_acquire acq;
	struct arena arena;
	uint32_t fds;
	long kib;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	fds = count_fds();
	kib = shared_kib();
	test_headroom = 4 * MIB - 1;
	assert_int_equal(acquire(&arena, 4 * MIB, &acq), -ENOMEM);
	assert_int_equal(stats(&arena).declined_no_memory, 1);
	assert_int_equal(stats(&arena).free, 4);
	assert_int_equal(stats(&arena).allocated_bytes, 0);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(shared_kib(), kib);
	/* What fits is to be had, and only the growth counts. */
	assert_int_equal(acquire(&arena, 2 * MIB, &acq), 0);
	test_headroom = 2 * MIB - 1;
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop),
			 -ENOMEM);
	assert_int_equal(pop.ready, 1);
	assert_int_equal(stats(&arena).free, 3);
	test_headroom = 2 * MIB;
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(pop.ready, 4);
	arena_close(&arena);
}

static void unknown_headroom_declines(void **state)
{
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	test_headroom_error = -EMFILE;
	assert_int_equal(acquire(&arena, 1, &acq), -ENOMEM);
	test_headroom_error = 0;
	assert_int_equal(acquire(&arena, 1, &acq), 0);
	arena_close(&arena);
}

static void a_file_size_limit_declines_instead_of_killing(void **state)
{
	struct rlimit old, small;
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 2 * MIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(acquire(&arena, 2 * MIB + 1, &acq), -ENOMEM);
	assert_int_equal(acquire(&arena, 2 * MIB, &acq), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	arena_close(&arena);
}

static void a_failed_growth_is_undone(void **state)
{
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	bool *const failures[] = { &fail_ftruncate, &fail_populate };
	struct arena arena;
	struct reader r;
	uint32_t fds;
	size_t i;
	long kib;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	settle(&r);
	fds = count_fds();
	kib = shared_kib();
	for (i = 0; i < 2; i++) {
		/* Of a slot that has nothing, and of one that has something. */
		*failures[i] = true;
		assert_int_equal(acquire(&arena, MIB, &acq), -ENOMEM);
		*failures[i] = false;
		assert_int_equal(count_fds(), fds);
		assert_int_equal(shared_kib(), kib);
		assert_int_equal(touch(arena.port->base), SIGBUS);
		put(&arena, MIB, 1);
		assert_int_equal(next(&r, &b), 0);
		assert_int_equal(release(&r, &b.ticket), 0);
		*failures[i] = true;
		assert_int_equal(acquire(&arena, 3 * MIB, &acq), -ENOMEM);
		*failures[i] = false;
		assert_int_equal(stats(&arena).allocated_bytes, 0);
		assert_int_equal(stats(&arena).free, 1);
		/* The reader lets go of it as well. */
		settle(&r);
		assert_int_equal(next(&r, &b), -EAGAIN);
		assert_int_equal(count_fds(), fds);
		assert_int_equal(shared_kib(), kib);
	}
	fail_memfd = true;
	assert_int_equal(acquire(&arena, MIB, &acq), -ENOMEM);
	fail_memfd = false;
	put(&arena, 4 * MIB, 5);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 5));
	assert_int_equal(stats(&arena).declined_no_memory, 5);
	reader_close(&r);
	arena_close(&arena);
}

/* A publication that NEXT could not deliver comes again, by NEXT or BORROW. */
static void assert_comes_again(struct arena *arena, struct reader *r,
			       const struct tensorarena_ticket *t)
{
	struct tensorarena_borrow b;

	assert_true(reader_ready(r));
	assert_int_equal(stats(arena).published, 1);
	assert_int_equal(next(r, &b), 0);
	assert_memory_equal(&b.ticket, t, sizeof(*t));
	assert_true(sees(r, &b, 1));
	assert_false(reader_ready(r));
	assert_int_equal(release(r, t), 0);
	assert_int_equal(stats(arena).free, 1);
}

static void what_cannot_be_mapped_now_comes_again(void **state)
{
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	t = put(&arena, MIB, 1);
	fail_map = true;
	assert_int_equal(next(&r, &b), -ENOMEM);
	fail_map = true;
	assert_int_equal(borrow(&r, &t, &b), -ENOMEM);
	assert_int_equal(touch(r.port->base), SIGBUS);
	assert_comes_again(&arena, &r, &t);
	reader_close(&r);
	arena_close(&arena);
}

static void what_cannot_be_sent_now_comes_again(void **state)
{
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	t = put(&arena, MIB, 1);
	fail_send = true;
	assert_int_equal(next(&r, &b), -ENOMEM);
	assert_int_equal(borrow(&r, &t, &b), -ENOMEM);
	fail_send = false;
	assert_comes_again(&arena, &r, &t);
	reader_close(&r);
	arena_close(&arena);
}

static void what_there_is_no_descriptor_for_comes_again(void **state)
{
	struct rlimit old, none;
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena.args.slots = 1;
	arena_open(&arena);
	reader_open(&arena, &r);
	t = put(&arena, MIB, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	/* Fewer than are open, but poll(2) needs two to wait on. */
	none.rlim_cur = 3;
	settle(&r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* None for the server. */
	assert_int_equal(next(&r, &b), -ENOMEM);
	assert_int_equal(borrow(&r, &t, &b), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_comes_again(&arena, &r, &t);
	reader_close(&r);
	arena_close(&arena);
}

/* In another process than the server, which has descriptors enough. */
static int read_without_descriptors(const struct arena *arena)
{
	struct rlimit old, none;
	struct tensorarena_borrow b;
	struct reader r;

	if (attach(arena, -1, &r) || getrlimit(RLIMIT_NOFILE, &old))
		return 1;
	none = old;
	/* Fewer than are open, but poll(2) needs two to wait on. */
	none.rlim_cur = 3;
	if (setrlimit(RLIMIT_NOFILE, &none) || next(&r, &b) != -EMFILE)
		return 2;
	if (setrlimit(RLIMIT_NOFILE, &old) || next(&r, &b) || !sees(&r, &b, 1))
		return 3;
	reader_close(&r);
	return 0;
}

static void a_reader_without_descriptors_may_try_again(void **state)
{
	struct arena arena;
	pid_t pid;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, MIB, 1);
	pid = fork();
	if (!pid)
		_exit(read_without_descriptors(&arena));
	assert_int_equal(reap(pid), 0);
	assert_int_equal(stats(&arena).detached, 1);
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
		cmocka_unit_test_setup(a_reader_cannot_change_the_memory, setup),
		cmocka_unit_test_setup(writable_readers_can, setup),
		cmocka_unit_test_setup(ranges_are_aligned_for_huge_pages,
				       setup),
		cmocka_unit_test_setup(memory_that_is_not_built_is_sigbus,
				       setup),
		cmocka_unit_test_setup(a_child_inherits_no_mapping, setup),
		cmocka_unit_test_setup(
			slots_grow_in_powers_of_two_up_to_the_stride, setup),
		cmocka_unit_test_setup(growing_keeps_the_memory_there_was,
				       setup),
		cmocka_unit_test_setup(acquire_prefers_slots_that_are_built,
				       setup),
		cmocka_unit_test_setup(
			too_little_headroom_declines_and_takes_nothing, setup),
		cmocka_unit_test_setup(unknown_headroom_declines, setup),
		cmocka_unit_test_setup(
			a_file_size_limit_declines_instead_of_killing, setup),
		cmocka_unit_test_setup(a_failed_growth_is_undone, setup),
		cmocka_unit_test_setup(what_cannot_be_mapped_now_comes_again,
				       setup),
		cmocka_unit_test_setup(what_cannot_be_sent_now_comes_again,
				       setup),
		cmocka_unit_test_setup(
			what_there_is_no_descriptor_for_comes_again, setup),
		cmocka_unit_test_setup(
			a_reader_without_descriptors_may_try_again, setup),
		cmocka_unit_test_setup(trim_frees_idle_slots_from_the_last,
				       setup),
		cmocka_unit_test_setup(trim_reaches_readers_mappings, setup),
		cmocka_unit_test_setup(trim_replaces_the_memory, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded memory", tests, NULL,
					   NULL);
}
