// SPDX-License-Identifier: MIT
/*
 * Workers that misbehave, as their parent sees them.
 *
 * crew_start() starts the running program as a worker: this one then acts as
 * the environment tells it to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tools/broadcast_crew.h>
#include <tools/broadcast_wire.h>
#include <tools/stop.h>

#include "test.h"

#define ACT "CREW_TEST_ACT"
#define ROUNDS 3
#define READERS 3
#define DIGEST 0x1234567890abcdefULL
#define NBYTES 77
#define HANDLE "the handle"
/* More than any socket buffers. */
#define STREAMED (4 << 20)

static const struct ta_tensor tensor = {
	.code = TA_UINT,
	.bits = 8,
	.lanes = 1,
	.ndim = 1,
	.shape = { NBYTES },
};

const char *ta_strerror(int err)
{
	return strerror(-err);
}

/* ---- the worker ---- */

static bool acts(const char *how)
{
	return !strcmp(getenv(ACT), how);
}

static void answer(const struct ta_ticket *ticket)
{
	struct wire_seen seen = {
		.nbytes = NBYTES,
		.digest = DIGEST,
		.ms = 1.5,
		.tensor = tensor,
	};

	if (acts("exits"))
		_exit(5);
	if (acts("tells tensors apart"))
		seen.digest += ticket->slot;
	if (acts("sees other bytes"))
		seen.digest ^= 1;
	if (acts("sees another shape"))
		seen.tensor.shape[0]--;
	if (acts("sees another size"))
		seen.nbytes++;
	if (acts("sees nothing"))
		seen.err = -ESTALE;
	if (acts("is terse"))
		send(WIRE_FD, &seen, sizeof(seen) - 1, 0);
	else if (!acts("is silent"))
		send(WIRE_FD, &seen, sizeof(seen), 0);
}

/* Tensors that are received: their first byte and their last stand for all. */
static void receive(void)
{
	static char bytes[STREAMED];
	struct wire_tensor message;
	struct wire_seen seen = { .digest = DIGEST };

	while (recv(WIRE_FD, &message, sizeof(message), 0) == sizeof(message)) {
		if (acts("exits"))
			_exit(5);
		if (acts("takes nothing"))
			pause();
		if (recv(WIRE_BYTES_FD, bytes, message.nbytes, MSG_WAITALL) !=
		    (ssize_t)message.nbytes)
			_exit(6);
		seen.nbytes = message.nbytes;
		seen.tensor = message.tensor;
		if (bytes[0] != 'a' || bytes[STREAMED - 1] != 'z')
			seen.err = -EIO;
		send(WIRE_FD, &seen, sizeof(seen), 0);
	}
}

static int act(void)
{
	struct wire_attached attached = { .seat = 9 };
	struct wire_handle handle;
	struct ta_ticket ticket;

	if (recv(WIRE_FD, &handle, sizeof(handle), 0) != sizeof(handle) ||
	    strcmp(handle.text, HANDLE))
		return 1;
	if (acts("never attaches"))
		return 6;
	if (acts("cannot attach"))
		attached.err = -EUSERS;
	send(WIRE_FD, &attached, sizeof(attached), 0);
	if (handle.socket)
		receive();
	while (recv(WIRE_FD, &ticket, sizeof(ticket), 0) == sizeof(ticket))
		answer(&ticket);
	/* The parent does not wait for ever for one that will not leave. */
	if (acts("stays"))
		pause();
	return 0;
}

/* ---- the parent ---- */

static struct reason why;

static int start(struct crew *crew, const char *how)
{
	setenv(ACT, how, 1);
	return crew_start(crew, READERS, ROUNDS, HANDLE, -1, &why);
}

static int one_round(struct crew *crew, int stop)
{
	static const struct ta_ticket ticket = { .nbytes = NBYTES };
	const struct crew_expects expects = {
		.tensor = &tensor,
		.nbytes = NBYTES,
		.digest = DIGEST,
	};

	crew_send(crew, &ticket);
	return crew_collect(crew, &expects, stop, &why);
}

static void good_workers_are_counted(void **state)
{
	struct crew crew = { 0 };
	int i;

	(void)state;
	assert_int_equal(start(&crew, "is good"), 0);
	for (i = 0; i < ROUNDS; i++)
		assert_int_equal(one_round(&crew, -1), READERS);
	for (i = 0; i < READERS; i++) {
		assert_int_equal(crew.worker[i].seat, 9);
		assert_int_equal(crew.worker[i].verified, ROUNDS);
		assert_true(crew.worker[i].ms[ROUNDS - 1] == 1.5);
	}
	crew_end(&crew, false);
}

static void answers_are_held_against_their_own_tickets(void **state)
{
	struct crew_expects expects[ROUNDS];
	uint32_t verified[ROUNDS] = { 0 };
	struct crew crew = { 0 };
	struct ta_ticket ticket;
	uint32_t i;

	(void)state;
	assert_int_equal(start(&crew, "tells tensors apart"), 0);
	crew_restart(&crew);
	for (i = 0; i < ROUNDS; i++) {
		ticket = (struct ta_ticket){ .nbytes = NBYTES, .slot = i };
		expects[i] = (struct crew_expects){
			.tensor = &tensor,
			.nbytes = NBYTES,
			/* The last is expected to be another. */
			.digest = DIGEST + i + (i == ROUNDS - 1),
		};
		crew_send(&crew, &ticket);
		assert_int_equal(crew_take_in(&crew, expects, verified, NULL, 0,
					      -1, &why),
				 0);
	}
	assert_int_equal(crew_collect_all(&crew, expects, verified, -1, &why),
			 0);
	for (i = 0; i < ROUNDS; i++)
		assert_int_equal(verified[i], i < ROUNDS - 1 ? READERS : 0);
	for (i = 0; i < READERS; i++)
		assert_int_equal(crew.worker[i].verified, ROUNDS - 1);
	crew_end(&crew, false);
}

/* Neither an answer nor anything else: it is not for ever. */
static void the_wait_for_a_slot_ends(void **state)
{
	const struct crew_expects expects = { .tensor = &tensor };
	static const struct ta_ticket ticket;
	struct pollfd also = { .events = POLLIN };
	struct crew crew = { 0 };
	uint32_t verified = 0;
	int pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	also.fd = pair[0];
	assert_int_equal(start(&crew, "is silent"), 0);
	crew_restart(&crew);
	crew_send(&crew, &ticket);
	assert_int_equal(crew_take_in(&crew, &expects, &verified, &also, 20, -1,
				      &why),
			 0);
	/* There is a slot. */
	assert_int_equal(write(pair[1], "!", 1), 1);
	assert_int_equal(crew_take_in(&crew, &expects, &verified, &also, -1, -1,
				      &why),
			 0);
	assert_int_equal(verified, 0);
	crew_end(&crew, true);
	close(pair[0]);
	close(pair[1]);
}

static void what_is_not_exactly_right_does_not_count(void **state)
{
	static const char *const how[] = { "sees other bytes",
					   "sees another shape",
					   "sees another size",
					   "sees nothing" };
	struct crew crew = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(how); i++) {
		assert_int_equal(start(&crew, how[i]), 0);
		assert_int_equal(one_round(&crew, -1), 0);
		assert_int_equal(one_round(&crew, -1), 0);
		assert_int_equal(crew.worker[0].verified, 0);
		assert_true(crew.worker[0].socket >= 0);
		crew_end(&crew, false);
	}
}

static void workers_that_leave_or_talk_nonsense_are_finished(void **state)
{
	static const char *const how[] = { "exits", "is terse" };
	struct crew crew = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(how); i++) {
		assert_int_equal(start(&crew, how[i]), 0);
		assert_int_equal(one_round(&crew, -1), -1);
		assert_string_equal(why.text, "no worker is left");
		assert_int_equal(crew.worker[0].socket, -1);
		crew_end(&crew, false);
	}
}

static void a_start_that_fails_leaves_nobody(void **state)
{
	struct crew crew = { 0 };

	(void)state;
	assert_int_equal(start(&crew, "never attaches"), -1);
	assert_string_equal(why.text, "not every worker could start");
	assert_null(crew.worker);
	assert_int_equal(start(&crew, "cannot attach"), -1);
	assert_non_null(strstr(why.text, "cannot attach"));
	assert_null(crew.worker);
}

static void a_stop_ends_the_wait_for_a_silent_worker(void **state)
{
	struct crew crew = { 0 };
	int stop[2];

	(void)state;
	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "!", 1), 1);
	assert_int_equal(start(&crew, "is silent"), 0);
	assert_int_equal(one_round(&crew, stop[0]), -1);
	assert_string_equal(why.text, "interrupted");
	crew_end(&crew, true);
	close(stop[0]);
	close(stop[1]);
}

/* One tensor over sockets, and what was seen of it. */
static int stream(struct crew *crew, const char *how, int stop)
{
	const struct crew_expects expects = {
		.tensor = &tensor,
		.nbytes = STREAMED,
		.digest = DIGEST,
	};
	static char bytes[STREAMED];
	int err;

	bytes[0] = 'a';
	bytes[STREAMED - 1] = 'z';
	crew->over_socket = true;
	assert_int_equal(start(crew, how), 0);
	err = crew_send_bytes(crew, &tensor, bytes, STREAMED, stop, &why);
	if (!err)
		err = crew_collect(crew, &expects, stop, &why);
	crew_end(crew, err < 0);
	return err;
}

static void tensors_go_over_sockets_too(void **state)
{
	struct crew crew = { 0 };

	(void)state;
	assert_int_equal(stream(&crew, "is good", -1), READERS);
}

static void a_receiver_that_leaves_is_finished(void **state)
{
	struct crew crew = { 0 };

	(void)state;
	assert_int_equal(stream(&crew, "exits", -1), -1);
	assert_string_equal(why.text, "no worker is left");
}

static void a_stop_ends_the_wait_for_a_receiver(void **state)
{
	struct crew crew = { 0 };
	int stop[2];

	(void)state;
	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "!", 1), 1);
	assert_int_equal(stream(&crew, "takes nothing", stop[0]), -1);
	assert_string_equal(why.text, "interrupted");
	close(stop[0]);
	close(stop[1]);
}

static void a_worker_that_will_not_leave_is_killed(void **state)
{
	struct crew crew = { 0 };

	(void)state;
	assert_int_equal(start(&crew, "stays"), 0);
	crew_end(&crew, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_workers_are_counted),
		cmocka_unit_test(answers_are_held_against_their_own_tickets),
		cmocka_unit_test(the_wait_for_a_slot_ends),
		cmocka_unit_test(what_is_not_exactly_right_does_not_count),
		cmocka_unit_test(
			workers_that_leave_or_talk_nonsense_are_finished),
		cmocka_unit_test(a_start_that_fails_leaves_nobody),
		cmocka_unit_test(a_stop_ends_the_wait_for_a_silent_worker),
		cmocka_unit_test(a_worker_that_will_not_leave_is_killed),
		cmocka_unit_test(tensors_go_over_sockets_too),
		cmocka_unit_test(a_receiver_that_leaves_is_finished),
		cmocka_unit_test(a_stop_ends_the_wait_for_a_receiver),
	};

	if (argc > 1 && !strcmp(argv[1], "worker"))
		return act();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
