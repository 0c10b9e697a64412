// SPDX-License-Identifier: GPL-2.0-only
/* The rules that every command follows: kinds of file, sizes, flags, memory. */
#include <kselftest_harness.h>
#include <stddef.h>

#include "arena.h"
#include "proc.h"

enum kind {
	CONTROL,
	WRITER,
	READER,
	KINDS
};

struct command {
	const char *name;
	unsigned long number;
	size_t size;
	enum kind kind;
	/* Where the fields are that must be zero; 0: there is no such field. */
	size_t flags, reserved;
};

#define COMMAND(n, type, k, f, r)                                              \
	{                                                                      \
		.name = #n, .number = TENSORARENA_##n,                         \
		.size = sizeof(struct tensorarena_##type), .kind = k,          \
		.flags = f, .reserved = r                                      \
	}
#define AT(type, field) offsetof(struct tensorarena_##type, field)

static const struct command commands[] = {
	COMMAND(CREATE, create, CONTROL, AT(create, flags),
		AT(create, reserved)),
	COMMAND(ATTACH, attach, CONTROL, AT(attach, flags),
		AT(attach, reserved)),
	COMMAND(ACQUIRE, acquire, WRITER, AT(acquire, flags),
		AT(acquire, reserved)),
	COMMAND(PUBLISH, publish, WRITER, AT(publish, flags),
		AT(publish, reserved)),
	COMMAND(ABORT, slot_ref, WRITER, AT(slot_ref, flags), 0),
	COMMAND(POPULATE, populate, WRITER, AT(populate, flags),
		AT(populate, reserved)),
	COMMAND(TRIM, trim, WRITER, AT(trim, flags), 0),
	COMMAND(EVICT, evict, WRITER, AT(evict, flags), 0),
	COMMAND(STATS, stats, WRITER, AT(stats, flags), 0),
	COMMAND(RETRACT, retract, WRITER, AT(retract, flags), 0),
	COMMAND(NEXT, borrow, READER, AT(borrow, flags), AT(borrow, reserved)),
	COMMAND(BORROW, borrow, READER, AT(borrow, flags),
		AT(borrow, reserved)),
	COMMAND(RELEASE, slot_ref, READER, AT(slot_ref, flags), 0),
	/* Last: it ends the reader. */
	COMMAND(DETACH, detach, READER, 0, 0),
};

/* As large as any structure, and room for one that has grown. */
union any {
	struct tensorarena_info info;
	struct tensorarena_create create;
	struct tensorarena_attach attach;
	struct tensorarena_acquire acquire;
	struct tensorarena_publish publish;
	struct tensorarena_slot_ref ref;
	struct tensorarena_populate populate;
	struct tensorarena_evict evict;
	struct tensorarena_retract retract;
	struct tensorarena_stats stats;
	struct tensorarena_borrow borrow;
	struct tensorarena_detach detach;
	uint8_t bytes[1024];
};

FIXTURE(abi)
{
	struct arena a;
	struct reader r;
	struct tensorarena_acquire writing;
	struct tensorarena_ticket held, unseen;
	int fd[KINDS];
};

/* One slot of each state; publications that the reader has, and has not, seen. */
FIXTURE_SETUP(abi)
{
	struct tensorarena_borrow b;

	arena_create(&self->a, 4, CHUNK, 0);
	reader_attach(&self->a, &self->r);
	self->held = put(&self->a, 10, 1);
	MUST(!next(&self->r, &b));
	self->unseen = put(&self->a, 10, 2);
	MUST(!acquire(&self->a, 10, &self->writing));
	self->fd[CONTROL] = control_open();
	self->fd[WRITER] = self->a.fd;
	self->fd[READER] = self->r.fd;
}

FIXTURE_TEARDOWN(abi)
{
	uint32_t i;

	for (i = 0; i < KINDS; i++)
		MUST(!close(self->fd[i]));
}

/* Arguments with which @c succeeds. */
static void good_args(const FIXTURE_DATA(abi) * self, const struct command *c,
		      union any *args)
{
	memset(args, 0, sizeof(*args));
	switch (c->number) {
	case TENSORARENA_CREATE:
		args->create = self->a.made;
		break;
	case TENSORARENA_ATTACH:
		args->attach = self->r.made;
		break;
	case TENSORARENA_ACQUIRE:
		args->acquire.nbytes = 1;
		break;
	case TENSORARENA_PUBLISH:
		args->publish.slot = self->writing.slot;
		args->publish.generation = self->writing.generation;
		break;
	case TENSORARENA_ABORT:
		args->ref.slot = self->writing.slot;
		args->ref.generation = self->writing.generation;
		break;
	case TENSORARENA_RETRACT:
		args->retract.slot = self->unseen.slot;
		args->retract.generation = self->unseen.generation;
		break;
	case TENSORARENA_EVICT:
		args->evict.reader = self->r.made.reader;
		break;
	case TENSORARENA_BORROW:
		args->borrow.ticket = self->held;
		break;
	case TENSORARENA_RELEASE:
		args->ref.slot = self->held.slot;
		args->ref.generation = self->held.generation;
		break;
	default:
		break;
	}
}

static unsigned long resized(unsigned long number, size_t size)
{
	return (number & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

/* What a refused command must not have changed. */
static bool same_state(const struct tensorarena_stats *a,
		       const struct tensorarena_stats *b)
{
	return a->free == b->free && a->writing == b->writing &&
	       a->published == b->published && a->nr_readers == b->nr_readers &&
	       a->released == b->released && a->attached == b->attached &&
	       a->detached == b->detached && a->evicted == b->evicted &&
	       a->retracted == b->retracted && a->puts == b->puts &&
	       a->unaddressed == b->unaddressed &&
	       a->allocated_bytes == b->allocated_bytes;
}

static bool abi_unchanged(const FIXTURE_DATA(abi) * self,
			  const struct tensorarena_stats *before)
{
	const struct tensorarena_stats after = stats_get(&self->a);

	return same_state(before, &after) && poll_now(self->r.fd) == POLLIN &&
	       info_get().arenas == 1;
}

static bool answers(enum kind kind, const struct command *c)
{
	return kind == c->kind ||
	       (kind == WRITER && c->number == TENSORARENA_DETACH);
}

TEST_F(abi, a_command_on_the_wrong_kind_of_file_is_ENOTTY)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	union any args;
	size_t i;
	int kind;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		for (kind = 0; kind < KINDS; kind++) {
			if (answers(kind, &commands[i]))
				continue;
			good_args(self, &commands[i], &args);
			EXPECT_EQ(-ENOTTY, request(self->fd[kind],
						   commands[i].number, &args))
			{
				TH_LOG("%s", commands[i].name);
			}
		}
	}
	EXPECT_EQ(-ENOTTY, request(self->a.fd, TENSORARENA_INFO, &args));
	EXPECT_EQ(-ENOTTY, request(self->r.fd, TENSORARENA_INFO, &args));
	EXPECT_TRUE(abi_unchanged(self, &before));
}

TEST_F(abi, an_unknown_command_is_ENOTTY)
{
	static const unsigned long unknown[] = {
		_IOWR(TENSORARENA_IOC_MAGIC, 0x7f, struct tensorarena_info),
		_IOWR(TENSORARENA_IOC_MAGIC + 1, 0x10,
		      struct tensorarena_acquire),
		_IO(TENSORARENA_IOC_MAGIC, 0x16),
		_IOR(TENSORARENA_IOC_MAGIC, 0x16, struct tensorarena_stats),
		0,
	};
	union any args = { 0 };
	size_t i;
	int kind;

	for (i = 0; i < ARRAY_SIZE(unknown); i++)
		for (kind = 0; kind < KINDS; kind++)
			EXPECT_EQ(-ENOTTY,
				  request(self->fd[kind], unknown[i], &args));
}

TEST_F(abi, unknown_flags_and_reserved_fields_are_EINVAL)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	const uint32_t bit = 1U << 31;
	union any args;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];

		good_args(self, c, &args);
		/* A flags field at 0 is real where there is only DETACH's. */
		if (c->flags || c->number == TENSORARENA_DETACH) {
			memcpy(args.bytes + c->flags, &bit, sizeof(bit));
			EXPECT_EQ(-EINVAL,
				  request(self->fd[c->kind], c->number, &args))
			{
				TH_LOG("%s, flag", c->name);
			}
		}
		good_args(self, c, &args);
		if (c->reserved) {
			memcpy(args.bytes + c->reserved, &bit, sizeof(bit));
			EXPECT_EQ(-EINVAL,
				  request(self->fd[c->kind], c->number, &args))
			{
				TH_LOG("%s, reserved", c->name);
			}
		}
	}
	memset(&args, 0, sizeof(args));
	args.info.flags = 1ULL << 40;
	EXPECT_EQ(-EINVAL, control_request(TENSORARENA_INFO, &args));
	memset(&args, 0, sizeof(args));
	args.info.reserved = 1;
	EXPECT_EQ(-EINVAL, control_request(TENSORARENA_INFO, &args));
	args.borrow = (struct tensorarena_borrow){ .ticket = self->held };
	args.borrow.ticket.reserved = 1;
	EXPECT_EQ(-EINVAL, request(self->r.fd, TENSORARENA_BORROW, &args));
	EXPECT_TRUE(abi_unchanged(self, &before));
}

TEST_F(abi, a_short_structure_is_EINVAL)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	union any args;
	size_t i, less;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];
		const size_t cut[] = { 1, 4, 8, c->size };

		for (less = 0; less < ARRAY_SIZE(cut); less++) {
			good_args(self, c, &args);
			EXPECT_EQ(-EINVAL, request(self->fd[c->kind],
						   resized(c->number,
							   c->size - cut[less]),
						   &args))
			{
				TH_LOG("%s, %zu bytes short", c->name,
				       cut[less]);
			}
		}
	}
	EXPECT_TRUE(abi_unchanged(self, &before));
}

TEST_F(abi, a_longer_structure_is_E2BIG_unless_the_excess_is_zero)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	const size_t more = 24;
	union any args;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];

		good_args(self, c, &args);
		args.bytes[c->size + more - 1] = 1;
		EXPECT_EQ(-E2BIG,
			  request(self->fd[c->kind],
				  resized(c->number, c->size + more), &args))
		{
			TH_LOG("%s", c->name);
		}
	}
	EXPECT_TRUE(abi_unchanged(self, &before));

	memset(&args, 0, sizeof(args));
	args.acquire.nbytes = 1;
	EXPECT_EQ(0, request(self->a.fd,
			     resized(TENSORARENA_ACQUIRE,
				     sizeof(args.acquire) + more),
			     &args));
	EXPECT_EQ(1, args.acquire.generation);
	memset(&args, 0, sizeof(args));
	EXPECT_EQ(0,
		  request(self->r.fd,
			  resized(TENSORARENA_NEXT, sizeof(args.borrow) + more),
			  &args));
	EXPECT_EQ(self->unseen.generation, args.borrow.ticket.generation);
	memset(&args, 0, sizeof(args));
	EXPECT_EQ(0, request(self->r.fd,
			     resized(TENSORARENA_DETACH,
				     sizeof(args.detach) + more),
			     &args));
	EXPECT_EQ(2, args.detach.freed);
}

TEST_F(abi, a_bad_pointer_is_EFAULT_and_nothing_happens)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];

		EXPECT_EQ(-EFAULT, request(self->fd[c->kind], c->number, NULL));
		EXPECT_EQ(-EFAULT, request(self->fd[c->kind], c->number,
					   (void *)~0xfffUL));
	}
	EXPECT_TRUE(abi_unchanged(self, &before));
}

/* The answer cannot be delivered: what was done for it must be undone. */
TEST_F(abi, an_answer_that_cannot_be_written_loses_nothing)
{
	static const unsigned long answering[] = { TENSORARENA_CREATE,
						   TENSORARENA_ATTACH,
						   TENSORARENA_ACQUIRE,
						   TENSORARENA_NEXT };
	const struct tensorarena_stats before = stats_get(&self->a);
	int lowest = dup(0);
	union any *args;
	size_t i, j;

	MUST(lowest >= 0 && !close(lowest));
	args = mmap(NULL, sizeof(*args), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(args != MAP_FAILED);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];

		for (j = 0; j < ARRAY_SIZE(answering); j++) {
			if (c->number != answering[j])
				continue;
			good_args(self, c, args);
			MUST(!mprotect(args, sizeof(*args), PROT_READ));
			EXPECT_EQ(-EFAULT,
				  request(self->fd[c->kind], c->number, args))
			{
				TH_LOG("%s", c->name);
			}
			MUST(!mprotect(args, sizeof(*args),
				       PROT_READ | PROT_WRITE));
		}
	}
	/* An attempt to attach may leave its traces in the counters only. */
	EXPECT_EQ(before.free, stats_get(&self->a).free);
	EXPECT_EQ(before.nr_readers, stats_get(&self->a).nr_readers);
	EXPECT_EQ(POLLIN, poll_now(self->r.fd));
	EXPECT_EQ(1, info_get().arenas);
	/* No descriptor was installed that nobody knows of. */
	EXPECT_EQ(lowest, dup(0));
}

TEST_F(abi, a_retract_that_cannot_say_so_has_happened)
{
	const struct tensorarena_stats before = stats_get(&self->a);
	union any *args = mmap(NULL, sizeof(*args), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(args != MAP_FAILED);
	args->retract.slot = self->unseen.slot;
	args->retract.generation = self->unseen.generation;
	MUST(!mprotect(args, sizeof(*args), PROT_READ));
	EXPECT_EQ(-EFAULT, request(self->a.fd, TENSORARENA_RETRACT, args));
	EXPECT_EQ(before.free + 1, stats_get(&self->a).free);
	EXPECT_EQ(before.retracted + 1, stats_get(&self->a).retracted);
	EXPECT_EQ(-ESTALE, request(self->a.fd, TENSORARENA_RETRACT, args));
}

TEST_F(abi, lists_at_a_bad_address_are_EFAULT)
{
	struct tensorarena_publish pub = {
		.slot = self->writing.slot,
		.generation = self->writing.generation,
		.readers = 8,
		.nr_readers = 1,
	};
	struct tensorarena_stats st = {
		.readers = 8,
		.nr_readers = 1,
		.row_bytes = sizeof(struct tensorarena_reader_stats),
	};

	EXPECT_EQ(-EFAULT, request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	EXPECT_EQ(-EFAULT, request(self->a.fd, TENSORARENA_STATS, &st));
	st.row_bytes--;
	EXPECT_EQ(-EINVAL, request(self->a.fd, TENSORARENA_STATS, &st));
	pub.nr_readers = TENSORARENA_MAX_READERS + 1;
	EXPECT_EQ(-EINVAL, request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	EXPECT_EQ(1, stats_get(&self->a).writing);
}

TEST_F(abi, a_flag_known_but_not_honoured_is_EOPNOTSUPP)
{
	const uint64_t features = info_get().features;
	struct tensorarena_publish pub = {
		.slot = self->writing.slot,
		.generation = self->writing.generation,
		.flags = TENSORARENA_PUBLISH_STREAM,
	};
	struct arena other;

	if (!(features & TENSORARENA_FEATURE_STREAM))
		EXPECT_EQ(-EOPNOTSUPP,
			  request(self->a.fd, TENSORARENA_PUBLISH, &pub));
	if (!(features & TENSORARENA_FEATURE_CONTIGUOUS))
		EXPECT_EQ(-EOPNOTSUPP,
			  arena_try(&other, 1, CHUNK, 0,
				    TENSORARENA_CREATE_CONTIGUOUS));
	EXPECT_EQ(1, stats_get(&self->a).writing);
}

TEST(info_describes_the_module)
{
	const struct tensorarena_info before = info_get();
	struct tensorarena_info after;
	struct arena a;

	EXPECT_EQ(TENSORARENA_MAX_SLOTS, before.max_slots);
	EXPECT_EQ(TENSORARENA_MAX_READERS, before.max_readers);
	EXPECT_TRUE(before.features & TENSORARENA_FEATURE_REVOKE);
	EXPECT_TRUE(before.features & TENSORARENA_FEATURE_HUGE);
	EXPECT_EQ(0, before.ctl_bytes);
	EXPECT_GT(before.ctl_offset, before.max_total_bytes);
	EXPECT_GT(before.max_arena_bytes, 0);
	EXPECT_LE(before.max_arena_bytes, before.max_total_bytes);
	EXPECT_GT(before.max_arenas, 0);
	EXPECT_GT(before.max_arenas_per_uid, 0);

	arena_create(&a, 3, CHUNK + 1, 0);
	after = info_get();
	EXPECT_EQ(before.arenas + 1, after.arenas);
	EXPECT_EQ(before.total_bytes + 3 * 2 * CHUNK, after.total_bytes);
	EXPECT_EQ(2 * CHUNK, a.made.stride);
	MUST(!close(a.fd));
	after = info_get();
	EXPECT_EQ(before.arenas, after.arenas);
	EXPECT_EQ(before.total_bytes, after.total_bytes);
}

TEST(create_checks_its_ranges)
{
	struct arena a;
	int node;

	EXPECT_EQ(-EINVAL, arena_try(&a, 0, CHUNK, 0, 0));
	EXPECT_EQ(-EINVAL, arena_try(&a, 1, 0, 0, 0));
	EXPECT_EQ(-EINVAL, arena_try(&a, 257, 1, 0, 0));
	EXPECT_EQ(-EINVAL, arena_try(&a, ~0U, 1, 0, 0));
	EXPECT_EQ(-EINVAL, arena_try(&a, 1, CHUNK, 65, 0));
	EXPECT_EQ(-EINVAL, arena_try(&a, 1, CHUNK, ~0U, 0));
	/* Whether absurd or just too much, never rounded to a small number. */
	EXPECT_NE(0, arena_try(&a, 2, 1ULL << 63, 0, 0));
	EXPECT_NE(0, arena_try(&a, 256, ~0ULL, 0, 0));
	for (node = -2; node <= 4096; node += 4098) {
		struct tensorarena_create args = {
			.slot_bytes = 1,
			.slots = 1,
			.node = node,
		};

		EXPECT_EQ(-EINVAL, control_request(TENSORARENA_CREATE, &args));
	}
	EXPECT_EQ(0, info_get().arenas);
}

TEST(files_are_close_on_exec_and_only_take_commands)
{
	struct reader r;
	struct arena a;
	char byte = 0;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	EXPECT_EQ(FD_CLOEXEC, fcntl(a.fd, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(r.fd, F_GETFD));
	EXPECT_EQ(O_RDWR, fcntl(a.fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(O_RDONLY, fcntl(r.fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(-1, read(a.fd, &byte, 1));
	EXPECT_EQ(-1, write(a.fd, &byte, 1));
	EXPECT_EQ(-1, read(r.fd, &byte, 1));
	EXPECT_EQ(-1, write(r.fd, &byte, 1));
	EXPECT_EQ(-1, ftruncate(a.fd, 0));
}

TEST(attach_tells_about_the_arena_and_asks_for_the_secret)
{
	struct reader r, second;
	struct arena a, wrong;
	int byte;

	MUST(!arena_try(&a, 3, CHUNK + 1, 1,
			TENSORARENA_CREATE_WRITABLE_READERS));
	reader_attach(&a, &r);
	EXPECT_EQ(TENSORARENA_CREATE_WRITABLE_READERS, r.made.arena_flags);
	EXPECT_EQ(CHUNK + 1, r.made.slot_bytes);
	EXPECT_EQ(2 * CHUNK, r.made.stride);
	EXPECT_EQ(3, r.made.slots);
	EXPECT_EQ(0, r.made.seat);
	EXPECT_NE(0, r.made.reader);

	for (byte = 0; byte < TENSORARENA_COOKIE_BYTES; byte++) {
		wrong = a;
		wrong.made.cookie[byte] ^= 1;
		EXPECT_EQ(-EACCES, attach(&wrong, &second));
	}
	wrong = a;
	wrong.made.arena++;
	EXPECT_EQ(-EACCES, attach(&wrong, &second));
	wrong.made.arena = 0;
	EXPECT_EQ(-EACCES, attach(&wrong, &second));
	EXPECT_EQ(1, stats_get(&a).nr_readers);
}

TEST(arenas_never_share_an_id_or_a_secret)
{
	struct arena a, b;

	arena_create(&a, 1, 1, 0);
	MUST(!close(a.fd));
	arena_create(&b, 1, 1, 0);
	EXPECT_NE(a.made.arena, b.made.arena);
	EXPECT_NE(0,
		  memcmp(a.made.cookie, b.made.cookie, sizeof(a.made.cookie)));
}

TEST_HARNESS_MAIN
