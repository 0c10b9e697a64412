// SPDX-License-Identifier: MIT
/* The uAPI's commands, answered as the module would. */
#include <poll.h>
#include <signal.h>

#include "fixture.h"

static void a_put_arrives_by_next_and_by_ticket(void **state)
{
	struct tensorarena_borrow b, again;
	struct tensorarena_ticket t;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	t = put(&arena, 3 * MIB, 0xa5);
	assert_int_equal(next(&r, &b), 0);
	assert_memory_equal(&b.ticket, &t, sizeof(t));
	assert_int_equal(b.offset, t.slot * arena.args.stride);
	assert_int_equal(b.meta_bytes, 1);
	assert_int_equal(b.meta[0], 0x5a);
	assert_int_equal(b.meta[1], 0);
	assert_int_equal(b.wanted, 0);
	assert_true(sees(&r, &b, 0xa5));
	/* As often as one likes while it is held. */
	assert_int_equal(borrow(&r, &t, &again), 0);
	assert_memory_equal(&again, &b, sizeof(b));
	assert_int_equal(next(&r, &again), -EAGAIN);
	assert_int_equal(stats(&arena).published, 1);
	assert_int_equal(release(&r, &t), 0);
	assert_int_equal(release(&r, &t), -ESTALE);
	assert_int_equal(borrow(&r, &t, &again), -ESTALE);
	assert_int_equal(stats(&arena).free, 4);
	reader_close(&r);
	arena_close(&arena);
}

static void sizes_from_nothing_to_a_full_slot(void **state)
{
	static const uint64_t sizes[] = { 0,	   1,		2 * MIB - 1,
					  2 * MIB, 2 * MIB + 1, 4 * MIB };
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	size_t i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		put(&arena, sizes[i], (uint8_t)(i + 1));
		assert_int_equal(next(&r, &b), 0);
		assert_int_equal(b.ticket.nbytes, sizes[i]);
		assert_true(sees(&r, &b, (uint8_t)(i + 1)));
		assert_int_equal(release(&r, &b.ticket), 0);
	}
	reader_close(&r);
	arena_close(&arena);
}

static void the_writer_is_declined_and_never_waits(void **state)
{
	struct tensorarena_acquire acq;
	struct tensorarena_stats st;
	struct arena arena;
	int i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	assert_int_equal(acquire(&arena, 4 * MIB + 1, &acq), -EMSGSIZE);
	for (i = 0; i < 4; i++) {
		assert_true(writer_ready(&arena));
		put(&arena, 1, 0);
	}
	assert_false(writer_ready(&arena));
	assert_int_equal(acquire(&arena, 1, &acq), -EAGAIN);
	st = stats(&arena);
	assert_int_equal(st.declined_oversize, 1);
	assert_int_equal(st.declined_no_slot, 1);
	assert_int_equal(st.puts, 4);
	arena_close(&arena);
}

static void a_late_reader_gets_what_its_seat_was_sent(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader first, second;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	put(&arena, 100, 1);
	reader_open(&arena, &first);
	/* Its poll says so from the start. */
	assert_true(reader_ready(&first));
	reader_open(&arena, &second);
	assert_int_equal(next(&first, &b), 0);
	assert_true(sees(&first, &b, 1));
	assert_int_equal(next(&second, &b), -EAGAIN);
	assert_int_equal(borrow(&second, &b.ticket, &b), -ESTALE);
	reader_close(&first);
	reader_close(&second);
	arena_close(&arena);
}

static void subsets_address_only_their_readers(void **state)
{
	struct tensorarena_ticket t = { 0 };
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct tensorarena_publish pub;
	struct arena arena;
	struct reader a, c;
	uint64_t ids[1], stale[1] = { 99 };

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &a);
	reader_open(&arena, &c);
	assert_int_equal(acquire(&arena, 10, &acq), 0);
	assert_int_equal(acq.open, 2);
	pub = (struct tensorarena_publish){
		.generation = acq.generation,
		.slot = acq.slot,
		.nbytes = 10,
		.readers = (uintptr_t)stale,
		.nr_readers = 1,
	};
	assert_int_equal(writer_call(&arena, TENSORARENA_PUBLISH, &pub),
			 -ESTALE);
	ids[0] = c.args.reader;
	pub.readers = (uintptr_t)ids;
	assert_int_equal(writer_call(&arena, TENSORARENA_PUBLISH, &pub), 0);
	assert_int_equal(pub.addressed, 1);
	t.arena = arena.args.arena;
	t.generation = acq.generation;
	t.nbytes = 10;
	t.slot = acq.slot;
	assert_int_equal(next(&a, &b), -EAGAIN);
	assert_int_equal(borrow(&a, &t, &b), -ENXIO);
	assert_int_equal(release(&a, &t), -ENXIO);
	assert_int_equal(borrow(&c, &t, &b), 0);
	reader_close(&a);
	reader_close(&c);
	arena_close(&arena);
}

static void every_field_of_a_ticket_is_checked(void **state)
{
	struct tensorarena_ticket t, bad;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	t = put(&arena, 10, 1);
	bad = t;
	bad.arena++;
	assert_int_equal(borrow(&r, &bad, &b), -ESTALE);
	bad = t;
	bad.generation++;
	assert_int_equal(borrow(&r, &bad, &b), -ESTALE);
	bad = t;
	bad.nbytes--;
	assert_int_equal(borrow(&r, &bad, &b), -ESTALE);
	bad = t;
	bad.slot = 3;
	assert_int_equal(borrow(&r, &bad, &b), -ESTALE);
	bad.slot = 4;
	assert_int_equal(borrow(&r, &bad, &b), -EINVAL);
	bad.slot = ~0u;
	assert_int_equal(release(&r, &bad), -EINVAL);
	bad = t;
	bad.reserved = 1;
	assert_int_equal(borrow(&r, &bad, &b), -EINVAL);
	assert_int_equal(borrow(&r, &t, &b), 0);
	reader_close(&r);
	arena_close(&arena);
}

#define ASSERT_INVALID(call, cmd, type, field, value)                          \
	do {                                                                   \
		struct type args_ = { .field = (value) };                      \
		assert_int_equal(call, -EINVAL);                               \
	} while (0)
#define WRITER_INVALID(cmd, type, field, value)                                \
	ASSERT_INVALID(writer_call(&arena, cmd, &args_), cmd, type, field,     \
		       value)
#define READER_INVALID(cmd, type, field, value)                                \
	ASSERT_INVALID(reader_call(&r, cmd, &args_), cmd, type, field, value)

static void unknown_flags_and_reserved_fields_are_refused(void **state)
{
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	WRITER_INVALID(TENSORARENA_ACQUIRE, tensorarena_acquire, flags, 1);
	WRITER_INVALID(TENSORARENA_ACQUIRE, tensorarena_acquire, reserved, 1);
	WRITER_INVALID(TENSORARENA_PUBLISH, tensorarena_publish, flags, 2);
	WRITER_INVALID(TENSORARENA_PUBLISH, tensorarena_publish, reserved, 1);
	WRITER_INVALID(TENSORARENA_PUBLISH, tensorarena_publish, meta_bytes,
		       TENSORARENA_META_BYTES + 1);
	WRITER_INVALID(TENSORARENA_PUBLISH, tensorarena_publish, nr_readers,
		       TENSORARENA_MAX_READERS + 1);
	WRITER_INVALID(TENSORARENA_ABORT, tensorarena_slot_ref, flags, 1);
	WRITER_INVALID(TENSORARENA_ABORT, tensorarena_slot_ref, slot, 4);
	WRITER_INVALID(TENSORARENA_POPULATE, tensorarena_populate, flags, 1);
	WRITER_INVALID(TENSORARENA_POPULATE, tensorarena_populate, reserved, 1);
	WRITER_INVALID(TENSORARENA_POPULATE, tensorarena_populate, slots, 5);
	WRITER_INVALID(TENSORARENA_POPULATE, tensorarena_populate, nbytes,
		       4 * MIB + 1);
	WRITER_INVALID(TENSORARENA_TRIM, tensorarena_trim, flags, 1);
	WRITER_INVALID(TENSORARENA_EVICT, tensorarena_evict, flags, 2);
	WRITER_INVALID(TENSORARENA_STATS, tensorarena_stats, flags, 1);
	WRITER_INVALID(TENSORARENA_STATS, tensorarena_stats, reserved, 1);
	WRITER_INVALID(TENSORARENA_DETACH, tensorarena_detach, flags, 1);
	READER_INVALID(TENSORARENA_NEXT, tensorarena_borrow, flags, 1);
	READER_INVALID(TENSORARENA_NEXT, tensorarena_borrow, reserved, 1);
	READER_INVALID(TENSORARENA_BORROW, tensorarena_borrow, flags, 1);
	READER_INVALID(TENSORARENA_RELEASE, tensorarena_slot_ref, flags, 1);
	READER_INVALID(TENSORARENA_DETACH, tensorarena_detach, flags, 1);
	reader_close(&r);
	arena_close(&arena);
}

static void commands_of_the_other_end_are_unknown(void **state)
{
	struct tensorarena_borrow b = { 0 };
	struct tensorarena_stats st = { 0 };
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	assert_int_equal(writer_call(&arena, TENSORARENA_NEXT, &b), -ENOTTY);
	assert_int_equal(reader_call(&r, TENSORARENA_STATS, &st), -ENOTTY);
	assert_int_equal(r.port->ops->connect(r.port), -EOPNOTSUPP);
	reader_close(&r);
	arena_close(&arena);
}

static int create_with(uint32_t flags, int node, uint64_t slot_bytes,
		       uint32_t slots, uint32_t seats, uint32_t reserved)
{
	struct arena arena;
	int err;

	arena_init(&arena, seats);
	arena.args.flags = flags;
	arena.args.node = node;
	arena.args.slot_bytes = slot_bytes;
	arena.args.slots = slots;
	arena.args.reserved = reserved;
	err = ta_engine_embedded.create(&arena.options, &arena.args,
					&arena.handle, &arena.port);
	if (!err)
		arena_close(&arena);
	return err;
}

static void creation_checks_what_it_is_given(void **state)
{
	(void)state;
	assert_int_equal(create_with(0, -1, 1, 1, 0, 0), 0);
	assert_int_equal(create_with(0, -1, 1, 256, 64, 0), 0);
	assert_int_equal(create_with(0, -1, 0, 1, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, 1, 257, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, 1, 1, 65, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, 1, 1, 0, 1), -EINVAL);
	assert_int_equal(create_with(16, -1, 1, 1, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -2, 1, 1, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, UINT64_MAX, 1, 0, 0), -EINVAL);
	assert_int_equal(create_with(0, -1, INT64_MAX, 2, 0, 0), -EINVAL);
	assert_int_equal(create_with(TENSORARENA_CREATE_CONTIGUOUS |
					     TENSORARENA_CREATE_FALLBACK_SMALL,
				     -1, 1, 1, 0, 0),
			 -EINVAL);
	/* More than there are addresses for. */
	assert_int_equal(create_with(0, -1, 1ull << 50, 256, 0, 0), -ENOMEM);
	assert_int_equal(create_with(0, 0, 1, 1, 0, 0), -EOPNOTSUPP);
	assert_int_equal(create_with(TENSORARENA_CREATE_CONTIGUOUS, -1, 1, 1, 0,
				     0),
			 -EOPNOTSUPP);
	assert_int_equal(create_with(TENSORARENA_CREATE_FALLBACK_SMALL, -1, 1,
				     1, 0, 0),
			 -EOPNOTSUPP);
	assert_int_equal(create_with(TENSORARENA_CREATE_NODE_STRICT, -1, 1, 1,
				     0, 0),
			 -EOPNOTSUPP);
}

static void streams_are_not_supported(void **state)
{
	struct tensorarena_publish pub = { .flags =
						   TENSORARENA_PUBLISH_STREAM };
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	arena_open(&arena);
	assert_int_equal(writer_call(&arena, TENSORARENA_PUBLISH, &pub),
			 -EOPNOTSUPP);
	arena_close(&arena);
}

static void an_unaddressed_publication_frees_its_slot(void **state)
{
	struct tensorarena_acquire acq;
	struct tensorarena_ticket t;
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	arena_open(&arena);
	assert_int_equal(acquire(&arena, 10, &acq), 0);
	assert_int_equal(acq.open, 0);
	assert_int_equal(publish(&arena, &acq, 10, &t), 0);
	assert_int_equal(publish(&arena, &acq, 10, &t), -ESTALE);
	assert_int_equal(stats(&arena).free, 4);
	assert_int_equal(stats(&arena).unaddressed, 1);
	arena_close(&arena);
}

static void an_aborted_slot_is_free_again(void **state)
{
	struct tensorarena_slot_ref ref;
	struct tensorarena_acquire acq;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	assert_int_equal(acquire(&arena, 10, &acq), 0);
	ref = (struct tensorarena_slot_ref){
		.slot = acq.slot,
		.generation = acq.generation,
	};
	assert_int_equal(writer_call(&arena, TENSORARENA_ABORT, &ref), 0);
	assert_int_equal(writer_call(&arena, TENSORARENA_ABORT, &ref), -ESTALE);
	assert_int_equal(stats(&arena).aborted, 1);
	assert_int_equal(stats(&arena).free, 4);
	arena_close(&arena);
}

static void an_evicted_reader_is_told_so(void **state)
{
	struct tensorarena_evict evict = { 0 };
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r, other;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	reader_open(&arena, &other);
	put(&arena, 10, 7);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(next(&other, &b), 0);
	assert_int_equal(release(&other, &b.ticket), 0);
	settle(&other);
	assert_false(reader_ready(&r));
	evict.reader = r.args.reader;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	assert_int_equal(evict.freed, 1);
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict),
			 -ESTALE);
	settle(&other);
	assert_true(reader_ready(&r));
	assert_int_equal(next(&r, &b), -EOWNERDEAD);
	assert_int_equal(release(&r, &b.ticket), -EOWNERDEAD);
	assert_int_equal(detach(&r), -EOWNERDEAD);
	assert_int_equal(stats(&arena).evicted, 1);
	assert_int_equal(stats(&arena).nr_readers, 1);
	/* Leaving later is no second departure. */
	reader_close(&r);
	settle(&other);
	assert_int_equal(stats(&arena).detached, 0);
	assert_int_equal(stats(&arena).reclaimed_dead_readers, 0);
	reader_close(&other);
	arena_close(&arena);
}

static void an_evicted_readers_seat_is_not_shared_with_the_next(void **state)
{
	struct tensorarena_evict evict = { 0 };
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader old, new;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &old);
	evict.reader = old.args.reader;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	reader_open(&arena, &new);
	assert_int_equal(new.args.seat, old.args.seat);
	assert_int_not_equal(new.args.reader, old.args.reader);
	put(&arena, 10, 7);
	assert_int_equal(next(&old, &b), -EOWNERDEAD);
	reader_close(&old);
	assert_int_equal(next(&new, &b), 0);
	assert_int_equal(stats(&arena).nr_readers, 1);
	reader_close(&new);
	arena_close(&arena);
}

static void an_unclaimed_seat_can_be_closed(void **state)
{
	struct tensorarena_evict evict = { .flags = TENSORARENA_EVICT_SEAT };
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 10, 7);
	assert_int_equal(detach(&r), 0);
	evict.reader = 0;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict),
			 -ESTALE);
	evict.reader = 64;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict),
			 -EINVAL);
	evict.reader = 1;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	assert_int_equal(evict.freed, 1);
	assert_int_equal(stats(&arena).nr_readers, 0);
	reader_close(&r);
	arena_close(&arena);
}

static void a_detached_reader_is_done(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 10, 7);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(detach(&r), 0);
	assert_int_equal(stats(&arena).free, 4);
	assert_true(reader_ready(&r));
	/* The mapping is gone as well. */
	assert_int_equal(touch(r.port->base + b.offset), SIGBUS);
	assert_int_equal(next(&r, &b), -ESHUTDOWN);
	assert_int_equal(release(&r, &b.ticket), -ESHUTDOWN);
	assert_int_equal(detach(&r), -ESHUTDOWN);
	reader_close(&r);
	assert_int_equal(stats(&arena).detached, 1);
	arena_close(&arena);
}

static void closing_a_reader_frees_what_it_held_at_once(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 10, 7);
	assert_int_equal(next(&r, &b), 0);
	reader_close(&r);
	assert_int_equal(stats(&arena).free, 4);
	assert_int_equal(stats(&arena).detached, 1);
	assert_int_equal(stats(&arena).reclaimed_dead_readers, 0);
	arena_close(&arena);
}

static void after_the_writer_views_stay_and_nothing_comes(void **state)
{
	struct tensorarena_borrow held, b;
	struct tensorarena_ticket t;
	struct arena arena;
	struct reader r, late;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 3 * MIB, 9);
	assert_int_equal(next(&r, &held), 0);
	t = put(&arena, 10, 1);
	arena_close(&arena);
	assert_true(reader_ready(&r));
	assert_true(sees(&r, &held, 9));
	assert_int_equal(next(&r, &b), -EPIPE);
	assert_int_equal(borrow(&r, &t, &b), -EPIPE);
	assert_int_equal(release(&r, &held.ticket), 0);
	t.slot = 4;
	assert_int_equal(release(&r, &t), -EINVAL);
	assert_int_equal(attach(&arena, -1, &late), -ECONNREFUSED);
	assert_true(sees(&r, &held, 9));
	reader_close(&r);
}

static void detaching_from_a_closed_arena_succeeds(void **state)
{
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	arena_close(&arena);
	assert_int_equal(detach(&r), 0);
	assert_int_equal(detach(&r), -ESHUTDOWN);
	reader_close(&r);
}

static void a_detached_writer_leaves_what_is_published(void **state)
{
	struct tensorarena_populate pop = { .nbytes = 1, .slots = 4 };
	struct tensorarena_detach args = { 0 };
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_slot_ref ref = { 0 };
	struct tensorarena_evict evict = { .reader = 1 };
	struct tensorarena_stats st = { 0 };
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct tensorarena_ticket t;
	struct arena arena;
	struct reader r, late;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, MIB, 7);
	assert_int_equal(acquire(&arena, 1, &acq), 0);
	assert_int_equal(writer_call(&arena, TENSORARENA_DETACH, &args), 0);
	/* The slot that was being written. */
	assert_int_equal(args.freed, 1);
	assert_int_equal(touch(writer_data(&arena, 0)), SIGBUS);
	assert_true(writer_ready(&arena));
	assert_int_equal(publish(&arena, &acq, 1, &t), -ESHUTDOWN);
	assert_int_equal(acquire(&arena, 1, &acq), -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_ABORT, &ref),
			 -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop),
			 -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim),
			 -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict),
			 -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_STATS, &st),
			 -ESHUTDOWN);
	assert_int_equal(writer_call(&arena, TENSORARENA_DETACH, &args),
			 -ESHUTDOWN);
	assert_int_equal(attach(&arena, -1, &late), -EPIPE);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 7));
	assert_int_equal(release(&r, &b.ticket), 0);
	assert_int_equal(next(&r, &b), -EPIPE);
	assert_true(reader_ready(&r));
	reader_close(&r);
	arena_close(&arena);
}

static void poll_is_level_and_says_what_next_would(void **state)
{
	struct tensorarena_borrow b;
	struct tensorarena_ticket t;
	struct arena arena;
	struct reader r, other;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	reader_open(&arena, &other);
	settle(&other);
	assert_false(reader_ready(&r));
	t = put(&arena, 10, 1);
	put(&arena, 10, 2);
	settle(&other);
	assert_true(reader_ready(&r));
	assert_true(reader_ready(&r));
	assert_int_equal(next(&r, &b), 0);
	assert_true(reader_ready(&r));
	assert_int_equal(next(&r, &b), 0);
	assert_false(reader_ready(&r));
	assert_int_equal(release(&r, &t), 0);
	assert_false(reader_ready(&r));
	/* Released unseen: nothing is left to see. */
	t = put(&arena, 10, 3);
	settle(&other);
	assert_true(reader_ready(&r));
	assert_int_equal(release(&r, &t), 0);
	assert_false(reader_ready(&r));
	reader_close(&r);
	reader_close(&other);
	arena_close(&arena);
}

static void the_sixty_fifth_reader_is_refused(void **state)
{
	struct reader r[TENSORARENA_MAX_READERS + 1];
	struct arena arena;
	uint32_t i;

	(void)state;
	arena_init(&arena, 0);
	arena_open(&arena);
	for (i = 0; i < TENSORARENA_MAX_READERS; i++)
		reader_open(&arena, &r[i]);
	assert_int_equal(attach(&arena, -1, &r[i]), -EUSERS);
	reader_close(&r[7]);
	assert_int_equal(attach(&arena, -1, &r[7]), 0);
	assert_int_equal(r[7].args.seat, 7);
	for (i = 0; i < TENSORARENA_MAX_READERS; i++)
		reader_close(&r[i]);
	arena_close(&arena);
}

static void statistics_name_each_open_seat(void **state)
{
	struct tensorarena_reader_stats rows[3];
	struct tensorarena_stats st = { .row_bytes = sizeof(rows[0]) };
	struct arena arena;
	struct reader r;

	(void)state;
	memset(rows, 0xff, sizeof(rows));
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 10, 1);
	st.nr_readers = 1;
	assert_int_equal(writer_call(&arena, TENSORARENA_STATS, &st), -EFAULT);
	st.readers = (uintptr_t)rows;
	st.row_bytes--;
	assert_int_equal(writer_call(&arena, TENSORARENA_STATS, &st), -EINVAL);
	st.row_bytes++;
	st.nr_readers = 3;
	assert_int_equal(writer_call(&arena, TENSORARENA_STATS, &st), 0);
	assert_int_equal(st.nr_readers, 2);
	assert_int_equal(st.slots, 4);
	assert_int_equal(st.allocated_bytes, 2 * MIB);
	assert_int_not_equal(st.oldest_ns, 0);
	assert_int_equal(rows[0].reader, r.args.reader);
	assert_int_equal(rows[0].pid, getpid());
	assert_int_equal(rows[0].pending, 1);
	assert_int_not_equal(rows[0].oldest_ns, 0);
	assert_int_equal(rows[1].reader, 0);
	assert_int_equal(rows[1].seat, 1);
	assert_int_equal(rows[1].pid, 0);
	/* No more rows than seats. */
	assert_int_equal(rows[2].seat, ~0u);
	st.nr_readers = 1;
	memset(rows, 0xff, sizeof(rows));
	assert_int_equal(writer_call(&arena, TENSORARENA_STATS, &st), 0);
	assert_int_equal(st.nr_readers, 2);
	assert_int_equal(rows[1].seat, ~0u);
	reader_close(&r);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_arrives_by_next_and_by_ticket),
		cmocka_unit_test(sizes_from_nothing_to_a_full_slot),
		cmocka_unit_test(the_writer_is_declined_and_never_waits),
		cmocka_unit_test(a_late_reader_gets_what_its_seat_was_sent),
		cmocka_unit_test(subsets_address_only_their_readers),
		cmocka_unit_test(every_field_of_a_ticket_is_checked),
		cmocka_unit_test(unknown_flags_and_reserved_fields_are_refused),
		cmocka_unit_test(commands_of_the_other_end_are_unknown),
		cmocka_unit_test(creation_checks_what_it_is_given),
		cmocka_unit_test(streams_are_not_supported),
		cmocka_unit_test(an_unaddressed_publication_frees_its_slot),
		cmocka_unit_test(an_aborted_slot_is_free_again),
		cmocka_unit_test(an_evicted_reader_is_told_so),
		cmocka_unit_test(
			an_evicted_readers_seat_is_not_shared_with_the_next),
		cmocka_unit_test(an_unclaimed_seat_can_be_closed),
		cmocka_unit_test(a_detached_reader_is_done),
		cmocka_unit_test(closing_a_reader_frees_what_it_held_at_once),
		cmocka_unit_test(after_the_writer_views_stay_and_nothing_comes),
		cmocka_unit_test(detaching_from_a_closed_arena_succeeds),
		cmocka_unit_test(a_detached_writer_leaves_what_is_published),
		cmocka_unit_test(poll_is_level_and_says_what_next_would),
		cmocka_unit_test(the_sixty_fifth_reader_is_refused),
		cmocka_unit_test(statistics_name_each_open_seat),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded commands", tests, NULL,
					   NULL);
}
