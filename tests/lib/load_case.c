// SPDX-License-Identifier: MIT
/* Files into slots: the bytes that arrive, and how they get there. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "file.h"
#include "harness.h"

#define FILE_BYTES (20 * MIB)
#define SLOT_BYTES (8 * MIB)
#define GUARD 65536
#define GUARD_BYTE 0xee

static struct ta_load_stats load_stats_of(struct ta_writer *writer)
{
	struct ta_load_stats st;

	assert_ok(ta_load_stats(writer, &st));
	return st;
}

static bool kernel_at_least(unsigned int major, unsigned int minor)
{
	struct utsname u;
	unsigned int a, b;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &a, &b), 2);
	return a > major || (a == major && b >= minor);
}

/* Whether a slot's memory can be registered here at all. */
static bool registration_possible(void)
{
	return test_engine() == TA_ENGINE_EMBEDDED ? kernel_at_least(5, 19) :
						     kernel_at_least(6, 5);
}

/* Loads a range into a loan, and nothing next to it. */
static void load_exactly(struct ta_loan *loan, size_t at,
			 const struct test_file *file, int fd, uint64_t offset,
			 size_t nbytes)
{
	uint8_t *data = loan->data;
	size_t before = at < GUARD ? at : GUARD;
	size_t after = loan->nbytes - at - nbytes;
	size_t i;

	if (after > GUARD)
		after = GUARD;
	memset(data + at - before, GUARD_BYTE, before + nbytes + after);
	assert_ok(ta_load(loan, at, fd, offset, nbytes));
	if (memcmp(data + at, file->bytes + offset, nbytes))
		fail_msg("other bytes: %zu at %llu to %zu", nbytes,
			 (unsigned long long)offset, at);
	for (i = 0; i < before; i++)
		assert_int_equal(data[at - 1 - i], GUARD_BYTE);
	for (i = 0; i < after; i++)
		assert_int_equal(data[at + nbytes + i], GUARD_BYTE);
}

static void load_all_alignments(struct ta_loan *loan,
				const struct test_file *file, int fd, bool cold)
{
	static const uint64_t offsets[] = {
		0,    1,    8,	  511,	512,
		4095, 4096, 4104, 4608, 16 * MIB - 2 * MIB - 8,
	};
	static const size_t sizes[] = {
		0,
		1,
		511,
		512,
		513,
		4097,
		256 * KIB - 1,
		256 * KIB,
		256 * KIB + 8,
		512 * KIB + 511,
		2 * MIB,
		2 * MIB + 1,
		5 * MIB + 13,
	};
	static const size_t places[] = { 0, 1, 8, 512, 4096, 4104, 70000 };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			if (cold)
				file_evict(file);
			load_exactly(loan, places[(i + k) % ARRAY_SIZE(places)],
				     file, fd, offsets[i], sizes[k]);
		}
	}
}

static void check_alignments(struct test_file *file, int flags)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct ta_load_stats st;
	struct ta_loan *loan;
	struct arena arena;
	int fd = file_reopen(file, O_RDONLY | flags);

	assert_true(fd >= 0);
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	load_all_alignments(loan, file, fd, true);
	st = load_stats_of(arena.writer);
	if (file->direct) {
		assert_true(st.direct_bytes > 0);
		assert_true(st.bounced_bytes > 0);
		assert_int_equal(st.cached_bytes, 0);
	}
	file_cache(file);
	load_all_alignments(loan, file, fd, false);
	st = load_stats_of(arena.writer);
	assert_true(st.cached_bytes > 0);
	assert_int_equal(st.failures, 0);
	print_message("# direct %llu (registered %llu), bounced %llu, cached "
		      "%llu, buffered %llu; errors %d %d %d\n",
		      (unsigned long long)st.direct_bytes,
		      (unsigned long long)st.fixed_bytes,
		      (unsigned long long)st.bounced_bytes,
		      (unsigned long long)st.cached_bytes,
		      (unsigned long long)st.buffered_bytes, st.ring_error,
		      st.direct_error, st.register_error);
	assert_ok(ta_abort(loan));
	arena_close(&arena);
	close(fd);
}

/* A file that is read past the page cache. */
static void make_direct(struct test_file *file, uint64_t seed)
{
	file_make(file, FILE_BYTES, seed);
	if (file->direct)
		return;
	file_close(file);
	if (!file_make_on_disk(file, 0, FILE_BYTES, seed))
		skip();
	assert_true(file->direct);
}

static void check_both_ways(struct test_file *file)
{
	check_alignments(file, 0);
	if (file->direct)
		check_alignments(file, O_DIRECT);
	file_close(file);
}

static void every_alignment_gives_the_bytes_and_no_others(void **state)
{
	struct test_file file;
	unsigned int disk;

	(void)state;
	file_make(&file, FILE_BYTES, 1);
	check_both_ways(&file);
	for (disk = 0; file_make_on_disk(&file, disk, FILE_BYTES, 2); disk++)
		check_both_ways(&file);
}

/* As most tensors in files lie: aligned to their elements, not to blocks. */
static void check_aligned_elements(struct test_file *file)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct ta_load_stats st;
	struct statx stx = { 0 };
	struct ta_loan *loan;
	struct arena arena;
	uint64_t ends;

	assert_int_equal(
		statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx), 0);
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	file_evict(file);
	load_exactly(loan, 0, file, file->fd, 8, 3 * MIB);
	st = load_stats_of(arena.writer);
	if (file->direct && stx.stx_mask & STATX_DIOALIGN) {
		print_message("# addresses %u, blocks %u\n",
			      stx.stx_dio_mem_align, stx.stx_dio_offset_align);
		/* But for the ends, of a block together. */
		ends = stx.stx_dio_mem_align <= 8 ? stx.stx_dio_offset_align :
						    3 * MIB;
		assert_int_equal(st.bounced_bytes, ends);
		assert_int_equal(st.direct_bytes, 3 * MIB - ends);
	}
	assert_ok(ta_abort(loan));
	arena_close(&arena);
	file_close(file);
}

static void
elements_go_straight_to_the_slot_if_the_device_lets_them(void **state)
{
	struct test_file file;
	unsigned int disk;

	(void)state;
	file_make(&file, FILE_BYTES, 1);
	check_aligned_elements(&file);
	for (disk = 0; file_make_on_disk(&file, disk, FILE_BYTES, 2); disk++)
		check_aligned_elements(&file);
}

static void a_tensor_goes_from_a_file_to_its_readers(void **state)
{
	struct ta_options o = test_options(2, SLOT_BYTES, 2);
	struct ta_tensor t = { TA_FLOAT, 32, 1, 2, 1, 0, { 512, 1024 }, "w" };
	struct ta_tensor seen;
	struct ta_ticket ticket, told;
	struct test_file file;
	struct arena arena;
	unsigned int i;

	(void)state;
	file_make(&file, 2 * MIB, 3);
	arena_open(&arena, &o, 2);
	assert_ok(ta_load_file(arena.writer, file.fd, 0, 2 * MIB, &t, &ticket));
	for (i = 0; i < arena.actors; i++) {
		assert_ok(actor_next(&arena.actor[i], 0, HANG_MS));
		assert_ok(actor_check(&arena.actor[i], 0, 3));
		actor_describe(&arena.actor[i], 0, &told, &seen);
		assert_memory_equal(&told, &ticket, sizeof(told));
		assert_memory_equal(&seen, &t, sizeof(seen));
		assert_ok(actor_release(&arena.actor[i], 0));
	}
	/* As bytes, and without a ticket. */
	assert_ok(ta_load_file(arena.writer, file.fd, 0, 1 * MIB, NULL, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 3));
	arena_close(&arena);
	file_close(&file);
}

static void nothing_is_a_tensor_too(void **state)
{
	struct ta_options o = test_options(1, MIB, 1);
	struct test_file file;
	struct arena arena;

	(void)state;
	file_make(&file, 10, 4);
	arena_open(&arena, &o, 1);
	assert_ok(ta_load_file(arena.writer, file.fd, 10, 0, NULL, NULL));
	assert_ok(actor_next(&arena.actor[0], 0, HANG_MS));
	assert_ok(actor_check(&arena.actor[0], 0, 0));
	arena_close(&arena);
	file_close(&file);
}

static void the_callers_descriptor_is_left_as_it_was(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct test_file file;
	struct ta_loan *loan;
	struct arena arena;
	int flags;

	(void)state;
	file_make(&file, FILE_BYTES, 5);
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	flags = fcntl(file.fd, F_GETFL);
	assert_int_equal(lseek(file.fd, 12345, SEEK_SET), 12345);
	file_evict(&file);
	load_exactly(loan, 0, &file, file.fd, 8, 3 * MIB);
	load_exactly(loan, 0, &file, file.fd, 4096, 3 * MIB);
	assert_int_equal(fcntl(file.fd, F_GETFL), flags);
	assert_int_equal(lseek(file.fd, 0, SEEK_CUR), 12345);
	arena_close(&arena);
	file_close(&file);
}

static void what_was_just_written_is_what_is_loaded(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct test_file file;
	struct ta_loan *loan;
	struct arena arena;
	size_t i;

	(void)state;
	file_make(&file, FILE_BYTES, 6);
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	file_evict(&file);
	/* Here and there, so that most is on the disk and some only in memory. */
	for (i = 0; i < FILE_BYTES - 100; i += 300000) {
		fill_pattern(file.bytes + i, 100, i);
		assert_int_equal(pwrite(file.fd, file.bytes + i, 100, (off_t)i),
				 100);
	}
	load_exactly(loan, 0, &file, file.fd, 0, 7 * MIB);
	load_exactly(loan, 8, &file, file.fd, 7 * MIB + 3, 7 * MIB);
	arena_close(&arena);
	file_close(&file);
}

static void a_device_without_end_is_read_as_far_as_asked(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct test_file zeros = { .bytes = calloc(1, 4 * MIB) };
	struct ta_loan *loan;
	struct arena arena;

	(void)state;
	assert_true(fd >= 0);
	assert_non_null(zeros.bytes);
	arena_open(&arena, &o, 0);
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	load_exactly(loan, 100, &zeros, fd, 0, 3 * MIB + 5);
	arena_close(&arena);
	free(zeros.bytes);
	close(fd);
}

/* A slot that is loaded again and again is registered, once. */
static void a_slot_in_use_is_registered_where_that_works(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct test_file file;
	struct ta_load_stats st;
	struct ta_loan *loan;
	struct arena arena;
	int i;

	(void)state;
	make_direct(&file, 7);
	arena_open(&arena, &o, 0);
	for (i = 0; i < 4; i++) {
		assert_ok(ta_loan(arena.writer, 3 * MIB, &loan));
		file_evict(&file);
		load_exactly(loan, 0, &file, file.fd, 4096, 3 * MIB);
		assert_ok(ta_abort(loan));
	}
	st = load_stats_of(arena.writer);
	assert_int_equal(st.direct_bytes, 4 * 3 * MIB);
	if (registration_possible()) {
		assert_int_equal(st.registrations, 1);
		assert_int_equal(st.registered_bytes, 4 * MIB);
		assert_int_equal(st.fixed_bytes, 3 * 3 * MIB);
		assert_int_equal(st.register_error, 0);
	} else {
		assert_int_equal(st.registrations, 0);
		assert_int_equal(st.fixed_bytes, 0);
		assert_err(st.register_error, -EOPNOTSUPP);
	}
	arena_close(&arena);
	file_close(&file);
}

static void a_slot_that_grows_is_registered_anew(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct test_file file;
	struct ta_load_stats st;
	struct ta_loan *loan;
	struct arena arena;
	size_t nbytes;
	int i;

	(void)state;
	file_make(&file, FILE_BYTES, 8);
	arena_open(&arena, &o, 0);
	for (nbytes = MIB; nbytes <= SLOT_BYTES; nbytes *= 2) {
		for (i = 0; i < 4; i++) {
			assert_ok(ta_loan(arena.writer, nbytes, &loan));
			file_evict(&file);
			load_exactly(loan, 0, &file, file.fd, 0, nbytes);
			assert_ok(ta_abort(loan));
		}
	}
	st = load_stats_of(arena.writer);
	if (file.direct && registration_possible())
		assert_int_equal(st.registered_bytes, SLOT_BYTES);
	arena_close(&arena);
	file_close(&file);
}

/* Pages that we have pinned ourselves do not keep a slot from being freed. */
static void a_registered_slot_can_be_trimmed(void **state)
{
	struct ta_options o = test_options(2, SLOT_BYTES, 1);
	struct test_file file;
	struct ta_loan *loan;
	struct arena arena;
	uint64_t freed;
	int round, i;

	(void)state;
	make_direct(&file, 9);
	arena_open(&arena, &o, 0);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++) {
			assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
			file_evict(&file);
			load_exactly(loan, 0, &file, file.fd, 512 * round,
				     SLOT_BYTES);
			assert_ok(ta_abort(loan));
		}
		assert_int_equal(load_stats_of(arena.writer).registered_bytes,
				 registration_possible() ? SLOT_BYTES : 0);
		assert_ok(ta_trim(arena.writer, 0, &freed));
		assert_int_equal(freed, SLOT_BYTES);
		assert_int_equal(load_stats_of(arena.writer).registered_bytes,
				 0);
		assert_int_equal(stats_of(arena.writer).allocated_bytes, 0);
	}
	arena_close(&arena);
	file_close(&file);
}

struct late_user {
	struct ta_writer *writer;
	int pipe[2];
};

/* Uses a page until the writer has nothing registered any more. */
static void *let_go_late(void *arg)
{
	struct late_user *u = arg;
	uint8_t bytes[4096];

	while (load_stats_of(u->writer).registered_bytes)
		usleep(100);
	assert_int_equal(read(u->pipe[0], bytes, sizeof(bytes)), sizeof(bytes));
	return NULL;
}

/* As io_uring's workers do; only the module sees what a pipe refers to. */
static void what_is_let_go_of_late_is_waited_for(void **state)
{
	struct ta_options o = test_options(1, SLOT_BYTES, 1);
	struct iovec page = { .iov_len = 4096 };
	struct test_file file;
	struct late_user user;
	struct ta_loan *loan;
	struct arena arena;
	uint64_t freed;
	pthread_t thread;
	int i;

	(void)state;
	if (test_engine() == TA_ENGINE_EMBEDDED || !registration_possible())
		skip();
	make_direct(&file, 9);
	arena_open(&arena, &o, 0);
	for (i = 0; i < 3; i++) {
		assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
		page.iov_base = loan->data;
		file_evict(&file);
		load_exactly(loan, 0, &file, file.fd, 0, SLOT_BYTES);
		assert_ok(ta_abort(loan));
	}
	assert_int_not_equal(load_stats_of(arena.writer).registered_bytes, 0);
	user.writer = arena.writer;
	assert_int_equal(pipe(user.pipe), 0);
	assert_int_equal(vmsplice(user.pipe[1], &page, 1, 0), 4096);
	assert_int_equal(pthread_create(&thread, NULL, let_go_late, &user), 0);
	assert_ok(ta_trim(arena.writer, 0, &freed));
	assert_int_equal(freed, SLOT_BYTES);
	pthread_join(thread, NULL);

	/* Who has nothing registered does not wait. */
	assert_ok(ta_loan(arena.writer, SLOT_BYTES, &loan));
	page.iov_base = loan->data;
	memset(loan->data, 1, 4096);
	assert_int_equal(vmsplice(user.pipe[1], &page, 1, 0), 4096);
	assert_ok(ta_abort(loan));
	assert_int_equal(ta_trim(arena.writer, 0, &freed), -EBUSY);
	assert_int_equal(freed, 0);
	close(user.pipe[0]);
	close(user.pipe[1]);
	arena_close(&arena);
	file_close(&file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_alignment_gives_the_bytes_and_no_others),
		cmocka_unit_test(
			elements_go_straight_to_the_slot_if_the_device_lets_them),
		cmocka_unit_test(a_tensor_goes_from_a_file_to_its_readers),
		cmocka_unit_test(nothing_is_a_tensor_too),
		cmocka_unit_test(the_callers_descriptor_is_left_as_it_was),
		cmocka_unit_test(what_was_just_written_is_what_is_loaded),
		cmocka_unit_test(a_device_without_end_is_read_as_far_as_asked),
		cmocka_unit_test(a_slot_in_use_is_registered_where_that_works),
		cmocka_unit_test(a_slot_that_grows_is_registered_anew),
		cmocka_unit_test(a_registered_slot_can_be_trimmed),
		cmocka_unit_test(what_is_let_go_of_late_is_waited_for),
	};

	return run_cases(argc, argv, tests);
}
