// SPDX-License-Identifier: MIT
/*
 * A reader that wants to write, or to see what is not its own.  Everything it
 * can try from user space with what it was given is tried here, on a view of
 * an arena that is not for writable readers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"

#define SEED 7
#define PAGE 4096

static bool is_open[1024];

struct scene {
	struct actor writer;
	struct ta_reader *reader;
	struct ta_view *view;
};

static void note_open(void)
{
	int fd;

	for (fd = 0; fd < (int)ARRAY_SIZE(is_open); fd++)
		is_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* The writer is another process, so what is open or mapped here is a reader's. */
static void scene_open_with(struct scene *s, uint32_t flags)
{
	struct ta_options o = test_options(1, 2 * MIB, 1);
	char handle[TA_HANDLE_MAX];

	o.flags |= flags;
	s->writer = actor_start();
	assert_ok(actor_create(&s->writer, &o, handle));
	note_open();
	assert_ok(ta_attach(handle, &s->reader));
	assert_ok(actor_put(&s->writer, MIB, SEED, NULL));
	assert_ok(ta_next(s->reader, HANG_MS, &s->view));
}

static void scene_open(struct scene *s)
{
	scene_open_with(s, 0);
}

static void scene_close(struct scene *s)
{
	/* Whatever was tried. */
	assert_true(is_pattern(s->view->data, MIB, SEED));
	ta_reader_close(s->reader);
	actor_stop(&s->writer);
}

static void *data_of(const struct scene *s)
{
	return (void *)(uintptr_t)s->view->data;
}

/* ---- ways to write to memory that is mapped: 0 when one worked ---- */

static int try_mprotect(void *data)
{
	return mprotect(data, PAGE, PROT_READ | PROT_WRITE);
}

/* Elsewhere, where nothing is known of the old protection. */
static int try_mremap(void *data)
{
	void *copy = mremap(data, 0, PAGE, MREMAP_MAYMOVE);
	int err;

	/* Not to be had at all is as good. */
	if (copy == MAP_FAILED)
		return -1;
	err = mprotect(copy, PAGE, PROT_READ | PROT_WRITE);
	munmap(copy, PAGE);
	return err;
}

/* The debugger's way, which may write to read-only text. */
static int try_proc_mem(void *data)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	n = pwrite(fd, "x", 1, (off_t)(uintptr_t)data);
	close(fd);
	return n == 1 ? 0 : -1;
}

static int try_process_vm_writev(void *data)
{
	char byte = 'x';
	const struct iovec from = { &byte, 1 }, to = { data, 1 };

	return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 1 ? 0 : -1;
}

static int try_read(void *data)
{
	int fd[2];
	ssize_t n;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	n = read(fd[0], data, 1);
	close(fd[0]);
	close(fd[1]);
	return n == 1 ? 0 : -1;
}

static int try_recv(void *data)
{
	int fd[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	n = recv(fd[0], data, 1, 0);
	close(fd[0]);
	close(fd[1]);
	return n == 1 ? 0 : -1;
}

static int try_remove(void *data)
{
	return madvise(data, PAGE, MADV_REMOVE);
}

/* @real: works on memory that may be written to, on either engine. */
static const struct {
	const char *name;
	int (*try)(void *data);
	bool real;
} ways[] = {
	{ "mprotect", try_mprotect, true },
	{ "mremap", try_mremap, false },
	{ "/proc/self/mem", try_proc_mem, true },
	{ "process_vm_writev", try_process_vm_writev, true },
	{ "read", try_read, true },
	{ "recv", try_recv, true },
	{ "MADV_REMOVE", try_remove, false },
};

static void nothing_writes_to_a_view(void **state)
{
	struct scene s;
	size_t i;

	(void)state;
	scene_open(&s);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!ways[i].try(data_of(&s)))
			fail_msg("%s works", ways[i].name);
		if (!is_pattern(s.view->data, MIB, SEED))
			fail_msg("%s failed, and wrote", ways[i].name);
	}
	scene_close(&s);
}

/* Or the test before would prove nothing. */
static void the_same_ways_work_where_readers_may_write(void **state)
{
	struct scene s;
	size_t i;

	(void)state;
	scene_open_with(&s, TA_WRITABLE_READERS);
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		if (ways[i].real && ways[i].try(data_of(&s)))
			fail_msg("%s does not work", ways[i].name);
	ta_reader_close(s.reader);
	actor_stop(&s.writer);
}

/* ---- ways to write to what is behind a descriptor ---- */

/* What works on an open file, or NULL. */
static const char *writes_to(int fd)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct stat st;
	void *map;

	if (pwrite(fd, "x", 1, 0) == 1)
		return "pwrite";
	/* Empty: what a reader maps, of its own, where it was given nothing. */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_size)
		return NULL;
	if (!ftruncate(fd, st.st_size - 1))
		return "ftruncate";
	if (!fallocate(fd, punch, 0, PAGE))
		return "punching holes";
	if (!fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE))
		return "zeroing";
	if (!fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE))
		return "collapsing";
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		munmap(map, PAGE);
		return "mmap";
	}
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (!mprotect(map, PAGE, PROT_READ | PROT_WRITE)) {
		munmap(map, PAGE);
		return "mmap and mprotect";
	}
	munmap(map, PAGE);
	return NULL;
}

/* Opens a link of procfs anew, for writing, and tries everything. */
static void try_link(const char *dir, const char *name)
{
	char path[PATH_MAX];
	const char *way;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	way = writes_to(fd);
	close(fd);
	if (way)
		fail_msg("%s of %s, opened anew, works", way, path);
}

/* Whether the mapping that "START-END" names has @data in it. */
static bool names_mapping_of(const char *name, const void *data)
{
	unsigned long start, end;

	return sscanf(name, "%lx-%lx", &start, &end) == 2 &&
	       start <= (uintptr_t)data && (uintptr_t)data < end;
}

/* The file that is mapped, by way of the mapping. */
static void a_view_is_no_way_to_its_file(void **state)
{
	struct scene s;
	struct dirent *entry;
	unsigned int tried = 0;
	DIR *dir;

	(void)state;
	dir = opendir("/proc/self/map_files");
	if (!dir) {
		print_message("# no /proc/self/map_files here\n");
		skip();
	}
	scene_open(&s);
	while ((entry = readdir(dir))) {
		if (!names_mapping_of(entry->d_name, s.view->data))
			continue;
		try_link("/proc/self/map_files", entry->d_name);
		tried++;
	}
	closedir(dir);
	assert_int_equal(tried, 1);
	scene_close(&s);
}

/* Every descriptor that attaching and viewing brought into this process. */
static void a_readers_descriptors_are_no_way_to_write(void **state)
{
	struct scene s;
	unsigned int tried = 0;
	char name[16];
	const char *way;
	int fd;

	(void)state;
	scene_open(&s);
	for (fd = 0; fd < (int)ARRAY_SIZE(is_open); fd++) {
		if (is_open[fd] || fcntl(fd, F_GETFD) < 0)
			continue;
		way = writes_to(fd);
		if (way)
			fail_msg("%s of descriptor %d works", way, fd);
		snprintf(name, sizeof(name), "%d", fd);
		try_link("/proc/self/fd", name);
		tried++;
	}
	assert_true(tried > 0);
	scene_close(&s);
}

/* ---- what it sees ---- */

/* Flags of the mapping that has @data in it, as smaps spells them. */
static bool has_flag(const void *data, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	bool here = false, has = false;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (strchr(line, '-') && names_mapping_of(line, data))
			here = true;
		if (!here || strncmp(line, "VmFlags:", 8))
			continue;
		has = strstr(line, flag);
		break;
	}
	fclose(smaps);
	return has;
}

static void tensors_are_in_no_core_dump_and_no_child(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s);
	assert_true(has_flag(s.view->data, " dd"));
	assert_true(has_flag(s.view->data, " dc"));
	assert_false(has_flag(s.view->data, " mw"));
	scene_close(&s);
}

/*
 * Beyond its bytes a slot holds what was there: older tensors of the same
 * arena, whose readers may read all of them anyway, and zeroes where there were
 * none.  Nobody else's bytes.
 */
static void beyond_a_tensor_lie_older_ones_of_its_arena_and_zeroes(void **state)
{
	struct scene s;
	const uint8_t *data;
	uint8_t *older = malloc(MIB);
	size_t i;

	(void)state;
	scene_open(&s);
	assert_non_null(older);
	memcpy(older, s.view->data, MIB);
	assert_ok(ta_release(s.view));
	assert_ok(actor_put(&s.writer, PAGE, SEED + 1, NULL));
	assert_ok(ta_next(s.reader, HANG_MS, &s.view));
	data = s.view->data;
	assert_true(is_pattern(data, PAGE, SEED + 1));
	assert_memory_equal(data + PAGE, older + PAGE, MIB - PAGE);
	for (i = MIB; i < 2 * MIB; i++)
		if (data[i])
			fail_msg("byte %zu was nobody's and is not zero", i);
	free(older);
	ta_reader_close(s.reader);
	actor_stop(&s.writer);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_writes_to_a_view),
		cmocka_unit_test(the_same_ways_work_where_readers_may_write),
		cmocka_unit_test(a_view_is_no_way_to_its_file),
		cmocka_unit_test(a_readers_descriptors_are_no_way_to_write),
		cmocka_unit_test(tensors_are_in_no_core_dump_and_no_child),
		cmocka_unit_test(
			beyond_a_tensor_lie_older_ones_of_its_arena_and_zeroes),
	};

	return run_cases(argc, argv, tests);
}
