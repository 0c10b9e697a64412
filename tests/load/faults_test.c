// SPDX-License-Identifier: MIT
/*
 * Loading files when the system fails half-way.  Requests to io_uring are
 * changed on their way to the kernel, which then really fails them; and some
 * calls answer as other systems would.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common.h"

/**
 * struct system - how the system behaves
 * @spoil: changes a request; NULL: none is changed
 * @first: the first that is changed, counting from 0
 * @last: the last
 * @seen: requests so far
 * @enter_err: what entering the kernel fails with
 * @enter_from: from which time on
 * @enter_until: up to, but not including, which
 * @entered: times so far
 * @ring_err: what making a ring fails with
 * @register_err: what registering fails with
 * @say_align: what direct I/O has to be aligned to is what follows
 * @mem_align, @offset_align: that
 * @on_disk: every file system is on a disk
 * @no_proc: there is no /proc
 * @no_memory: there is none for buffers
 * @no_cachestat: the kernel does not tell what it has cached
 * @processors: how many there are, 0: as many as there are
 */
static struct system {
	void (*spoil)(struct io_uring_sqe *sqe);
	unsigned int first, last, seen;
	int enter_err;
	unsigned int enter_from, enter_until, entered;
	int ring_err;
	int register_err;
	bool say_align;
	uint32_t mem_align, offset_align;
	bool on_disk;
	bool no_proc;
	bool no_memory;
	bool no_cachestat;
	int processors;
} sys;

/* 0, or what entering the kernel is to fail with. */
static int enter(struct io_uring *ring)
{
	unsigned int time = sys.entered++;
	unsigned int i;

	if (sys.enter_err && time >= sys.enter_from && time < sys.enter_until)
		return sys.enter_err;
	for (i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
		if (sys.spoil && sys.seen >= sys.first && sys.seen <= sys.last)
			sys.spoil(&ring->sq.sqes[i & ring->sq.ring_mask]);
		sys.seen++;
	}
	return 0;
}

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring)
{
	int err = enter(ring);

	return err ? err : __real_io_uring_submit(ring);
}

int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
	int err = enter(ring);

	return err ? err : __real_io_uring_submit_and_wait(ring, nr);
}

int __real_io_uring_queue_init_params(unsigned int nr, struct io_uring *ring,
				      struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned int nr, struct io_uring *ring,
				      struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned int nr, struct io_uring *ring,
				      struct io_uring_params *params)
{
	if (sys.ring_err)
		return sys.ring_err;
	return __real_io_uring_queue_init_params(nr, ring, params);
}

int __real_io_uring_register_buffers_update_tag(struct io_uring *ring,
						unsigned int off,
						const struct iovec *iov,
						const __u64 *tags,
						unsigned int nr);
int __wrap_io_uring_register_buffers_update_tag(struct io_uring *ring,
						unsigned int off,
						const struct iovec *iov,
						const __u64 *tags,
						unsigned int nr);
int __wrap_io_uring_register_buffers_update_tag(struct io_uring *ring,
						unsigned int off,
						const struct iovec *iov,
						const __u64 *tags,
						unsigned int nr)
{
	if (sys.register_err && iov->iov_len)
		return sys.register_err;
	return __real_io_uring_register_buffers_update_tag(ring, off, iov, tags,
							   nr);
}

int __real_statx(int dir, const char *path, int flags, unsigned int mask,
		 struct statx *stx);
int __wrap_statx(int dir, const char *path, int flags, unsigned int mask,
		 struct statx *stx);
int __wrap_statx(int dir, const char *path, int flags, unsigned int mask,
		 struct statx *stx)
{
	int err = __real_statx(dir, path, flags, mask, stx);

	if (!err && sys.say_align) {
		stx->stx_mask |= STATX_DIOALIGN;
		stx->stx_dio_mem_align = sys.mem_align;
		stx->stx_dio_offset_align = sys.offset_align;
	}
	return err;
}

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int err = __real_fstatfs(fd, fs);

	if (!err && sys.on_disk)
		fs->f_type = EXT4_SUPER_MAGIC;
	return err;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (sys.no_proc && !strncmp(path, "/proc/", strlen("/proc/"))) {
		errno = ENOENT;
		return -1;
	}
	return __real_open(path, flags, mode);
}

void *__real_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t off)
{
	if (sys.no_memory && n >= MIB) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, n, prot, flags, fd, off);
}

/* Of what callers have not given nothing is looked at. */
long __real_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
		    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (sys.no_cachestat && number == SYS_cachestat) {
		errno = ENOSYS;
		return -1;
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

int __real_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
	int i;

	if (!sys.processors)
		return __real_sched_getaffinity(pid, n, set);
	CPU_ZERO(set);
	for (i = 0; i < sys.processors; i++)
		CPU_SET(i, set);
	return 0;
}

/* ---- spoilt requests ---- */

static void make_invalid(struct io_uring_sqe *sqe)
{
	sqe->opcode = 0xff;
}

static void make_short(struct io_uring_sqe *sqe)
{
	if (sqe->len >= 3 * 4096)
		sqe->len = sqe->len / 3 / 4096 * 4096;
}

/* Not even whole blocks, which only reads through the page cache can be. */
static void make_odd(struct io_uring_sqe *sqe)
{
	if (sqe->len > 1000)
		sqe->len = 1000;
}

/* This process's own memory, where there never is any. */
static int own_memory;
#define NOTHING 4096

static void make_fail(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_READ;
	sqe->fd = own_memory;
	sqe->off = NOTHING;
}

static int pipe_end[2];

/* From a pipe, which is empty. */
static void make_patient(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_READ;
	sqe->flags = 0;
	sqe->fd = pipe_end[0];
	sqe->off = (__u64)-1;
	sqe->len = 1;
}

/* The same, but for that it is not waited for: -EAGAIN. */
static void make_impatient(struct io_uring_sqe *sqe)
{
	make_patient(sqe);
	sqe->rw_flags = RWF_NOWAIT;
}

/* ---- the tests ---- */

struct fixture {
	struct scene s;
	int direct; /* a descriptor with O_DIRECT, or -1 */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&sys, 0, sizeof(sys));
	/* So that the page cache is read by others, too. */
	sys.processors = 16;
	file_make(&f->s.file, SCENE_BYTES, 1);
	assert_int_equal(scene_open(&f->s), 0);
	f->direct = file_reopen(&f->s.file, O_RDONLY | O_DIRECT);
	own_memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	assert_true(own_memory >= 0);
	assert_int_equal(pipe2(pipe_end, O_CLOEXEC), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	memset(&sys, 0, sizeof(sys));
	scene_close(&f->s);
	close(f->s.file.fd);
	free(f->s.file.bytes);
	if (f->direct >= 0)
		close(f->direct);
	close(own_memory);
	close(pipe_end[0]);
	close(pipe_end[1]);
	free(f);
	return 0;
}

static void assert_loads(struct fixture *f, int fd)
{
	int line = scene_load_all(&f->s, fd);

	if (line)
		fail_msg("line %d of common.c", line);
}

static void spoil(void (*how)(struct io_uring_sqe *sqe), unsigned int first,
		  unsigned int last)
{
	sys.spoil = how;
	sys.first = first;
	sys.last = last;
	sys.seen = 0;
}

/* What to say of a test that a file system in memory makes pointless. */
static void need_disk(const struct fixture *f)
{
	if (f->s.file.direct)
		return;
	print_message("# no direct I/O here: see TENSORARENA_TEST_DIR\n");
	skip();
}

static void short_reads_are_resumed(void **state)
{
	struct fixture *f = *state;

	spoil(make_short, 0, UINT32_MAX);
	assert_loads(f, f->s.file.fd);
	/* And again, now that the slot is registered. */
	assert_loads(f, f->s.file.fd);
	file_cache(&f->s.file);
	assert_loads(f, f->s.file.fd);
}

static void reads_that_end_anywhere_are_resumed(void **state)
{
	struct fixture *f = *state;

	spoil(make_odd, 0, UINT32_MAX);
	sys.no_proc = true;
	assert_loads(f, f->s.file.fd);
	assert_int_equal(scene_stats(&f->s).direct_bytes, 0);
}

static void an_error_is_passed_on_wherever_it_is(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		file_evict(&f->s.file);
		spoil(make_fail, i, i);
		assert_err(ta_load(f->s.loan, 0, f->s.file.fd, 0, SCENE_BYTES),
			   -EIO);
		file_evict(&f->s.file);
		spoil(make_fail, i, i);
		assert_err(ta_load(f->s.loan, 8, f->s.file.fd, 3,
				   SCENE_BYTES - 8),
			   -EIO);
	}
	spoil(NULL, 0, 0);
	assert_loads(f, f->s.file.fd);
}

static void requests_the_kernel_does_not_know_are_done_without(void **state)
{
	struct fixture *f = *state;

	spoil(make_invalid, 0, UINT32_MAX);
	assert_loads(f, f->s.file.fd);
	file_cache(&f->s.file);
	assert_loads(f, f->s.file.fd);
	if (f->s.file.direct)
		assert_err(scene_stats(&f->s).direct_error, -EINVAL);
}

static void a_single_refusal_costs_no_bytes(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		spoil(make_invalid, i, i);
		assert_loads(f, f->s.file.fd);
		spoil(make_impatient, i, i);
		assert_loads(f, f->s.file.fd);
	}
}

/* ---- in flight ---- */

static atomic_bool written;

/* From a pipe into which something is written when everybody has waited. */
static void make_late(struct io_uring_sqe *sqe)
{
	if (sys.seen == sys.first)
		make_patient(sqe);
	else
		make_fail(sqe);
}

static void *write_late(void *arg)
{
	(void)arg;
	usleep(200000);
	written = true;
	if (write(pipe_end[1], "x", 1) != 1)
		abort();
	return NULL;
}

/* Otherwise it could still arrive in a slot that is somebody else's by then. */
static void a_load_that_fails_waits_for_what_is_in_flight(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	written = false;
	spoil(make_late, 0, 1);
	file_evict(&f->s.file);
	assert_int_equal(pthread_create(&thread, NULL, write_late, NULL), 0);
	assert_err(ta_load(f->s.loan, 0, f->s.file.fd, 0, SCENE_BYTES), -EIO);
	assert_true(written);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_ring_that_dies_gives_back_what_is_in_flight(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		sys.enter_err = -EPERM;
		sys.enter_from = i;
		sys.enter_until = UINT32_MAX;
		sys.entered = 0;
		assert_int_equal(
			scene_load(&f->s, 0, f->s.file.fd, 0, SCENE_BYTES), 0);
		sys.entered = 0;
		assert_int_equal(scene_load(&f->s, 3, f->s.file.fd, 1,
					    SCENE_BYTES - 5),
				 0);
		assert_err(scene_stats(&f->s).ring_error, -EPERM);
	}
	sys.enter_err = 0;
	assert_loads(f, f->s.file.fd);
	assert_int_equal(scene_stats(&f->s).failures, 0);
}

static void a_kernel_short_of_memory_is_asked_again(void **state)
{
	static const int errors[] = { -EAGAIN, -EBUSY, -ENOMEM, -EINTR };
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		sys.enter_err = errors[i];
		sys.enter_from = 1;
		sys.enter_until = 4;
		sys.entered = 0;
		assert_loads(f, f->s.file.fd);
		assert_true(sys.entered > 4);
	}
	assert_int_equal(scene_stats(&f->s).ring_error, 0);
}

static void no_ring_for_want_of_memory_is_no_error(void **state)
{
	struct fixture *f = *state;

	sys.ring_err = -ENOMEM;
	assert_loads(f, f->s.file.fd);
	assert_err(scene_stats(&f->s).ring_error, -ENOMEM);
	/* It is asked for again. */
	sys.ring_err = 0;
	assert_loads(f, f->s.file.fd);
	assert_int_equal(scene_stats(&f->s).rings, 1);
}

static void
memory_that_does_not_register_is_read_into_all_the_same(void **state)
{
	static const int errors[] = { -EOPNOTSUPP, -ENOMEM, -EFAULT };
	struct fixture *f = *state;
	struct ta_load_stats st;
	size_t i;

	need_disk(f);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		scene_close(&f->s);
		assert_int_equal(scene_open(&f->s), 0);
		sys.register_err = errors[i];
		assert_loads(f, f->s.file.fd);
		assert_loads(f, f->s.file.fd);
		st = scene_stats(&f->s);
		assert_err(st.register_error, errors[i]);
		assert_int_equal(st.fixed_bytes, 0);
		assert_int_equal(st.registered_bytes, 0);
		sys.register_err = 0;
	}
}

/* ---- other systems ---- */

/* A device that takes any address that is a multiple of four, as NVMe does. */
static void tensors_of_aligned_elements_go_straight_to_the_slot(void **state)
{
	struct fixture *f = *state;
	struct test_file old = f->s.file;
	struct ta_load_stats st;
	int fd;

	/* There every address will do, so that one cannot be too odd. */
	assert_int_equal(setenv("TENSORARENA_TEST_DIR", "/dev/shm", 1), 0);
	file_make(&f->s.file, SCENE_BYTES, 2);
	assert_int_equal(unsetenv("TENSORARENA_TEST_DIR"), 0);
	fd = file_reopen(&f->s.file, O_RDONLY | O_DIRECT);
	sys.on_disk = true;
	sys.say_align = true;
	sys.mem_align = 4;
	sys.offset_align = 512;
	/* All of it is in the page cache, which is not to be noticed. */
	sys.no_cachestat = true;
	if (fd < 0) {
		file_close(&f->s.file);
		f->s.file = old;
		print_message("# tmpfs knows O_DIRECT since Linux 6.6\n");
		skip();
	}
	assert_int_equal(scene_load(&f->s, 0, fd, 8, 5 * MIB), 0);
	assert_int_equal(scene_load(&f->s, 0, fd, 8, 5 * MIB), 0);
	assert_int_equal(scene_load(&f->s, 0, fd, 8, 5 * MIB), 0);
	st = scene_stats(&f->s);
	/* All but the ends, of half a block each. */
	assert_int_equal(st.direct_bytes, 3 * (5 * MIB - 512));
	assert_int_equal(st.bounced_bytes, 3 * 512);
	assert_int_equal(st.fixed_bytes, 0);
	/* Odd elements do not. */
	assert_int_equal(scene_load(&f->s, 0, fd, 7, 5 * MIB), 0);
	assert_int_equal(scene_stats(&f->s).direct_bytes, st.direct_bytes);
	assert_loads(f, fd);
	close(fd);
	file_close(&f->s.file);
	f->s.file = old;
}

static void an_alignment_that_is_not_true_costs_no_bytes(void **state)
{
	struct fixture *f = *state;

	need_disk(f);
	sys.say_align = true;
	sys.mem_align = 1;
	sys.offset_align = 1;
	assert_int_equal(scene_load(&f->s, 1, f->s.file.fd, 3, 5 * MIB), 0);
	assert_err(scene_stats(&f->s).direct_error, -EINVAL);
	assert_loads(f, f->s.file.fd);
}

static void an_alignment_that_means_no_is_a_no(void **state)
{
	static const uint32_t none[] = { 0, 3, 1 << 20 };
	struct fixture *f = *state;
	size_t i;

	sys.say_align = true;
	for (i = 0; i < ARRAY_SIZE(none); i++) {
		sys.mem_align = none[i];
		sys.offset_align = none[i];
		assert_loads(f, f->s.file.fd);
		assert_err(scene_stats(&f->s).direct_error, -EINVAL);
	}
	assert_int_equal(scene_stats(&f->s).direct_bytes, 0);
}

static void large_blocks_are_blocks(void **state)
{
	struct fixture *f = *state;

	sys.say_align = true;
	sys.mem_align = 4096;
	sys.offset_align = 65536;
	assert_loads(f, f->s.file.fd);
	if (f->s.file.direct)
		assert_true(scene_stats(&f->s).direct_bytes > 0);
}

static void without_proc_the_descriptor_is_used_as_it_is(void **state)
{
	struct fixture *f = *state;

	need_disk(f);
	sys.no_proc = true;
	assert_loads(f, f->s.file.fd);
	assert_int_equal(scene_stats(&f->s).direct_bytes, 0);
	assert_err(scene_stats(&f->s).direct_error, -ENOENT);
	assert_loads(f, f->direct);
	assert_true(scene_stats(&f->s).direct_bytes > 0);
	sys.ring_err = -EPERM;
	scene_close(&f->s);
	assert_int_equal(scene_open(&f->s), 0);
	assert_loads(f, f->direct);
	assert_int_equal(scene_stats(&f->s).rings, 0);
}

static void without_buffers_there_is_the_page_cache(void **state)
{
	struct fixture *f = *state;

	need_disk(f);
	sys.no_memory = true;
	assert_loads(f, f->s.file.fd);
	assert_loads(f, f->direct);
	assert_int_equal(scene_stats(&f->s).bounced_bytes, 0);
	/* Not even that: with this descriptor it cannot be done. */
	sys.no_proc = true;
	assert_err(ta_load(f->s.loan, 1, f->direct, 3, MIB), -ENOMEM);
	assert_err(ta_load(f->s.loan, 1, f->direct, 3, 10), -ENOMEM);
	assert_ok(ta_load(f->s.loan, 0, f->direct, 0, MIB));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(short_reads_are_resumed),
		TEST(reads_that_end_anywhere_are_resumed),
		TEST(an_error_is_passed_on_wherever_it_is),
		TEST(requests_the_kernel_does_not_know_are_done_without),
		TEST(a_single_refusal_costs_no_bytes),
		TEST(a_load_that_fails_waits_for_what_is_in_flight),
		TEST(a_ring_that_dies_gives_back_what_is_in_flight),
		TEST(a_kernel_short_of_memory_is_asked_again),
		TEST(no_ring_for_want_of_memory_is_no_error),
		TEST(memory_that_does_not_register_is_read_into_all_the_same),
		TEST(tensors_of_aligned_elements_go_straight_to_the_slot),
		TEST(an_alignment_that_is_not_true_costs_no_bytes),
		TEST(an_alignment_that_means_no_is_a_no),
		TEST(large_blocks_are_blocks),
		TEST(without_proc_the_descriptor_is_used_as_it_is),
		TEST(without_buffers_there_is_the_page_cache),
	};

	return run_cases(argc, argv, tests);
}
