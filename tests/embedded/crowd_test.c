// SPDX-License-Identifier: MIT
/*
 * Crowds of peers at once: garbage and floods disturb no reader, and what the
 * server answers is what it means to say.
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "fixture.h"

#define CROWD 8

static uint64_t random_state;

/* The same numbers in every run. */
static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void cycle(struct arena *arena, struct reader *r, uint8_t byte)
{
	struct tensorarena_borrow b;

	put(arena, 5000, byte);
	assert_int_equal(next(r, &b), 0);
	assert_true(sees(r, &b, byte));
	assert_int_equal(release(r, &b.ticket), 0);
}

/* ---- garbage ---- */

/* A message of any length, of which the start is often right. */
static size_t make_garbage(struct ta_wire_message *msg)
{
	static const uint32_t commands[] = {
		TENSORARENA_ATTACH,  TENSORARENA_NEXT,	 TENSORARENA_BORROW,
		TENSORARENA_RELEASE, TENSORARENA_DETACH, TA_WIRE_UNSEE,
		TA_WIRE_STALE,	     TA_WIRE_MEMORY,
	};
	uint64_t *words = (uint64_t *)msg;
	size_t i;

	for (i = 0; i < sizeof(*msg) / sizeof(*words); i++)
		words[i] = random_number();
	if (random_number() % 8)
		msg->header.magic = TA_WIRE_MAGIC;
	if (random_number() % 8)
		msg->header.command = commands[random_number() % 8];
	if (random_number() % 8)
		return sizeof(msg->header) +
		       ta_wire_payload(msg->header.command) %
			       TA_WIRE_PAYLOAD_MAX;
	return random_number() % sizeof(*msg);
}

/* Sends one piece of garbage, and comes again when that was too much. */
static void throw_garbage(const struct arena *arena, int *sock)
{
	struct ta_wire_message msg;
	size_t size = make_garbage(&msg);
	char answer[2048];

	if (*sock < 0)
		*sock = random_number() % 2 ? raw_open(arena) : raw_dial(arena);
	if (send(*sock, &msg, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
	    !recv(*sock, answer, sizeof(answer), MSG_DONTWAIT)) {
		close(*sock);
		*sock = -1;
	}
}

static void garbage_of_a_crowd_disturbs_no_reader(void **state)
{
	const uint64_t seed = 20240607;
	int sock[CROWD], i;
	struct arena arena;
	struct reader r;
	uint32_t fds;

	(void)state;
	print_message("# seed %llu\n", (unsigned long long)seed);
	random_state = seed;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	cycle(&arena, &r, 1);
	fds = count_fds();
	memset(sock, -1, sizeof(sock));
	for (i = 0; i < 4000; i++) {
		throw_garbage(&arena, &sock[random_number() % CROWD]);
		if (i % 100)
			continue;
		/* Some of the crowd are readers, too, and hold what comes. */
		settle(&r);
		assert_int_equal(stats(&arena).published + stats(&arena).free,
				 4);
	}
	for (i = 0; i < CROWD; i++)
		if (sock[i] >= 0)
			close(sock[i]);
	await_open_seats(&arena, 1);
	settle(&r);
	cycle(&arena, &r, 2);
	assert_int_equal(stats(&arena).free, 4);
	/* The server's ends, and new memory's, that a put may have needed. */
	assert_true(count_fds() <= fds + 4);
	reader_close(&r);
	arena_close(&arena);
}

/* ---- floods ---- */

/* Good requests, some always under way, for as long as it lives. */
static void flood(const struct arena *arena)
{
	struct ta_wire_message request = raw_message(TENSORARENA_BORROW);
	struct ta_wire_message answer;
	unsigned int ahead = 0;
	int sock;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sock = raw_open(arena);
	for (;;) {
		/* Who lets too many answers lie is thrown out. */
		if (ahead++ >= 8 && recv(sock, &answer, sizeof(answer), 0) <= 0)
			_exit(1);
		if (raw_send(sock, &request))
			_exit(2);
	}
}

static void floods_are_served_in_turn_with_everybody(void **state)
{
	struct arena arena;
	struct reader r;
	pid_t pid[CROWD];
	int i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < CROWD; i++) {
		pid[i] = fork();
		if (!pid[i])
			flood(&arena);
	}
	await_open_seats(&arena, CROWD + 1);
	for (i = 0; i < 200; i++) {
		struct tensorarena_borrow b;
		struct tensorarena_publish pub = {
			.readers = (uintptr_t)&r.args.reader,
			.nr_readers = 1,
		};
		struct tensorarena_acquire acq;

		assert_int_equal(acquire(&arena, 100, &acq), 0);
		pub.slot = acq.slot;
		pub.generation = acq.generation;
		pub.nbytes = 100;
		assert_int_equal(writer_call(&arena, TENSORARENA_PUBLISH, &pub),
				 0);
		assert_int_equal(pub.addressed, 1);
		assert_int_equal(next(&r, &b), 0);
		assert_int_equal(release(&r, &b.ticket), 0);
	}
	/* They are there still, and were not thrown out for it. */
	assert_int_equal(stats(&arena).nr_readers, CROWD + 1);
	for (i = 0; i < CROWD; i++) {
		kill(pid[i], SIGKILL);
		assert_int_equal(reap(pid[i]), -SIGKILL);
	}
	await_open_seats(&arena, 1);
	cycle(&arena, &r, 1);
	reader_close(&r);
	arena_close(&arena);
}

/* ---- answers ---- */

#define UNTOLD 0xa5

static bool is_told(const void *data, size_t size)
{
	static const uint8_t untold[4] = { UNTOLD, UNTOLD, UNTOLD, UNTOLD };
	size_t i;

	for (i = 0; i + sizeof(untold) <= size; i += sizeof(untold))
		if (!memcmp((const uint8_t *)data + i, untold, sizeof(untold)))
			return false;
	return true;
}

/* A request whose structure is as long as can be, its out fields untold. */
static struct ta_wire_message long_request(uint32_t command)
{
	const uint32_t sizes = (uint32_t)_IOC_SIZEMASK << _IOC_SIZESHIFT;
	size_t size = ta_wire_payload(command);
	struct ta_wire_message msg = raw_message(command);

	msg.header.command &= ~sizes;
	msg.header.command |= (uint32_t)TA_WIRE_PAYLOAD_MAX << _IOC_SIZESHIFT;
	memset(msg.bytes, UNTOLD, size);
	memset(msg.bytes + size, 0, sizeof(msg.bytes) - size);
	return msg;
}

/* The answer's payload: all told, and zero where there are no fields. */
static void assert_answered(int sock, struct ta_wire_message *msg, size_t size)
{
	size_t i;

	assert_int_equal(raw_ask(sock, msg), 0);
	assert_true(is_told(msg->bytes, size));
	for (i = size; i < sizeof(msg->bytes); i++)
		assert_int_equal(msg->bytes[i], 0);
}

static void answers_tell_all_they_should_and_nothing_else(void **state)
{
	struct ta_wire_message msg, before;
	struct tensorarena_ticket ticket;
	struct arena arena;
	int sock;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	ticket = put(&arena, 10, 1);
	sock = raw_dial(&arena);

	msg = long_request(TENSORARENA_ATTACH);
	msg.attach.arena = arena.handle.arena;
	memcpy(msg.attach.cookie, arena.handle.cookie,
	       sizeof(msg.attach.cookie));
	msg.attach.flags = 0;
	msg.attach.reserved = 0;
	assert_answered(sock, &msg, sizeof(msg.attach));

	msg = long_request(TENSORARENA_NEXT);
	msg.borrow.flags = 0;
	msg.borrow.reserved = 0;
	assert_answered(sock, &msg, sizeof(msg.borrow));
	assert_memory_equal(&msg.borrow.ticket, &ticket, sizeof(ticket));

	msg = long_request(TENSORARENA_BORROW);
	msg.borrow.flags = 0;
	msg.borrow.reserved = 0;
	msg.borrow.ticket = ticket;
	assert_answered(sock, &msg, sizeof(msg.borrow));

	msg = long_request(TA_WIRE_STALE);
	assert_answered(sock, &msg, sizeof(struct ta_wire_stale));

	/* A refusal sends back what came. */
	msg = long_request(TENSORARENA_NEXT);
	before = msg;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	assert_memory_equal(msg.bytes, before.bytes, sizeof(msg.bytes));

	msg = long_request(TENSORARENA_DETACH);
	msg.detach.flags = 0;
	assert_answered(sock, &msg, sizeof(msg.detach));
	close(sock);
	arena_close(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_of_a_crowd_disturbs_no_reader),
		cmocka_unit_test(floods_are_served_in_turn_with_everybody),
		cmocka_unit_test(answers_tell_all_they_should_and_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded crowds", tests, NULL,
					   NULL);
}
