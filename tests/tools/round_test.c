// SPDX-License-Identifier: MIT
/*
 * One round, against an arena that declines, fails or forgets: the library and
 * the workers are played by this program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tools/broadcast.h>
#include <tools/broadcast_free.h>
#include <tools/checksum.h>

#include "test.h"

#define NBYTES 1000

/* What the arena is asked to do, and what happened. */
static struct {
	int declines; /* how many calls say -EAGAIN */
	int put_err, loan_err, commit_err, produce_err; /* from then on */
	bool stream_err;
	bool forget; /* puts leave the slot as it is */
	int puts, loans, commits, aborts, produces, watches, streams;
	double free_ms; /* when the slot is seen free */
	uint8_t slot[NBYTES];
} arena;

static struct ta_loan the_loan = { .data = arena.slot, .nbytes = NBYTES };

const char *ta_strerror(int err)
{
	return strerror(-err);
}

bool ta_is_decline(int err)
{
	return err == -EAGAIN || err == -ENOMEM || err == -EMSGSIZE ||
	       err == -ENOTCONN;
}

int ta_writer_poll_fd(struct ta_writer *writer, short *events)
{
	(void)writer;
	*events = 0;
	return -1;
}

int ta_put(struct ta_writer *writer, const void *src, size_t nbytes,
	   const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	(void)writer;
	(void)tensor;
	if (arena.declines && arena.declines--)
		return -EAGAIN;
	if (arena.put_err)
		return arena.put_err;
	arena.puts++;
	if (!arena.forget)
		memcpy(arena.slot, src, nbytes);
	ticket->nbytes = nbytes;
	return 0;
}

int ta_loan(struct ta_writer *writer, size_t nbytes, struct ta_loan **loan)
{
	(void)writer;
	(void)nbytes;
	if (arena.declines && arena.declines--)
		return -EAGAIN;
	if (arena.loan_err)
		return arena.loan_err;
	arena.loans++;
	*loan = &the_loan;
	return 0;
}

int ta_commit(struct ta_loan *loan, size_t nbytes,
	      const struct ta_tensor *tensor, struct ta_ticket *ticket)
{
	(void)loan;
	(void)nbytes;
	(void)tensor;
	(void)ticket;
	if (arena.commit_err)
		return arena.commit_err;
	arena.commits++;
	return 0;
}

int ta_abort(struct ta_loan *loan)
{
	(void)loan;
	arena.aborts++;
	return 0;
}

int input_produce(struct input *in, void *dst, int stop, struct reason *why)
{
	(void)stop;
	arena.produces++;
	if (arena.produce_err)
		return reason_set(why, "made of nothing");
	memset(dst, 'x', in->nbytes);
	return 0;
}

void crew_send(struct crew *crew, const struct ta_ticket *ticket)
{
	(void)crew;
	(void)ticket;
}

int free_watch_start(struct free_watch *watch, struct ta_writer *writer,
		     struct reason *why)
{
	(void)watch;
	(void)writer;
	(void)why;
	arena.watches++;
	return 0;
}

double free_watch_end(struct free_watch *watch, bool wait)
{
	(void)watch;
	arena.watches--;
	return wait ? arena.free_ms : 0;
}

/* The worker receives it, instead. */
int crew_send_bytes(struct crew *crew, const struct ta_tensor *tensor,
		    const void *bytes, uint64_t nbytes, int stop,
		    struct reason *why)
{
	(void)crew;
	(void)tensor;
	(void)stop;
	if (arena.stream_err)
		return reason_set(why, "the stream has dried up");
	arena.streams++;
	memcpy(arena.slot, bytes, nbytes);
	return 0;
}

/* One worker, which looks into the slot. */
int crew_collect(struct crew *crew, const struct crew_expects *expects,
		 int stop, struct reason *why)
{
	(void)stop;
	(void)why;
	crew->end_ms = 100;
	return checksum(arena.slot, NBYTES) == expects->digest;
}

static const struct broadcast_options options = { .readers = 1 };
static struct broadcast_round rounds[3];
static struct reason why;

static void begin(struct broadcast *b, bool decoded)
{
	memset(&arena, 0, sizeof(arena));
	memset(rounds, 0, sizeof(rounds));
	*b = (struct broadcast){
		.options = &options,
		.stop = -1,
		.round = rounds,
		.in = { .nbytes = NBYTES, .decoded = decoded },
	};
}

static void end(struct broadcast *b)
{
	baseline_buffer_free(b->bytes, NBYTES);
	baseline_buffer_free(b->scratch, NBYTES);
}

static void a_file_is_read_once_and_put_every_round(void **state)
{
	struct broadcast b;
	int i;

	(void)state;
	begin(&b, false);
	for (i = 0; i < 3; i++) {
		assert_int_equal(broadcast_round_run(&b, &why), 0);
		assert_int_equal(rounds[i].verified, 1);
		assert_false(rounds[i].loaned);
	}
	assert_int_equal(b.rounds, 3);
	assert_int_equal(arena.produces, 1);
	assert_int_equal(arena.puts, 3);
	assert_int_equal(arena.commits, 0);
	/* Every loan was there to wipe a slot, and was given back. */
	assert_int_equal(arena.loans, arena.aborts);
	assert_true(rounds[2].bare.memcpy_ms > 0);
	assert_true(rounds[2].bare.checksum_ms > 0);
	assert_true(rounds[2].bare.passes_ms > 0);
	end(&b);
}

static void a_decoded_tensor_is_produced_in_the_slot_then_put(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, true);
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_true(rounds[0].loaned);
	assert_int_equal(rounds[0].verified, 1);
	assert_int_equal(arena.commits, 1);
	assert_int_equal(arena.puts, 0);
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_false(rounds[1].loaned);
	assert_int_equal(rounds[1].verified, 1);
	assert_int_equal(arena.puts, 1);
	assert_int_equal(arena.produces, 1);
	end(&b);
}

/* The bytes of the round before are still there, but for the wiping. */
static void a_put_that_copies_nothing_is_noticed(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, false);
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_int_equal(rounds[0].verified, 1);
	arena.forget = true;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_int_equal(rounds[1].verified, 0);
	end(&b);
}

static void a_decline_for_want_of_a_slot_is_tried_again(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, false);
	arena.declines = 2;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_int_equal(rounds[0].declined, 2);
	assert_int_equal(rounds[0].verified, 1);
	end(&b);

	begin(&b, true);
	arena.declines = 2;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_int_equal(rounds[0].declined, 2);
	assert_int_equal(rounds[0].verified, 1);
	end(&b);
}

static void a_decline_for_good_ends_the_broadcast(void **state)
{
	static const int errors[] = { -ENOMEM, -EMSGSIZE, -ENOTCONN };
	struct broadcast b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		begin(&b, false);
		arena.put_err = errors[i];
		assert_int_equal(broadcast_round_run(&b, &why), -1);
		assert_non_null(strstr(why.text, "declines 1000 bytes"));
		assert_int_equal(b.rounds, 0);
		end(&b);

		begin(&b, true);
		arena.loan_err = errors[i];
		assert_int_equal(broadcast_round_run(&b, &why), -1);
		assert_non_null(strstr(why.text, "declines 1000 bytes"));
		end(&b);
	}
	begin(&b, false);
	arena.put_err = -EIO;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_non_null(strstr(why.text, "cannot take 1000 bytes"));
	end(&b);
}

static void a_loan_that_cannot_be_filled_is_given_back(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, true);
	arena.produce_err = -1;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_string_equal(why.text, "made of nothing");
	assert_int_equal(arena.loans, 1);
	assert_int_equal(arena.aborts, 1);
	end(&b);
}

/* A commit that declines with -ENOTCONN has consumed the loan; others not. */
static void a_loan_is_given_back_exactly_once(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, true);
	arena.commit_err = -ENOTCONN;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_int_equal(arena.aborts, 0);
	end(&b);

	begin(&b, true);
	arena.commit_err = -EIO;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_int_equal(arena.aborts, 1);
	end(&b);
}

static void a_file_that_cannot_be_read_ends_the_broadcast(void **state)
{
	struct broadcast b;

	(void)state;
	begin(&b, false);
	arena.produce_err = -1;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_string_equal(why.text, "made of nothing");
	assert_int_equal(arena.puts, 0);
	end(&b);
}

static void with_gpus_the_slot_is_watched_until_it_is_free(void **state)
{
	static const struct broadcast_options with_gpus = {
		.readers = 1,
		.gpu = true,
	};
	struct broadcast b;

	(void)state;
	begin(&b, false);
	b.options = &with_gpus;
	arena.free_ms = 100.5;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_true(rounds[0].slot_free_ms == 0.5);
	/* Seen free before the worker saw its copy end. */
	arena.free_ms = 99;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_true(rounds[1].slot_free_ms == 0);
	/* Nobody has verified anything: it is not waited for. */
	arena.free_ms = 100.5;
	arena.forget = true;
	assert_int_equal(broadcast_round_run(&b, &why), 0);
	assert_int_equal(rounds[2].verified, 0);
	assert_true(rounds[2].slot_free_ms == 0);
	assert_int_equal(arena.watches, 0);
	end(&b);
}

static void over_sockets_there_is_no_arena(void **state)
{
	static const struct broadcast_options over_sockets = {
		.readers = 1,
		.gpu = true,
		.socket = true,
	};
	struct broadcast b;
	int i;

	(void)state;
	begin(&b, false);
	b.options = &over_sockets;
	for (i = 0; i < 2; i++) {
		assert_int_equal(broadcast_round_run(&b, &why), 0);
		assert_int_equal(rounds[i].verified, 1);
		assert_true(rounds[i].all_verified_ms >= rounds[i].put_ms);
	}
	assert_int_equal(arena.streams, 2);
	assert_int_equal(arena.produces, 1);
	assert_int_equal(arena.puts + arena.loans + arena.watches, 0);
	arena.stream_err = true;
	assert_int_equal(broadcast_round_run(&b, &why), -1);
	assert_string_equal(why.text, "the stream has dried up");
	assert_int_equal(b.rounds, 2);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_once_and_put_every_round),
		cmocka_unit_test(
			a_decoded_tensor_is_produced_in_the_slot_then_put),
		cmocka_unit_test(a_put_that_copies_nothing_is_noticed),
		cmocka_unit_test(a_decline_for_want_of_a_slot_is_tried_again),
		cmocka_unit_test(a_decline_for_good_ends_the_broadcast),
		cmocka_unit_test(a_loan_that_cannot_be_filled_is_given_back),
		cmocka_unit_test(a_loan_is_given_back_exactly_once),
		cmocka_unit_test(a_file_that_cannot_be_read_ends_the_broadcast),
		cmocka_unit_test(
			with_gpus_the_slot_is_watched_until_it_is_free),
		cmocka_unit_test(over_sockets_there_is_no_arena),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
