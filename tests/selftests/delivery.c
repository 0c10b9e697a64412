// SPDX-License-Identifier: GPL-2.0-only
/* Publications reach whom they are addressed to, byte for byte, in order. */
#include <kselftest_harness.h>

#include "arena.h"
#include "proc.h"
#include "waiter.h"

#define READERS 4

/* Reads all there is, checking each; tells how many were right. */
static void read_all(int sock, void *arg)
{
	const struct arena *a = arg;
	struct tensorarena_borrow b;
	int64_t right = 0;
	struct reader r;
	int err;

	reader_attach(a, &r);
	reader_map(&r);
	tell(sock, (int64_t)r.made.reader);
	for (;;) {
		MUST(poll_for(r.fd, POLLIN, HANG_MS));
		err = next(&r, &b);
		if (err)
			break;
		right += delivered(&r, &b);
		MUST(!release(&r, &b.ticket));
	}
	MUST(err == -EPIPE);
	tell(sock, right);
}

TEST(every_size_reaches_four_processes_byte_exact)
{
	static const uint64_t sizes[] = { 0, 1, CHUNK - 1, CHUNK + 1,
					  2 * CHUNK };
	struct child c[READERS];
	struct arena a;
	size_t i;

	arena_create(&a, ARRAY_SIZE(sizes), 2 * CHUNK, 0);
	for (i = 0; i < READERS; i++) {
		c[i] = child_start(read_all, &a, a.fd);
		must_hear(c[i].sock);
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		put(&a, sizes[i], (uint32_t)i + 1);
	EXPECT_EQ(READERS, stats_get(&a).nr_readers);
	MUST(!close(a.fd));
	MUST(!munmap(a.map, a.bytes));
	for (i = 0; i < READERS; i++) {
		EXPECT_EQ((int64_t)ARRAY_SIZE(sizes), must_hear(c[i].sock));
		EXPECT_TRUE(child_ended_well(&c[i]));
	}
}

TEST(an_open_seat_is_served_before_its_reader_comes)
{
	struct tensorarena_ticket early, later;
	struct tensorarena_borrow b;
	struct reader seated, beyond;
	struct arena a;

	arena_create(&a, 4, CHUNK, 1);
	early = put(&a, 100, 1);
	EXPECT_EQ(1, stats_get(&a).published);
	reader_attach(&a, &seated);
	reader_map(&seated);
	EXPECT_EQ(0, seated.made.seat);
	reader_attach(&a, &beyond);
	EXPECT_EQ(1, beyond.made.seat);

	ASSERT_EQ(0, next(&seated, &b));
	EXPECT_EQ(early.generation, b.ticket.generation);
	EXPECT_TRUE(delivered(&seated, &b));
	EXPECT_EQ(-EAGAIN, next(&beyond, &b));
	EXPECT_EQ(-ENXIO, borrow(&beyond, &early, &b));

	later = put(&a, 100, 2);
	ASSERT_EQ(0, next(&beyond, &b));
	EXPECT_EQ(later.generation, b.ticket.generation);
}

TEST(next_goes_in_the_order_of_publication)
{
	struct tensorarena_acquire acq[3];
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;
	int i;

	arena_create(&a, 3, CHUNK, 0);
	reader_attach(&a, &r);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, acquire(&a, 1, &acq[i]));
	/* Published in another order than acquired. */
	for (i = 2; i >= 0; i--)
		ASSERT_EQ(1, publish(&a, acq[i].slot, acq[i].generation, 1));
	for (i = 2; i >= 0; i--) {
		ASSERT_EQ(0, next(&r, &b));
		EXPECT_EQ(acq[i].slot, b.ticket.slot);
		EXPECT_EQ(acq[i].offset, b.offset);
	}
	EXPECT_EQ(-EAGAIN, next(&r, &b));
}

TEST(meta_bytes_arrive_as_they_were_sent)
{
	struct tensorarena_publish pub = { .nbytes = 1 };
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;
	int i;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	pub.meta_bytes = TENSORARENA_META_BYTES + 1;
	EXPECT_EQ(-EINVAL, request(a.fd, TENSORARENA_PUBLISH, &pub));
	pub.meta_bytes = TENSORARENA_META_BYTES;
	for (i = 0; i < TENSORARENA_META_BYTES; i++)
		pub.meta[i] = (uint8_t)(255 - i);
	ASSERT_EQ(0, request(a.fd, TENSORARENA_PUBLISH, &pub));
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_EQ(TENSORARENA_META_BYTES, b.meta_bytes);
	EXPECT_EQ(0, memcmp(pub.meta, b.meta, sizeof(b.meta)));
	ASSERT_EQ(0, release(&r, &b.ticket));

	/* What is beyond meta_bytes is not handed on, old or new. */
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	pub.slot = acq.slot;
	pub.generation = acq.generation;
	pub.meta_bytes = 3;
	ASSERT_EQ(0, request(a.fd, TENSORARENA_PUBLISH, &pub));
	ASSERT_EQ(0, next(&r, &b));
	EXPECT_EQ(3, b.meta_bytes);
	EXPECT_EQ(0, memcmp(pub.meta, b.meta, 3));
	for (i = 3; i < TENSORARENA_META_BYTES; i++)
		EXPECT_EQ(0, b.meta[i]);
}

TEST(a_ticket_is_good_until_it_is_released)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	reader_map(&r);
	ticket = put(&a, 100, 1);
	ASSERT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_EQ(a.made.arena, b.ticket.arena);
	EXPECT_EQ(100, b.ticket.nbytes);
	EXPECT_TRUE(delivered(&r, &b));
	EXPECT_EQ(0, borrow(&r, &ticket, &b));
	EXPECT_EQ(-EAGAIN, next(&r, &b));
	EXPECT_EQ(0, release(&r, &ticket));
	EXPECT_EQ(-ESTALE, release(&r, &ticket));
	EXPECT_EQ(-ESTALE, borrow(&r, &ticket, &b));

	/* The slot's next publication is not this ticket's. */
	EXPECT_EQ(ticket.slot, put(&a, 100, 2).slot);
	EXPECT_EQ(-ESTALE, borrow(&r, &ticket, &b));
	EXPECT_EQ(-ESTALE, release(&r, &ticket));
	EXPECT_EQ(0, next(&r, &b));
	EXPECT_EQ(ticket.generation + 1, b.ticket.generation);
}

TEST(every_field_of_a_ticket_is_checked)
{
	struct tensorarena_ticket good, bad;
	struct tensorarena_borrow b;
	struct arena a, other;
	struct reader r;

	arena_create(&a, 2, CHUNK, 0);
	arena_create(&other, 2, CHUNK, 0);
	reader_attach(&a, &r);
	good = put(&a, 100, 1);

	bad = good;
	bad.arena = other.made.arena;
	EXPECT_EQ(-ESTALE, borrow(&r, &bad, &b));
	bad = good;
	bad.generation++;
	EXPECT_EQ(-ESTALE, borrow(&r, &bad, &b));
	bad = good;
	bad.nbytes++;
	EXPECT_EQ(-ESTALE, borrow(&r, &bad, &b));
	bad = good;
	bad.slot = 2;
	EXPECT_EQ(-EINVAL, borrow(&r, &bad, &b));
	EXPECT_EQ(-EINVAL, release(&r, &bad));
	bad.slot = 1;
	EXPECT_EQ(-ESTALE, borrow(&r, &bad, &b));
	EXPECT_EQ(0, borrow(&r, &good, &b));
}

TEST(a_subset_is_addressed_by_reader_ids)
{
	struct tensorarena_acquire acq;
	struct tensorarena_ticket ticket;
	struct tensorarena_borrow b;
	uint64_t ids[3], unknown;
	struct reader r[3];
	struct arena a;
	int i;

	arena_create(&a, 2, CHUNK, 1);
	for (i = 0; i < 3; i++) {
		reader_attach(&a, &r[i]);
		ids[i] = r[i].made.reader;
	}
	EXPECT_NE(ids[0], ids[1]);
	EXPECT_NE(ids[1], ids[2]);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	unknown = ids[2] + 100;
	EXPECT_EQ(-ESTALE,
		  publish_to(&a, acq.slot, acq.generation, 1, &unknown, 1));
	/* Twice the same reader is one reader. */
	ids[2] = ids[0];
	EXPECT_EQ(2, publish_to(&a, acq.slot, acq.generation, 1, ids, 3));
	EXPECT_EQ(-EAGAIN, next(&r[2], &b));
	ASSERT_EQ(0, next(&r[0], &b));
	ASSERT_EQ(0, next(&r[1], &b));
	ticket = b.ticket;
	EXPECT_EQ(-ENXIO, borrow(&r[2], &ticket, &b));
	EXPECT_EQ(-ENXIO, release(&r[2], &ticket));
	EXPECT_EQ(0, release(&r[0], &ticket));
	EXPECT_EQ(1, stats_get(&a).published);
	EXPECT_EQ(0, release(&r[1], &ticket));
	EXPECT_EQ(0, stats_get(&a).published);

	/* An id dies with its reader, though the seat lives on. */
	ids[0] = r[0].made.reader;
	EXPECT_EQ(0, detach(&r[0]));
	reader_attach(&a, &r[0]);
	EXPECT_EQ(0, r[0].made.seat);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_EQ(-ESTALE, publish_to(&a, acq.slot, acq.generation, 1, ids, 1));
	EXPECT_EQ(1, stats_get(&a).writing);
}

TEST(publish_and_abort_name_a_slot_being_written)
{
	struct tensorarena_acquire acq;
	struct reader r;
	struct arena a;

	arena_create(&a, 2, CHUNK, 0);
	reader_attach(&a, &r);
	ASSERT_EQ(0, acquire(&a, 10, &acq));
	EXPECT_EQ(1, acq.open);
	EXPECT_EQ(-EINVAL, publish(&a, acq.slot, acq.generation, 11));
	EXPECT_EQ(-EINVAL, publish(&a, 2, acq.generation, 10));
	EXPECT_EQ(-ESTALE, publish(&a, acq.slot, acq.generation + 1, 10));
	EXPECT_EQ(-ESTALE, publish(&a, acq.slot ^ 1, 0, 0));
	EXPECT_EQ(-EINVAL, abort_slot(&a, 2, acq.generation));
	EXPECT_EQ(-ESTALE, abort_slot(&a, acq.slot, acq.generation - 1));
	EXPECT_EQ(1, publish(&a, acq.slot, acq.generation, 10));
	EXPECT_EQ(-ESTALE, publish(&a, acq.slot, acq.generation, 10));
	EXPECT_EQ(-ESTALE, abort_slot(&a, acq.slot, acq.generation));

	ASSERT_EQ(0, acquire(&a, 10, &acq));
	EXPECT_EQ(0, abort_slot(&a, acq.slot, acq.generation));
	EXPECT_EQ(-ESTALE, publish(&a, acq.slot, acq.generation, 10));
	EXPECT_EQ(1, stats_get(&a).aborted);
	EXPECT_EQ(1, stats_get(&a).published);
}

TEST(what_is_called_back_goes_to_nobody_who_has_not_seen_it)
{
	struct tensorarena_stats st;
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct reader seen, unseen, late;
	struct arena a;

	/* One has seen it, one has not, and one is yet to come. */
	arena_create(&a, 1, CHUNK, 3);
	reader_attach(&a, &seen);
	reader_attach(&a, &unseen);
	t = put(&a, 1000, 1);
	reader_map(&seen);
	ASSERT_EQ(0, next(&seen, &b));
	EXPECT_EQ(POLLIN, poll_now(unseen.fd));

	EXPECT_EQ(1, retract(&a, t.slot, t.generation));
	EXPECT_EQ(0, poll_now(unseen.fd));
	EXPECT_EQ(-EAGAIN, next(&unseen, &b));
	EXPECT_EQ(-ESTALE, borrow(&unseen, &t, &b));
	EXPECT_EQ(-ESTALE, release(&unseen, &t));
	st = stats_get(&a);
	EXPECT_EQ(2, st.retracted);
	EXPECT_EQ(1, st.published);

	reader_attach(&a, &late);
	EXPECT_EQ(-EAGAIN, next(&late, &b));
	EXPECT_EQ(-ESTALE, borrow(&late, &t, &b));

	/* Who has seen it keeps it, and may even look again. */
	ASSERT_EQ(0, borrow(&seen, &t, &b));
	EXPECT_TRUE(delivered(&seen, &b));
	EXPECT_EQ(1, retract(&a, t.slot, t.generation));
	EXPECT_EQ(2, stats_get(&a).retracted);
	EXPECT_EQ(0, poll_now(a.fd));
	EXPECT_EQ(0, release(&seen, &t));
	EXPECT_EQ(POLLOUT, poll_now(a.fd));
	EXPECT_EQ(-ESTALE, retract(&a, t.slot, t.generation));
}

TEST(a_publication_nobody_has_seen_is_called_back_with_its_slot)
{
	struct tensorarena_acquire acq;
	struct tensorarena_ticket t;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	t = put(&a, 1000, 1);
	EXPECT_EQ(-EINVAL, retract(&a, 1, t.generation));
	EXPECT_EQ(-ESTALE, retract(&a, t.slot, t.generation + 1));
	EXPECT_EQ(-ESTALE, retract(&a, t.slot, t.generation - 1));
	EXPECT_EQ(0, retract(&a, t.slot, t.generation));
	EXPECT_EQ(POLLOUT, poll_now(a.fd));
	EXPECT_EQ(-ESTALE, borrow(&r, &t, &b));

	/* What is being written is no publication. */
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_EQ(-ESTALE, retract(&a, acq.slot, acq.generation));
	EXPECT_EQ(1, publish(&a, acq.slot, acq.generation, 1));
	EXPECT_EQ(-ESTALE, retract(&a, t.slot, t.generation));
	EXPECT_EQ(0, next(&r, &b));
	EXPECT_EQ(acq.generation, b.ticket.generation);
}

TEST(a_waiting_writer_wakes_when_a_publication_is_called_back)
{
	struct tensorarena_ticket t;
	struct waiter w;
	struct reader r;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	reader_attach(&a, &r);
	t = put(&a, 1000, 1);
	waiter_start(&w, a.fd, POLLOUT);
	EXPECT_EQ(0, retract(&a, t.slot, t.generation));
	EXPECT_EQ(POLLOUT, waiter_result(&w));
}

TEST(a_publication_for_nobody_gives_the_slot_back)
{
	struct tensorarena_acquire acq;
	struct arena a;

	arena_create(&a, 1, CHUNK, 0);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	EXPECT_EQ(0, acq.open);
	EXPECT_EQ(0, publish(&a, acq.slot, acq.generation, 1));
	EXPECT_EQ(1, stats_get(&a).free);
	EXPECT_EQ(1, stats_get(&a).unaddressed);
	EXPECT_EQ(0, stats_get(&a).puts);
}

TEST(a_view_stays_intact_while_a_thousand_puts_go_by)
{
	struct tensorarena_borrow kept, b;
	struct reader keeper, r;
	struct arena a;
	uint32_t i;

	arena_create(&a, 3, CHUNK, 0);
	reader_attach(&a, &keeper);
	reader_map(&keeper);
	put(&a, 100000, 12345);
	ASSERT_EQ(0, next(&keeper, &kept));

	reader_attach(&a, &r);
	for (i = 0; i < 1000; i++) {
		put(&a, 64, i);
		ASSERT_EQ(0, next(&r, &b));
		ASSERT_EQ(0, release(&r, &b.ticket));
		ASSERT_EQ(0, next(&keeper, &b));
		ASSERT_NE(kept.ticket.slot, b.ticket.slot);
		ASSERT_EQ(0, release(&keeper, &b.ticket));
	}
	EXPECT_TRUE(delivered(&keeper, &kept));
	EXPECT_EQ(0, borrow(&keeper, &kept.ticket, &b));
	EXPECT_EQ(1001, stats_get(&a).puts);
}

TEST_HARNESS_MAIN
