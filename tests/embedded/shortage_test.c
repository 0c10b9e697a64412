// SPDX-License-Identifier: MIT
/*
 * Shortage: of memory, of descriptors, of whatever the kernel may refuse.  The
 * writer is declined, a reader may try again, and nothing is left behind.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "fixture.h"

/* ---- failures made to order ---- */

static bool fail_ftruncate;
static bool fail_populate;
static bool fail_memfd;
/* These are looked at by the server as well. */
static atomic_bool fail_send;
static atomic_bool fail_map;
static atomic_bool fail_open;

int __real_ftruncate(int fd, off_t length);
int __real_madvise(void *addr, size_t length, int advice);
int __real_memfd_create(const char *name, unsigned int flags);
ssize_t __real_sendmsg(int sock, const struct msghdr *hdr, int flags);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset);
int __real_open(const char *path, int flags, ...);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_madvise(void *addr, size_t length, int advice);
int __wrap_memfd_create(const char *name, unsigned int flags);
ssize_t __wrap_sendmsg(int sock, const struct msghdr *hdr, int flags);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset);
int __wrap_open(const char *path, int flags, ...);

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

/* No file is created here, so there is no mode to hand on. */
int __wrap_open(const char *path, int flags, ...)
{
	if (!fail_open)
		return __real_open(path, flags);
	errno = ENOENT;
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
	fail_open = false;
	return 0;
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

static void a_reader_cannot_change_it_where_there_is_no_proc(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	int sock, fd;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	sock = raw_open(&arena);
	reader_open(&arena, &r);
	put(&arena, MIB, 3);
	fail_open = true;
	fd = raw_memory(sock);
	assert_int_equal(next(&r, &b), 0);
	fail_open = false;
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	assert_cannot_change(fd, 2 * MIB);
	assert_true(sees(&r, &b, 3));
	assert_int_equal(mprotect(r.port->base + b.offset, 4096,
				  PROT_READ | PROT_WRITE),
			 -1);
	close(fd);
	close(sock);
	reader_close(&r);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test_setup(
			a_reader_cannot_change_it_where_there_is_no_proc,
			setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded shortage", tests, NULL,
					   NULL);
}
