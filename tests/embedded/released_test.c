// SPDX-License-Identifier: MIT
/*
 * Releases without a message: they count when somebody needs to know, without
 * the server's help, and release nothing that is not the reader's to release.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include "fixture.h"

/* A reader on the bare socket, so that nothing is sent but what the test sends. */
struct bare {
	int sock;
	uint64_t reader;
	struct ta_wire_released *page;
};

static struct bare bare_open(const struct arena *arena)
{
	struct ta_wire_message msg = raw_attach(arena);
	struct ta_wire_parcel parcel;
	struct bare bare;

	bare.sock = raw_dial(arena);
	assert_int_equal(raw_send(bare.sock, &msg), 0);
	assert_int_equal(raw_recv(bare.sock, &msg, &parcel), 0);
	assert_int_equal(msg.header.result, 0);
	assert_int_equal(parcel.nr_fds, TA_WIRE_ATTACH_FDS);
	bare.reader = msg.attach.reader;
	bare.page = mmap(NULL, sizeof(*bare.page), PROT_READ | PROT_WRITE,
			 MAP_SHARED, parcel.fds[TA_WIRE_FD_RELEASED], 0);
	assert_ptr_not_equal(bare.page, MAP_FAILED);
	ta_wire_discard(&parcel);
	return bare;
}

static void bare_close(struct bare *bare)
{
	munmap(bare->page, sizeof(*bare->page));
	close(bare->sock);
}

static void write_down(struct bare *bare, const struct tensorarena_ticket *t)
{
	ta_released_write(bare->page, t->slot, t->generation);
}

/* An arena whose four slots are published to its only reader. */
static struct bare fill(struct arena *arena, struct tensorarena_ticket *tickets)
{
	struct bare bare;
	int i;

	arena_init(arena, 1);
	arena_open(arena);
	bare = bare_open(arena);
	for (i = 0; i < 4; i++)
		tickets[i] = put(arena, MIB, 1);
	return bare;
}

static void slot_is_there_for_the_next_put(void **state)
{
	struct tensorarena_ticket t[4];
	struct tensorarena_acquire acq;
	struct arena arena;
	struct bare bare;

	(void)state;
	bare = fill(&arena, t);
	assert_int_equal(acquire(&arena, 1, &acq), -EAGAIN);
	write_down(&bare, &t[2]);
	assert_int_equal(acquire(&arena, 1, &acq), 0);
	assert_int_equal(acq.slot, t[2].slot);
	assert_int_equal(acq.generation, t[2].generation + 1);
	assert_int_equal(acquire(&arena, 1, &acq), -EAGAIN);
	assert_int_equal(stats(&arena).released, 1);
	bare_close(&bare);
	arena_close(&arena);
}

static void statistics_populate_and_trim_see_it(void **state)
{
	struct tensorarena_populate pop = { .nbytes = 4 * MIB, .slots = 1 };
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_ticket t[4];
	struct arena arena;
	struct bare bare;

	(void)state;
	bare = fill(&arena, t);
	write_down(&bare, &t[0]);
	assert_int_equal(stats(&arena).free, 1);
	write_down(&bare, &t[1]);
	assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim), 0);
	assert_int_equal(trim.freed_bytes, 4 * MIB);
	write_down(&bare, &t[2]);
	assert_int_equal(writer_call(&arena, TENSORARENA_POPULATE, &pop), 0);
	assert_int_equal(pop.ready, 1);
	assert_int_equal(stats(&arena).free, 3);
	assert_false(polls(bare.sock, POLLIN, 0));
	bare_close(&bare);
	arena_close(&arena);
}

static void
a_publication_called_back_is_nobodys_who_has_released_it(void **state)
{
	struct tensorarena_retract args = { 0 };
	struct tensorarena_ticket t[4];
	struct arena arena;
	struct bare bare;

	(void)state;
	bare = fill(&arena, t);
	write_down(&bare, &t[1]);
	args.slot = t[1].slot;
	args.generation = t[1].generation;
	assert_int_equal(writer_call(&arena, TENSORARENA_RETRACT, &args),
			 -ESTALE);
	assert_int_equal(stats(&arena).free, 1);
	args.slot = t[2].slot;
	args.generation = t[2].generation;
	assert_int_equal(writer_call(&arena, TENSORARENA_RETRACT, &args), 0);
	assert_int_equal(args.retracted, 1);
	assert_int_equal(args.pending, 0);
	assert_int_equal(stats(&arena).free, 2);
	bare_close(&bare);
	arena_close(&arena);
}

static void who_waits_in_poll_is_woken_by_the_message(void **state)
{
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	short events;
	int fd, i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < 4; i++)
		put(&arena, MIB, 1);
	fd = arena.port->ops->poll_fd(arena.port, &events);
	assert_false(polls(fd, events, 0));
	assert_int_equal(next(&r, &b), 0);
	r.port->ops->done(r.port, b.ticket.slot, b.ticket.generation);
	assert_true(polls(fd, events, GUARD_MS));
	assert_int_equal(stats(&arena).free, 1);
	/* The socket is as it was: nothing came back that nobody asked for. */
	settle(&r);
	assert_int_equal(borrow(&r, &b.ticket, &b), -ESTALE);
	reader_close(&r);
	arena_close(&arena);
}

/* As when the message was lost. */
static void reader_cannot_have_back_what_it_has_written_down(void **state)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_BORROW);
	struct tensorarena_ticket t[4];
	struct arena arena;
	struct bare bare;

	(void)state;
	bare = fill(&arena, t);
	write_down(&bare, &t[0]);
	msg.borrow.ticket = t[0];
	assert_int_equal(raw_ask(bare.sock, &msg), -ESTALE);
	msg = raw_message(TENSORARENA_RELEASE);
	msg.ref.slot = t[0].slot;
	msg.ref.generation = t[0].generation;
	assert_int_equal(raw_ask(bare.sock, &msg), -ESTALE);
	bare_close(&bare);
	arena_close(&arena);
}

static void nothing_but_its_own_holds_can_be_released(void **state)
{
	struct tensorarena_publish only = { .nbytes = MIB, .nr_readers = 1 };
	struct tensorarena_acquire acq;
	struct tensorarena_ticket t;
	struct arena arena;
	struct bare a, b;
	uint32_t i;

	(void)state;
	arena_init(&arena, 2);
	arena_open(&arena);
	a = bare_open(&arena);
	b = bare_open(&arena);
	t = put(&arena, MIB, 1);
	/* Other generations, and slots that are not published or not there. */
	for (i = 0; i < TENSORARENA_MAX_SLOTS; i++)
		a.page->generation[i] = i == t.slot ? t.generation + 1 : 1;
	assert_int_equal(stats(&arena).published, 1);
	/* One of two readers. */
	write_down(&a, &t);
	assert_int_equal(stats(&arena).published, 1);
	/* A publication for the other. */
	assert_int_equal(acquire(&arena, MIB, &acq), 0);
	only.slot = acq.slot;
	only.generation = acq.generation;
	only.readers = (uintptr_t)&b.reader;
	assert_int_equal(writer_call(&arena, TENSORARENA_PUBLISH, &only), 0);
	a.page->generation[acq.slot] = acq.generation;
	assert_int_equal(stats(&arena).published, 2);
	write_down(&b, &t);
	b.page->generation[acq.slot] = acq.generation;
	assert_int_equal(stats(&arena).free, 4);
	bare_close(&a);
	bare_close(&b);
	arena_close(&arena);
}

/* The page of one that was thrown out releases nothing of its successor's. */
static void page_goes_with_its_reader(void **state)
{
	struct tensorarena_evict evict = { 0 };
	struct tensorarena_ticket t;
	struct arena arena;
	struct bare old, new;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	old = bare_open(&arena);
	evict.reader = old.reader;
	assert_int_equal(writer_call(&arena, TENSORARENA_EVICT, &evict), 0);
	new = bare_open(&arena);
	t = put(&arena, MIB, 1);
	write_down(&old, &t);
	assert_int_equal(stats(&arena).published, 1);
	/* Nor does its end take the other's page away. */
	bare_close(&old);
	write_down(&new, &t);
	assert_int_equal(stats(&arena).free, 4);
	bare_close(&new);
	await_open_seats(&arena, 0);
	arena_close(&arena);
}

static void page_cannot_be_made_to_fault(void **state)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	struct arena arena;
	int sock, fd;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	msg = raw_attach(&arena);
	sock = raw_dial(&arena);
	assert_int_equal(raw_send(sock, &msg), 0);
	assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
	fd = parcel.fds[TA_WIRE_FD_RELEASED];
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 1 << 20), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	ta_wire_discard(&parcel);
	close(sock);
	await_open_seats(&arena, 0);
	arena_close(&arena);
}

static void attaching_and_leaving_leaves_nothing_behind(void **state)
{
	struct arena arena;
	struct reader r;
	uint32_t fds;
	long kib = 0;
	int i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	fds = count_fds();
	for (i = 0; i < 200; i++) {
		reader_open(&arena, &r);
		reader_close(&r);
		if (i == 20)
			kib = shared_kib();
	}
	await_open_seats(&arena, 0);
	assert_true(shared_kib() < kib + 64);
	/* The last connection may still be on its way out. */
	reader_open(&arena, &r);
	settle(&r);
	reader_close(&r);
	assert_in_range(count_fds(), fds, fds + 3);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_is_there_for_the_next_put),
		cmocka_unit_test(statistics_populate_and_trim_see_it),
		cmocka_unit_test(
			a_publication_called_back_is_nobodys_who_has_released_it),
		cmocka_unit_test(who_waits_in_poll_is_woken_by_the_message),
		cmocka_unit_test(
			reader_cannot_have_back_what_it_has_written_down),
		cmocka_unit_test(nothing_but_its_own_holds_can_be_released),
		cmocka_unit_test(page_goes_with_its_reader),
		cmocka_unit_test(page_cannot_be_made_to_fault),
		cmocka_unit_test(attaching_and_leaving_leaves_nothing_behind),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded releases", tests, NULL,
					   NULL);
}
