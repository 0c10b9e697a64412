// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the module tells is what it means to tell: no byte of a structure is
 * left as it was found on the kernel's stack or in the caller's memory, and no
 * number or text is an address in the kernel.
 */
#include <dirent.h>
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"
#include "text.h"

/* Where an out field is before the call. */
#define UNTOLD 0xa5

/* The kernel's half of the address space, on x86-64 and arm64. */
static bool is_kernel_address(uint64_t value)
{
	return value >> 47 == 0x1ffff && value != UINT64_MAX;
}

/* An untold word, by its offset, or -1. */
static int find_untold(const void *args, size_t size)
{
	uint32_t untold, word;
	size_t i;

	memset(&untold, UNTOLD, sizeof(untold));
	for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&word, (const char *)args + i, sizeof(word));
		if (word == untold)
			return (int)i;
	}
	return -1;
}

static int find_address(const void *args, size_t size)
{
	uint64_t word;
	size_t i;

	for (i = 0; i + sizeof(word) <= size; i += 4) {
		memcpy(&word, (const char *)args + i, sizeof(word));
		if (is_kernel_address(word))
			return (int)i;
	}
	return -1;
}

#define EXPECT_TOLD(args)                                                      \
	do {                                                                   \
		EXPECT_EQ(-1, find_untold(&(args), sizeof(args)));             \
		EXPECT_EQ(-1, find_address(&(args), sizeof(args)));            \
	} while (0)

/* Sets what is in; everything else stays untold. */
#define UNTOLD_BUT(type, ...)                                                  \
	({                                                                     \
		struct type args_;                                             \
		struct type *in_ = &args_;                                     \
                                                                               \
		memset(in_, UNTOLD, sizeof(*in_));                             \
		__VA_ARGS__;                                                   \
		args_;                                                         \
	})

TEST(the_checks_see_what_they_are_for)
{
	struct tensorarena_detach told = { 0 };
	uint64_t address = 0xffff888000001000ULL;

	EXPECT_EQ(-1, find_untold(&told, sizeof(told)));
	memset(&told.freed, UNTOLD, sizeof(told.freed));
	EXPECT_EQ(4, find_untold(&told, sizeof(told)));
	EXPECT_EQ(0, find_address(&address, sizeof(address)));
	address = 0x00007fffffffffffULL;
	EXPECT_EQ(-1, find_address(&address, sizeof(address)));
}

TEST(the_control_node_tells_all_it_should_and_nothing_else)
{
	struct tensorarena_info info =
		UNTOLD_BUT(tensorarena_info, in_->flags = 0; in_->reserved = 0);
	struct tensorarena_create create =
		UNTOLD_BUT(tensorarena_create, in_->slot_bytes = CHUNK;
			   in_->slots = 2; in_->seats = 1; in_->flags = 0;
			   in_->node = TENSORARENA_NODE_LOCAL;
			   in_->reserved = 0);
	struct tensorarena_attach attach = UNTOLD_BUT(
		tensorarena_attach, in_->flags = 0; in_->reserved = 0);

	MUST(!control_request(TENSORARENA_INFO, &info));
	EXPECT_TOLD(info);
	MUST(!control_request(TENSORARENA_CREATE, &create));
	attach.arena = create.arena;
	memcpy(attach.cookie, create.cookie, sizeof(attach.cookie));
	MUST(!control_request(TENSORARENA_ATTACH, &attach));
	/* Ours, and all ones by right. */
	EXPECT_EQ(TENSORARENA_NODE_LOCAL, create.node);
	create.node = 0;
	/* Random, so anything at all. */
	memset(create.cookie, 0, sizeof(create.cookie));
	memset(attach.cookie, 0, sizeof(attach.cookie));
	EXPECT_TOLD(create);
	EXPECT_TOLD(attach);
}

FIXTURE(leaks)
{
	struct arena a;
	struct reader r;
};

FIXTURE_SETUP(leaks)
{
	arena_create(&self->a, 2, CHUNK, 1);
	arena_map(&self->a);
	reader_attach(&self->a, &self->r);
}

FIXTURE_TEARDOWN(leaks)
{
	MUST(!close(self->r.fd));
	MUST(!close(self->a.fd));
}

TEST_F(leaks, a_writers_file_tells_all_it_should_and_nothing_else)
{
	struct tensorarena_acquire acq =
		UNTOLD_BUT(tensorarena_acquire, in_->nbytes = 10;
			   in_->flags = 0; in_->reserved = 0);
	struct tensorarena_publish pub = UNTOLD_BUT(
		tensorarena_publish, in_->nbytes = 10; in_->readers = 0;
		in_->nr_readers = 0; in_->flags = 0; in_->meta_bytes = 0;
		in_->reserved = 0; memset(in_->meta, 0, sizeof(in_->meta)));
	struct tensorarena_populate pop =
		UNTOLD_BUT(tensorarena_populate, in_->nbytes = 1;
			   in_->slots = 1; in_->flags = 0; in_->reserved = 0);
	struct tensorarena_trim trim = UNTOLD_BUT(
		tensorarena_trim, in_->keep_bytes = 0; in_->flags = 0);
	struct tensorarena_evict evict =
		UNTOLD_BUT(tensorarena_evict, in_->reader = 1; in_->flags = 0);
	struct tensorarena_detach detach =
		UNTOLD_BUT(tensorarena_detach, in_->flags = 0);

	MUST(!request(self->a.fd, TENSORARENA_ACQUIRE, &acq));
	EXPECT_TOLD(acq);
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	MUST(!request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	EXPECT_TOLD(pub);
	MUST(!request(self->a.fd, TENSORARENA_POPULATE, &pop));
	EXPECT_TOLD(pop);
	MUST(!request(self->a.fd, TENSORARENA_TRIM, &trim));
	EXPECT_TOLD(trim);
	evict.reader = self->r.made.reader;
	MUST(!request(self->a.fd, TENSORARENA_EVICT, &evict));
	EXPECT_TOLD(evict);
	MUST(!request(self->a.fd, TENSORARENA_DETACH, &detach));
	EXPECT_TOLD(detach);
}

/* Rows that are longer than the module's are zero where it knows nothing. */
TEST_F(leaks, statistics_tell_all_they_should_and_nothing_else)
{
	struct long_row {
		struct tensorarena_reader_stats known;
		uint64_t unknown[3];
	} rows[3];
	struct tensorarena_stats st =
		UNTOLD_BUT(tensorarena_stats, in_->nr_readers = 3;
			   in_->row_bytes = sizeof(rows[0]); in_->flags = 0;
			   in_->reserved = 0);
	uint64_t zero[3] = { 0 };

	put(&self->a, 10, 1);
	memset(rows, UNTOLD, sizeof(rows));
	st.readers = (uintptr_t)rows;
	MUST(!request(self->a.fd, TENSORARENA_STATS, &st));
	/* Ours, and an address by right. */
	st.readers = 0;
	EXPECT_TOLD(st);
	ASSERT_EQ(1, st.nr_readers);
	EXPECT_TOLD(rows[0]);
	EXPECT_EQ(0, memcmp(rows[0].unknown, zero, sizeof(zero)));
	/* And nothing beyond. */
	EXPECT_EQ(0, find_untold(&rows[1], sizeof(rows[1])));
}

TEST_F(leaks, a_readers_file_tells_all_it_should_and_nothing_else)
{
	struct tensorarena_borrow next = UNTOLD_BUT(
		tensorarena_borrow, in_->flags = 0; in_->reserved = 0);
	struct tensorarena_borrow borrow = next;
	struct tensorarena_detach detach =
		UNTOLD_BUT(tensorarena_detach, in_->flags = 0);
	struct tensorarena_ticket ticket = put(&self->a, 10, 1);

	MUST(!request(self->r.fd, TENSORARENA_NEXT, &next));
	EXPECT_TOLD(next);
	EXPECT_EQ(0, next.ticket.reserved);
	borrow.ticket = ticket;
	MUST(!request(self->r.fd, TENSORARENA_BORROW, &borrow));
	EXPECT_TOLD(borrow);
	MUST(!request(self->r.fd, TENSORARENA_DETACH, &detach));
	EXPECT_TOLD(detach);
}

/* Meta bytes of an older publication do not show behind those of a newer. */
TEST_F(leaks, meta_bytes_are_this_publications_or_zero)
{
	struct tensorarena_publish pub = {
		.nbytes = 1, .meta_bytes = TENSORARENA_META_BYTES
	};
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	size_t i;

	memset(pub.meta, 0x77, sizeof(pub.meta));
	MUST(!acquire(&self->a, 1, &acq));
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	MUST(!request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	MUST(!next(&self->r, &b) && !release(&self->r, &b.ticket));
	MUST(!acquire(&self->a, 1, &acq));
	ASSERT_EQ(pub.slot, acq.slot);
	pub.generation = acq.generation;
	/* The rest is the caller's memory, but not the reader's business. */
	pub.meta_bytes = 3;
	MUST(!request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	MUST(!next(&self->r, &b));
	EXPECT_EQ(3, b.meta_bytes);
	for (i = 0; i < sizeof(b.meta); i++)
		EXPECT_EQ(i < 3 ? 0x77 : 0, b.meta[i]);
}

TEST_F(leaks, a_refusal_tells_nothing)
{
	struct tensorarena_borrow next = UNTOLD_BUT(
		tensorarena_borrow, in_->flags = 0; in_->reserved = 0);
	struct tensorarena_borrow before = next;
	struct tensorarena_attach attach =
		UNTOLD_BUT(tensorarena_attach, in_->flags = 0;
			   in_->reserved = 0; in_->arena = self->a.made.arena);
	struct tensorarena_attach unchanged = attach;

	EXPECT_EQ(-EAGAIN, request(self->r.fd, TENSORARENA_NEXT, &next));
	EXPECT_EQ(0, memcmp(&next, &before, sizeof(next)));
	EXPECT_EQ(-EACCES, control_request(TENSORARENA_ATTACH, &attach));
	EXPECT_EQ(0, memcmp(&attach, &unchanged, sizeof(attach)));
}

/* "ffff" and twelve more digits, as pointers are printed. */
static bool shows_address(const char *text)
{
	for (; (text = strstr(text, "ffff")); text++)
		if (strspn(text, "0123456789abcdef") >= 16)
			return true;
	return false;
}

static bool file_shows_address(const char *dir, const char *name)
{
	char path[512], text[8192];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return shows_address(text);
}

TEST_F(leaks, no_file_shows_an_address)
{
	struct dirent *entry;
	char dir[128], name[32];
	DIR *files;
	int seen = 0;

	put(&self->a, 10, 1);
	reader_map(&self->r);
	EXPECT_TRUE(shows_address("x=ffff888000001000 "));
	EXPECT_FALSE(shows_address("ffffff"));

	arena_dir(dir, sizeof(dir), self->a.made.arena);
	files = opendir(dir);
	ASSERT_NE(NULL, files);
	while ((entry = readdir(files))) {
		if (entry->d_type != DT_REG)
			continue;
		EXPECT_FALSE(file_shows_address(dir, entry->d_name));
		seen++;
	}
	MUST(!closedir(files));
	EXPECT_LE(13, seen);
	snprintf(name, sizeof(name), "%d", self->a.fd);
	EXPECT_FALSE(file_shows_address("/proc/self/fdinfo", name));
	snprintf(name, sizeof(name), "%d", self->r.fd);
	EXPECT_FALSE(file_shows_address("/proc/self/fdinfo", name));
}

/* In a child, so that the rest keeps its privileges. */
static void be_nobody(int sock, void *arg)
{
	(void)arg;
	MUST(!setgid(65534) && !setuid(65534));
	tell(sock, open("/dev/tensorarena", O_RDWR) < 0 ? -errno : 0);
	tell(sock, open("/dev/tensorarena", O_RDONLY) < 0 ? -errno : 0);
}

TEST(the_node_is_not_for_everybody)
{
	struct child c = child_start(be_nobody, NULL, -1);

	EXPECT_EQ(-EACCES, must_hear(c.sock));
	EXPECT_EQ(-EACCES, must_hear(c.sock));
	EXPECT_TRUE(child_ended_well(&c));
}

TEST_HARNESS_MAIN
