// SPDX-License-Identifier: MIT
/*
 * How far readers reach, as tests/selftests/reach.c has it of the device
 * engine.
 */
#include <sys/mman.h>

#include "fixture.h"

/* One publication for the first reader only. */
static struct tensorarena_ticket put_to_first(struct arena *arena,
					      const struct reader *r)
{
	struct tensorarena_acquire acq;
	struct tensorarena_publish pub = {
		.nbytes = 100,
		.readers = (uintptr_t)&r->args.reader,
		.nr_readers = 1,
	};

	assert_int_equal(acquire(arena, 100, &acq), 0);
	memset(arena->port->base + acq.offset, 7, 100);
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	assert_int_equal(writer_call(arena, TENSORARENA_PUBLISH, &pub), 0);
	assert_int_equal(pub.addressed, 1);
	return (struct tensorarena_ticket){
		.arena = arena->handle.arena,
		.generation = acq.generation,
		.nbytes = 100,
		.slot = acq.slot,
	};
}

static void any_reader_can_read_every_slot(void **state)
{
	struct ta_wire_message msg = raw_message(TA_WIRE_MEMORY);
	struct ta_wire_parcel parcel;
	struct tensorarena_borrow b;
	struct tensorarena_ticket ticket;
	struct arena arena;
	struct reader r, other;
	uint8_t *data;
	int sock;

	(void)state;
	arena_init(&arena, 3);
	arena_open(&arena);
	reader_open(&arena, &r);
	reader_open(&arena, &other);
	sock = raw_open(&arena);
	ticket = put_to_first(&arena, &r);
	/* It is not told of it, and cannot hold it... */
	assert_int_equal(next(&other, &b), -EAGAIN);
	assert_int_equal(borrow(&other, &ticket, &b), -ENXIO);
	/* ...but it can have the memory. */
	msg.ref.slot = ticket.slot;
	assert_int_equal(raw_send(sock, &msg), 0);
	assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
	assert_int_equal(parcel.nr_fds, 1);
	data = mmap(NULL, 4096, PROT_READ, MAP_SHARED, parcel.fds[0], 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	assert_int_equal(data[99], 7);
	munmap(data, 4096);
	ta_wire_discard(&parcel);
	close(sock);
	reader_close(&r);
	reader_close(&other);
	arena_close(&arena);
}

static void a_reader_cannot_release_for_another(void **state)
{
	struct tensorarena_ticket ticket;
	struct arena arena;
	struct reader r, other;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	reader_open(&arena, &other);
	ticket = put_to_first(&arena, &r);
	assert_int_equal(release(&other, &ticket), -ENXIO);
	assert_int_equal(stats(&arena).published, 1);
	assert_int_equal(release(&r, &ticket), 0);
	assert_int_equal(release(&r, &ticket), -ESTALE);
	assert_int_equal(stats(&arena).published, 0);
	reader_close(&r);
	reader_close(&other);
	arena_close(&arena);
}

static void a_writer_can_change_what_it_has_published(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 100, 1);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 1));
	memset(writer_data(&arena, b.ticket.slot), 2, 100);
	assert_true(sees(&r, &b, 2));
	reader_close(&r);
	arena_close(&arena);
}

/* What a mapping is of cannot be taken away here; the module does it. */
static void an_evicted_reader_still_sees_what_it_has_mapped(void **state)
{
	struct tensorarena_evict evict = { 0 };
	struct tensorarena_borrow b, again;
	struct arena arena;
	struct reader r;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	reader_open(&arena, &r);
	put(&arena, 100, 1);
	assert_int_equal(next(&r, &b), 0);
	evict.reader = r.args.reader;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	evict = (struct tensorarena_evict){ .reader = 1,
					    .flags = TENSORARENA_EVICT_SEAT };
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	assert_int_equal(evict.freed, 1);
	assert_int_equal(borrow(&r, &b.ticket, &again), -EOWNERDEAD);
	memset(writer_data(&arena, b.ticket.slot), 2, 100);
	assert_true(sees(&r, &b, 2));
	reader_close(&r);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_reader_can_read_every_slot),
		cmocka_unit_test(a_reader_cannot_release_for_another),
		cmocka_unit_test(a_writer_can_change_what_it_has_published),
		cmocka_unit_test(
			an_evicted_reader_still_sees_what_it_has_mapped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded reach", tests, NULL, NULL);
}
