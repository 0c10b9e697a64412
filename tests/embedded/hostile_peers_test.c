// SPDX-License-Identifier: MIT
/*
 * Peers that do not play by the rules: they may end their own connection, and
 * nothing else.  Every test has a well-behaved reader that must not notice.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fixture.h"

/* How long the server leaves connections alone that it cannot accept. */
#define REST_NS 100000000

static atomic_uint accepts;

int __real_accept4(int sock, struct sockaddr *addr, socklen_t *length,
		   int flags);
int __wrap_accept4(int sock, struct sockaddr *addr, socklen_t *length,
		   int flags);

int __wrap_accept4(int sock, struct sockaddr *addr, socklen_t *length,
		   int flags)
{
	accepts++;
	return __real_accept4(sock, addr, length, flags);
}

struct scene {
	struct arena arena;
	struct reader good;
	uint32_t fds;
};

/*
 * An arena with a good reader; the uid policy is the test's.  Its slots are
 * built, so that puts need no more descriptors.
 */
static void scene_open(struct scene *s, uint32_t flags)
{
	struct tensorarena_populate pop = { .nbytes = MIB, .slots = 4 };

	arena_init(&s->arena, 1);
	s->arena.options.flags = flags;
	arena_open(&s->arena);
	reader_open(&s->arena, &s->good);
	assert_int_equal(writer_call(&s->arena, TENSORARENA_POPULATE, &pop), 0);
	put(&s->arena, MIB, 1);
	settle(&s->good);
	s->fds = count_fds();
}

/* The good reader and the writer work. */
static void scene_check(struct scene *s)
{
	struct tensorarena_borrow b;

	settle(&s->good);
	assert_int_equal(next(&s->good, &b), 0);
	assert_int_equal(release(&s->good, &b.ticket), 0);
	put(&s->arena, MIB, 2);
	assert_int_equal(stats(&s->arena).nr_readers, 1);
}

/* The same, and no descriptor has been left. */
static void scene_close(struct scene *s)
{
	scene_check(s);
	assert_int_equal(count_fds(), s->fds);
	reader_close(&s->good);
	arena_close(&s->arena);
}

/* The server hangs up on whoever sends this. */
static void assert_hangs_up_on(struct scene *s, const void *data, size_t size)
{
	int sock = raw_dial(&s->arena);

	assert_int_equal(send(sock, data, size, MSG_NOSIGNAL), size);
	assert_true(raw_hung_up(sock));
	close(sock);
	/* The same from one that is seated. */
	sock = raw_open(&s->arena);
	assert_int_equal(send(sock, data, size, MSG_NOSIGNAL), size);
	assert_true(raw_hung_up(sock));
	close(sock);
	await_open_seats(&s->arena, 1);
}

static void malformed_messages_end_the_connection(void **state)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_DETACH);
	size_t header = sizeof(msg.header);
	char large[sizeof(msg) + 1] = { 0 };
	char garbage[100];
	struct scene s;

	(void)state;
	scene_open(&s, 0);
	memset(garbage, 0xab, sizeof(garbage));
	assert_hangs_up_on(&s, garbage, sizeof(garbage));
	assert_hangs_up_on(&s, garbage, 1);
	/* An empty one. */
	assert_hangs_up_on(&s, garbage, 0);
	/* Truncated: in the header, before and in the structure. */
	assert_hangs_up_on(&s, &msg, header - 1);
	assert_hangs_up_on(&s, &msg, header);
	assert_hangs_up_on(&s, &msg, header + sizeof(msg.detach) - 1);
	/* More than its command says. */
	assert_hangs_up_on(&s, &msg, header + sizeof(msg.detach) + 1);
	/* More than any command has. */
	msg.header.command = _IOC(_IOC_READ | _IOC_WRITE, TENSORARENA_IOC_MAGIC,
				  0x23, TA_WIRE_PAYLOAD_MAX + 1);
	memcpy(large, &msg, header);
	assert_hangs_up_on(&s, large, sizeof(large));
	/* Another format. */
	msg = raw_message(TENSORARENA_DETACH);
	msg.header.magic++;
	assert_hangs_up_on(&s, &msg, header + sizeof(msg.detach));
	msg = raw_message(TENSORARENA_DETACH);
	msg.header.id = 0;
	assert_hangs_up_on(&s, &msg, header + sizeof(msg.detach));
	scene_close(&s);
}

static void commands_out_of_place_are_unknown(void **state)
{
	struct ta_wire_message msg;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s, 0);
	sock = raw_dial(&s.arena);
	msg = raw_message(TENSORARENA_NEXT);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	msg = raw_message(TENSORARENA_INFO);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	msg = raw_message(0);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	msg = raw_message(TENSORARENA_ACQUIRE);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	close(sock);
	await_open_seats(&s.arena, 1);
	scene_close(&s);
}

/* The same command for a structure of another size. */
static uint32_t resized(uint32_t command, uint32_t size)
{
	return (command & ~((uint32_t)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

static void structures_of_other_sizes_are_judged_as_by_the_module(void **state)
{
	uint32_t known = sizeof(struct tensorarena_detach);
	struct ta_wire_message msg;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s, 0);
	sock = raw_dial(&s.arena);
	msg = raw_attach(&s.arena);
	msg.header.command = resized(TENSORARENA_ATTACH,
				     sizeof(struct tensorarena_attach) - 8);
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_attach(&s.arena);
	msg.header.command = resized(TENSORARENA_ATTACH, TA_WIRE_PAYLOAD_MAX);
	assert_int_equal(raw_ask(sock, &msg), 0);
	msg = raw_message(resized(TENSORARENA_DETACH, known - 4));
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(resized(TENSORARENA_DETACH, 0));
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(resized(TENSORARENA_DETACH, known + 8));
	msg.bytes[known + 7] = 1;
	assert_int_equal(raw_ask(sock, &msg), -E2BIG);
	msg = raw_message(resized(TENSORARENA_DETACH, known + 8));
	assert_int_equal(raw_ask(sock, &msg), 0);
	assert_int_equal(msg.header.command,
			 resized(TENSORARENA_DETACH, known + 8));
	close(sock);
	scene_close(&s);
}

static struct ta_wire_message raw_observe(const struct arena *arena)
{
	struct ta_wire_message msg = raw_message(TA_WIRE_OBSERVE);

	msg.observe.arena = arena->handle.arena;
	memcpy(msg.observe.cookie, arena->handle.cookie,
	       sizeof(msg.observe.cookie));
	return msg;
}

static void an_observer_is_held_to_the_rules_too(void **state)
{
	uint32_t known = sizeof(struct ta_wire_observe);
	struct ta_wire_message msg;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s, 0);
	sock = raw_dial(&s.arena);
	msg = raw_observe(&s.arena);
	msg.header.command = resized(TA_WIRE_OBSERVE, known - 8);
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_observe(&s.arena);
	msg.observe.flags = 1;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_observe(&s.arena);
	msg.observe.arena++;
	assert_int_equal(raw_ask(sock, &msg), -EACCES);
	msg = raw_observe(&s.arena);
	msg.observe.cookie[TENSORARENA_COOKIE_BYTES - 1] ^= 1;
	assert_int_equal(raw_ask(sock, &msg), -EACCES);
	assert_int_equal(msg.observe.st.slots, 0);
	msg = raw_observe(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	assert_int_equal(msg.observe.st.slots, 4);
	assert_int_equal(msg.observe.cookie[0], 0);
	/* It may still attach; as a reader it has no business there. */
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	msg = raw_observe(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), -ENOTTY);
	close(sock);
	scene_close(&s);
}

static void malformed_fields_are_refused_by_the_server_too(void **state)
{
	struct ta_wire_message msg;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s, 0);
	sock = raw_dial(&s.arena);
	msg = raw_attach(&s.arena);
	msg.attach.flags = 1;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_attach(&s.arena);
	msg.attach.reserved = 1;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	msg = raw_message(TENSORARENA_NEXT);
	msg.borrow.flags = 1;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(TENSORARENA_BORROW);
	msg.borrow.ticket.reserved = 1;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(TENSORARENA_BORROW);
	msg.borrow.ticket.arena = s.arena.handle.arena;
	msg.borrow.ticket.slot = ~0u;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(TENSORARENA_RELEASE);
	msg.ref.slot = 4;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	msg = raw_message(TA_WIRE_UNSEE);
	msg.ref.slot = ~0u;
	assert_int_equal(raw_ask(sock, &msg), 0);
	msg = raw_message(TA_WIRE_MEMORY);
	msg.ref.slot = ~0u;
	assert_int_equal(raw_ask(sock, &msg), -EINVAL);
	/* A slot without memory is no error. */
	msg.ref.slot = 0;
	assert_int_equal(raw_ask(sock, &msg), 0);
	close(sock);
	await_open_seats(&s.arena, 1);
	scene_close(&s);
}

static void the_secret_is_needed_whole(void **state)
{
	struct ta_wire_message msg;
	struct scene s;
	int sock, i;

	(void)state;
	scene_open(&s, 0);
	sock = raw_dial(&s.arena);
	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++) {
		msg = raw_attach(&s.arena);
		msg.attach.cookie[i] ^= 1;
		assert_int_equal(raw_ask(sock, &msg), -EACCES);
	}
	msg = raw_attach(&s.arena);
	msg.attach.arena ^= 1;
	assert_int_equal(raw_ask(sock, &msg), -EACCES);
	/* Nothing of it comes back. */
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		assert_int_equal(msg.attach.cookie[i], 0);
	close(sock);
	await_open_seats(&s.arena, 1);
	scene_close(&s);
}

static void an_unread_answer_ends_the_connection(void **state)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_NEXT);
	struct pollfd pfd = { .events = POLLOUT };
	struct scene s;

	(void)state;
	scene_open(&s, 0);
	pfd.fd = raw_open(&s.arena);
	/* Until its end of the socket is full of answers and the server quits. */
	do {
		assert_int_equal(poll(&pfd, 1, GUARD_MS), 1);
	} while (raw_send(pfd.fd, &msg) != -EPIPE);
	close(pfd.fd);
	await_open_seats(&s.arena, 1);
	scene_close(&s);
}

static void send_with_fds(int sock, const struct ta_wire_message *msg, int fd,
			  int nr)
{
	union {
		char buf[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = { .buf = { 0 } };
	struct iovec iov = {
		.iov_base = (void *)msg,
		.iov_len = sizeof(msg->header) +
			   ta_wire_payload(msg->header.command),
	};
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = CMSG_SPACE(nr * sizeof(int)),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&hdr);
	int i;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(nr * sizeof(int));
	for (i = 0; i < nr; i++)
		memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(fd));
	assert_true(sendmsg(sock, &hdr, MSG_NOSIGNAL) > 0);
}

static void unexpected_descriptors_are_closed(void **state)
{
	static const int counts[] = { 1, 2, 3, 4, 5, 64 };
	struct ta_wire_message request, msg;
	struct ta_wire_parcel parcel;
	struct scene s;
	int sock, null;
	size_t i;

	(void)state;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(null >= 0);
	scene_open(&s, 0);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		request = raw_message(TENSORARENA_NEXT);
		sock = raw_open(&s.arena);
		send_with_fds(sock, &request, null, counts[i]);
		assert_true(raw_hung_up(sock));
		close(sock);
		request = raw_attach(&s.arena);
		request.attach.arena++;
		sock = raw_dial(&s.arena);
		send_with_fds(sock, &request, null, counts[i]);
		if (counts[i] == 1) {
			assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
			assert_int_equal(msg.header.result, -EACCES);
		} else {
			assert_true(raw_hung_up(sock));
		}
		close(sock);
		/* With garbage around them, too. */
		request.header.magic = 0;
		sock = raw_dial(&s.arena);
		send_with_fds(sock, &request, null, counts[i]);
		assert_true(raw_hung_up(sock));
		close(sock);
	}
	await_open_seats(&s.arena, 1);
	scene_close(&s);
	close(null);
}

/* In a child with this effective uid: what attaching says. */
static int attach_as(const struct arena *arena, uid_t uid)
{
	struct reader r;
	pid_t pid;
	int err;

	pid = fork();
	if (!pid) {
		if (seteuid(0) || seteuid(uid))
			_exit(200);
		err = attach(arena, -1, &r);
		if (!err)
			reader_close(&r);
		_exit(-err);
	}
	return reap(pid);
}

static void other_uids_are_refused_unless_invited(void **state)
{
	struct scene s;

	(void)state;
	if (geteuid()) {
		print_message("# only root can be somebody else\n");
		skip();
	}
	scene_open(&s, 0);
	assert_int_equal(attach_as(&s.arena, 1234), EACCES);
	assert_int_equal(attach_as(&s.arena, 0), 0);
	scene_close(&s);

	scene_open(&s, TA_ANY_UID);
	assert_int_equal(attach_as(&s.arena, 1234), 0);
	scene_close(&s);

	/* Of an arena that is not root's, its owner and root are readers. */
	assert_int_equal(seteuid(1234), 0);
	scene_open(&s, 0);
	assert_int_equal(attach_as(&s.arena, 0), 0);
	assert_int_equal(attach_as(&s.arena, 1234), 0);
	assert_int_equal(attach_as(&s.arena, 1235), EACCES);
	scene_close(&s);
	assert_int_equal(seteuid(0), 0);
}

static void connections_that_never_attach_are_closed_in_time(void **state)
{
	struct ta_wire_message msg;
	struct scene s;
	int idle, wrong;

	(void)state;
	scene_open(&s, 0);
	idle = raw_dial(&s.arena);
	wrong = raw_dial(&s.arena);
	msg = raw_attach(&s.arena);
	msg.attach.arena++;
	assert_int_equal(raw_ask(wrong, &msg), -EACCES);
	/* Meanwhile others are served. */
	scene_check(&s);
	assert_true(raw_hung_up(idle));
	assert_true(raw_hung_up(wrong));
	close(idle);
	close(wrong);
	scene_close(&s);
}

static void crowds_that_do_not_attach_are_thinned_from_the_oldest(void **state)
{
	int crowd[3 * TA_MAX_UNSEATED];
	struct ta_wire_message msg;
	struct scene s;
	int i, nr = 3 * TA_MAX_UNSEATED;

	(void)state;
	scene_open(&s, 0);
	for (i = 0; i < nr; i++) {
		crowd[i] = raw_dial(&s.arena);
		assert_true(crowd[i] >= 0);
		settle(&s.good);
		/* Ours, and the server's of those it keeps. */
		assert_in_range(count_fds(), 0,
				s.fds + i + 1 + TA_MAX_UNSEATED);
	}
	/* The last may still attach. */
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(crowd[nr - 1], &msg), 0);
	assert_true(raw_hung_up(crowd[0]));
	for (i = 0; i < nr; i++)
		close(crowd[i]);
	await_open_seats(&s.arena, 1);
	settle(&s.good);
	scene_close(&s);
}

static void the_evicted_and_detached_that_stay_are_thinned_too(void **state)
{
	struct tensorarena_evict evict = { 0 };
	int crowd[2 * TA_MAX_UNSEATED];
	struct ta_wire_message msg;
	struct scene s;
	int i, nr = 2 * TA_MAX_UNSEATED;

	(void)state;
	scene_open(&s, 0);
	for (i = 0; i < nr; i++) {
		crowd[i] = raw_dial(&s.arena);
		msg = raw_attach(&s.arena);
		assert_int_equal(raw_ask(crowd[i], &msg), 0);
		if (i % 2) {
			msg = raw_message(TENSORARENA_DETACH);
			assert_int_equal(raw_ask(crowd[i], &msg), 0);
			continue;
		}
		evict.reader = msg.attach.reader;
		assert_int_equal(
			writer_call(&s.arena, TENSORARENA_EVICT, &evict), 0);
		settle(&s.good);
	}
	msg = raw_message(TENSORARENA_NEXT);
	assert_int_equal(raw_ask(crowd[nr - 1], &msg), -ESHUTDOWN);
	msg = raw_message(TENSORARENA_NEXT);
	assert_int_equal(raw_ask(crowd[nr - 2], &msg), -EOWNERDEAD);
	assert_true(raw_hung_up(crowd[0]));
	for (i = 0; i < nr; i++)
		close(crowd[i]);
	settle(&s.good);
	scene_close(&s);
}

static void a_reader_cannot_make_the_servers_eventfd_block(void **state)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	uint64_t most = UINT64_MAX - 1;
	struct scene s;
	int sock, poll;

	(void)state;
	scene_open(&s, 0);
	msg = raw_attach(&s.arena);
	sock = raw_dial(&s.arena);
	assert_int_equal(raw_send(sock, &msg), 0);
	assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
	assert_int_equal(parcel.nr_fds, TA_WIRE_ATTACH_FDS);
	poll = parcel.fds[TA_WIRE_FD_POLL];
	/* What it gets takes no data and has flags of its own. */
	assert_true(write(poll, &most, sizeof(most)) < 0);
	assert_true(read(poll, &most, sizeof(most)) < 0);
	assert_int_equal(fcntl(poll, F_SETFL, 0), 0);
	put(&s.arena, 1, 1);
	assert_true(polls(poll, POLLIN, GUARD_MS));
	ta_wire_discard(&parcel);
	close(sock);
	await_open_seats(&s.arena, 1);
	scene_close(&s);
}

static void running_out_of_descriptors_is_survived(void **state)
{
	struct rlimit old, tight;
	struct ta_wire_message msg;
	struct reader late;
	struct scene s;
	unsigned int tried;
	uint64_t start;
	int sock, i;

	(void)state;
	scene_open(&s, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	sock = raw_dial(&s.arena);
	settle(&s.good);
	/* The server has accepted this one, but has none left to seat it. */
	tight.rlim_cur = (rlim_t)sock + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), -EMFILE);
	/* And none for this one, whose end here is the last, until there is. */
	close(sock);
	settle(&s.good);
	tight.rlim_cur = (rlim_t)sock + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	assert_int_equal(raw_dial(&s.arena), sock);
	settle(&s.good);
	/* Until then the server rests; each settling is a round of its loop. */
	start = ta_now_ns();
	accepts = 0;
	for (i = 0; i < 1000; i++)
		settle(&s.good);
	tried = accepts;
	assert_in_range(tried, 0, (ta_now_ns() - start) / REST_NS + 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	msg = raw_attach(&s.arena);
	assert_int_equal(raw_ask(sock, &msg), 0);
	close(sock);
	await_open_seats(&s.arena, 1);
	assert_int_equal(attach(&s.arena, -1, &late), 0);
	reader_close(&late);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_messages_end_the_connection),
		cmocka_unit_test(commands_out_of_place_are_unknown),
		cmocka_unit_test(
			structures_of_other_sizes_are_judged_as_by_the_module),
		cmocka_unit_test(
			malformed_fields_are_refused_by_the_server_too),
		cmocka_unit_test(an_observer_is_held_to_the_rules_too),
		cmocka_unit_test(the_secret_is_needed_whole),
		cmocka_unit_test(an_unread_answer_ends_the_connection),
		cmocka_unit_test(unexpected_descriptors_are_closed),
		cmocka_unit_test(other_uids_are_refused_unless_invited),
		cmocka_unit_test(
			connections_that_never_attach_are_closed_in_time),
		cmocka_unit_test(
			crowds_that_do_not_attach_are_thinned_from_the_oldest),
		cmocka_unit_test(
			the_evicted_and_detached_that_stay_are_thinned_too),
		cmocka_unit_test(
			a_reader_cannot_make_the_servers_eventfd_block),
		cmocka_unit_test(running_out_of_descriptors_is_survived),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded hostile peers", tests,
					   NULL, NULL);
}
