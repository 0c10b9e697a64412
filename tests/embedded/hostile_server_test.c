// SPDX-License-Identifier: MIT
/*
 * A server that does not play by the rules: the reader gets an error, not a
 * fault, a leak or an endless wait; and what it holds it keeps.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include "fixture.h"
#include "lib/pidfd.h"

#define ARENA 77

struct fake;

/**
 * struct fake - a made-up server
 * @answer: changes the answer to each request, which is a correct one when it
 *	is called; returns false to hang up instead
 * @variant: what @answer is to do
 * @msg: the answer
 * @fds: descriptors to send along; closed afterwards
 * @nr_fds: how many
 * @sock: its end
 * @asked: requests so far
 */
struct fake {
	bool (*answer)(struct fake *fake);
	int variant;
	struct ta_wire_message msg;
	int fds[8];
	uint32_t nr_fds;
	int sock;
	uint32_t asked;
	pthread_t thread;
};

static int make_memory(size_t bytes, int seals, uint8_t byte)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *data;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		abort();
	memset(data, byte, bytes);
	munmap(data, bytes);
	if (fcntl(fd, F_ADD_SEALS, seals))
		abort();
	return fd;
}

/* The correct answers: 2 slots of 2 MiB, one of them published, full of 1s. */
static void answer_correctly(struct fake *fake)
{
	struct ta_wire_message *msg = &fake->msg;

	msg->header.result = 0;
	fake->nr_fds = 0;
	switch (msg->header.command) {
	case TENSORARENA_ATTACH:
		msg->attach.slot_bytes = 2 * MIB;
		msg->attach.stride = 2 * MIB;
		msg->attach.slots = 2;
		msg->attach.reader = 1;
		fake->fds[TA_WIRE_FD_POLL] = epoll_create1(EPOLL_CLOEXEC);
		fake->fds[TA_WIRE_FD_WRITER] = ta_pidfd_open(getpid());
		fake->fds[TA_WIRE_FD_RELEASED] = make_memory(
			sizeof(struct ta_wire_released), F_SEAL_SHRINK, 0);
		fake->nr_fds = TA_WIRE_ATTACH_FDS;
		break;
	case TENSORARENA_NEXT:
		memset(&msg->borrow, 0, sizeof(msg->borrow));
		msg->borrow.ticket.arena = ARENA;
		msg->borrow.ticket.generation = 1;
		msg->borrow.ticket.nbytes = MIB;
		fake->fds[0] = make_memory(2 * MIB, F_SEAL_SHRINK, 1);
		fake->nr_fds = 1;
		break;
	}
}

/* As ta_wire_send(), but with as many descriptors as one likes. */
static void send_answer(struct fake *fake)
{
	union {
		char buf[CMSG_SPACE(sizeof(fake->fds))];
		struct cmsghdr align;
	} control = { .buf = { 0 } };
	struct iovec iov = {
		.iov_base = &fake->msg,
		.iov_len = sizeof(fake->msg.header) +
			   ta_wire_payload(fake->msg.header.command),
	};
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t bytes = fake->nr_fds * sizeof(int);
	uint32_t i;

	if (fake->nr_fds) {
		hdr.msg_control = control.buf;
		hdr.msg_controllen = CMSG_SPACE(bytes);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.align), fake->fds, bytes);
	}
	sendmsg(fake->sock, &hdr, MSG_NOSIGNAL);
	for (i = 0; i < fake->nr_fds; i++)
		close(fake->fds[i]);
}

static void *serve(void *arg)
{
	struct fake *fake = arg;
	struct ta_wire_parcel parcel;

	for (;;) {
		polls(fake->sock, POLLIN, GUARD_MS);
		if (ta_wire_recv(fake->sock, &fake->msg, &parcel))
			break;
		ta_wire_discard(&parcel);
		fake->asked++;
		answer_correctly(fake);
		if (!fake->answer(fake))
			break;
		send_answer(fake);
	}
	close(fake->sock);
	return NULL;
}

/* Attaches to a fake server; its thread ends with the connection. */
static int fake_attach(struct fake *fake, bool (*answer)(struct fake *fake),
		       int variant, struct reader *reader)
{
	struct ta_handle handle = { .arena = ARENA };
	int pair[2], err;

	memset(fake, 0, sizeof(*fake));
	memset(reader, 0, sizeof(*reader));
	fake->answer = answer;
	fake->variant = variant;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fake->sock = pair[0];
	assert_int_equal(pthread_create(&fake->thread, NULL, serve, fake), 0);
	err = ta_engine_embedded.attach(&handle, pair[1], &reader->args,
					&reader->port);
	if (err) {
		/* Still ours. */
		assert_int_equal(close(pair[1]), 0);
		pthread_join(fake->thread, NULL);
	}
	return err;
}

static void fake_close(struct fake *fake, struct reader *reader)
{
	reader_close(reader);
	pthread_join(fake->thread, NULL);
}

static bool behave(struct fake *fake)
{
	(void)fake;
	return true;
}

static void a_fake_that_behaves_is_believed(void **state)
{
	struct tensorarena_borrow b;
	struct reader r;
	struct fake fake;
	uint32_t fds = count_fds();

	(void)state;
	assert_int_equal(fake_attach(&fake, behave, 0, &r), 0);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 1));
	assert_int_equal(release(&r, &b.ticket), 0);
	fake_close(&fake, &r);
	assert_int_equal(count_fds(), fds);
}

enum bad_attach {
	HANG_UP,
	NO_FDS,
	ONE_FD,
	NO_PIDFD,
	NO_EPOLL,
	NO_PAGE,
	SHORT_PAGE,
	SHRINKABLE_PAGE,
	TOO_MANY_FDS,
	NO_SLOTS,
	TOO_MANY_SLOTS,
	CROOKED_STRIDE,
	SMALL_STRIDE,
	HUGE_STRIDE,
	POSITIVE_RESULT,
	ABSURD_RESULT,
	OTHER_COMMAND,
	NO_MAGIC,
	REFUSAL,
};

static bool attach_badly(struct fake *fake)
{
	struct ta_wire_message *msg = &fake->msg;
	int null;

	/* The reader may say goodbye; that is answered properly. */
	if (msg->header.command != TENSORARENA_ATTACH)
		return true;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	switch (fake->variant) {
	case HANG_UP:
		break;
	case NO_FDS:
	case ONE_FD:
		while (fake->nr_fds > (fake->variant == ONE_FD))
			close(fake->fds[--fake->nr_fds]);
		break;
	case NO_PIDFD:
		dup3(null, fake->fds[TA_WIRE_FD_WRITER], O_CLOEXEC);
		break;
	case NO_EPOLL:
		dup3(null, fake->fds[TA_WIRE_FD_POLL], O_CLOEXEC);
		break;
	case NO_PAGE:
		dup3(null, fake->fds[TA_WIRE_FD_RELEASED], O_CLOEXEC);
		break;
	case SHORT_PAGE:
	case SHRINKABLE_PAGE:
		close(fake->fds[TA_WIRE_FD_RELEASED]);
		fake->fds[TA_WIRE_FD_RELEASED] =
			fake->variant == SHORT_PAGE ?
				make_memory(100, F_SEAL_SHRINK, 0) :
				make_memory(4096, F_SEAL_GROW, 0);
		break;
	case TOO_MANY_FDS:
		while (fake->nr_fds < 8)
			fake->fds[fake->nr_fds++] =
				fcntl(null, F_DUPFD_CLOEXEC, 0);
		break;
	case NO_SLOTS:
		msg->attach.slots = 0;
		break;
	case TOO_MANY_SLOTS:
		msg->attach.slots = TENSORARENA_MAX_SLOTS + 1;
		break;
	case CROOKED_STRIDE:
		msg->attach.stride += 4096;
		break;
	case SMALL_STRIDE:
		msg->attach.slot_bytes = msg->attach.stride + 1;
		break;
	case HUGE_STRIDE:
		msg->attach.stride = 1ull << 63;
		break;
	case POSITIVE_RESULT:
		msg->header.result = 1;
		break;
	case ABSURD_RESULT:
		msg->header.result = -4096;
		break;
	case OTHER_COMMAND:
		msg->header.command = TENSORARENA_BORROW;
		break;
	case NO_MAGIC:
		msg->header.magic = 0;
		break;
	case REFUSAL:
		msg->header.result = -EUSERS;
		break;
	}
	close(null);
	if (fake->variant != HANG_UP)
		return true;
	while (fake->nr_fds)
		close(fake->fds[--fake->nr_fds]);
	return false;
}

static void bad_answers_to_attach_are_errors(void **state)
{
	static const int expected[] = {
		[HANG_UP] = -EPIPE,	     [NO_FDS] = -EPROTO,
		[ONE_FD] = -EPROTO,	     [NO_PIDFD] = -EPROTO,
		[NO_EPOLL] = -EPROTO,	     [NO_PAGE] = -EPROTO,
		[SHORT_PAGE] = -EPROTO,	     [SHRINKABLE_PAGE] = -EPROTO,
		[TOO_MANY_FDS] = -EMFILE,    [NO_SLOTS] = -EPROTO,
		[TOO_MANY_SLOTS] = -EPROTO,  [CROOKED_STRIDE] = -EPROTO,
		[SMALL_STRIDE] = -EPROTO,    [HUGE_STRIDE] = -EPROTO,
		[POSITIVE_RESULT] = -EPROTO, [ABSURD_RESULT] = -EPROTO,
		[OTHER_COMMAND] = -EPROTO,   [NO_MAGIC] = -EPROTO,
		[REFUSAL] = -EUSERS,
	};
	uint32_t fds = count_fds();
	struct reader r;
	struct fake fake;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(fake_attach(&fake, attach_badly, (int)i, &r),
				 expected[i]);
		assert_int_equal(count_fds(), fds);
	}
}

static void a_server_that_never_answers_is_given_up_on(void **state)
{
	struct ta_handle handle = { .arena = ARENA };
	struct reader r = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(ta_engine_embedded.attach(&handle, pair[1], &r.args,
						   &r.port),
			 -ETIMEDOUT);
	close(pair[0]);
	close(pair[1]);
}

/**
 * struct stopped - a socket whose server is stopped
 * @handle: names it
 * @sock: listens
 * @queued: clients that have given up, which nobody has told it
 * @nr: how many
 */
struct stopped {
	struct ta_handle handle;
	int sock;
	int queued[8];
	int nr;
};

static int queue_up(const struct sockaddr_un *addr, socklen_t length)
{
	int sock = socket(AF_UNIX,
			  SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(sock >= 0);
	if (!connect(sock, (const struct sockaddr *)addr, length))
		return sock;
	assert_int_equal(errno, EAGAIN);
	close(sock);
	return -1;
}

/* Clients are queued until there is no room for another. */
static void stopped_open(struct stopped *stopped)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(sa_family_t);
	int sock;

	memset(stopped, 0, sizeof(*stopped));
	stopped->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* The kernel finds an abstract name. */
	assert_int_equal(bind(stopped->sock, (struct sockaddr *)&addr, length),
			 0);
	assert_int_equal(listen(stopped->sock, 1), 0);
	length = sizeof(addr);
	assert_int_equal(getsockname(stopped->sock, (struct sockaddr *)&addr,
				     &length),
			 0);
	stopped->handle.arena = ARENA;
	stopped->handle.socket[0] = '@';
	memcpy(stopped->handle.socket + 1, addr.sun_path + 1,
	       length - offsetof(struct sockaddr_un, sun_path) - 1);
	while ((sock = queue_up(&addr, length)) >= 0) {
		assert_true(stopped->nr < 8);
		stopped->queued[stopped->nr++] = sock;
	}
}

static void stopped_close(struct stopped *stopped)
{
	while (stopped->nr)
		close(stopped->queued[--stopped->nr]);
	close(stopped->sock);
}

static int attach_by_name(const struct stopped *stopped, struct reader *r)
{
	memset(r, 0, sizeof(*r));
	return ta_engine_embedded.attach(&stopped->handle, -1, &r->args,
					 &r->port);
}

static void no_signal(int number)
{
	(void)number;
}

/* A signal now and then does not make the wait longer. */
static void a_queue_that_stays_full_is_given_up_on(void **state)
{
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	const struct itimerval never = { 0 };
	struct sigaction action = { .sa_handler = no_signal }, before;
	struct ta_wire_observe seen;
	struct stopped stopped;
	uint32_t fds = count_fds();
	struct reader r;

	(void)state;
	stopped_open(&stopped);
	assert_int_equal(attach_by_name(&stopped, &r), -ETIMEDOUT);
	assert_int_equal(ta_embedded_observe(&stopped.handle, &seen),
			 -ETIMEDOUT);
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(attach_by_name(&stopped, &r), -ETIMEDOUT);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	stopped_close(&stopped);
	assert_int_equal(count_fds(), fds);
}

/* After a while it goes on, and answers who has not given up. */
static void *go_on(void *arg)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	struct fake fake = { .answer = behave };
	struct stopped *stopped = arg;
	int i;

	nanosleep(&pause, NULL);
	for (i = 0; i < stopped->nr; i++)
		close(accept(stopped->sock, NULL, NULL));
	fake.sock = accept(stopped->sock, NULL, NULL);
	return serve(&fake);
}

static void who_meets_room_in_time_is_taken_in(void **state)
{
	struct tensorarena_borrow b;
	struct stopped stopped;
	uint32_t fds = count_fds();
	pthread_t thread;
	struct reader r;

	(void)state;
	stopped_open(&stopped);
	assert_int_equal(pthread_create(&thread, NULL, go_on, &stopped), 0);
	assert_int_equal(attach_by_name(&stopped, &r), 0);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &b, 1));
	reader_close(&r);
	pthread_join(thread, NULL);
	stopped_close(&stopped);
	assert_int_equal(count_fds(), fds);
}

/* Says something useless, and then nothing for as long as anybody waits. */
static bool attach_badly_and_fall_silent(struct fake *fake)
{
	if (fake->msg.header.command == TENSORARENA_ATTACH) {
		while (fake->nr_fds)
			close(fake->fds[--fake->nr_fds]);
		return true;
	}
	fake->variant = polls(fake->sock, POLLIN, GUARD_MS);
	return false;
}

static void a_server_that_falls_silent_is_not_waited_for(void **state)
{
	struct reader r;
	struct fake fake;

	(void)state;
	assert_int_equal(fake_attach(&fake, attach_badly_and_fall_silent, false,
				     &r),
			 -EPROTO);
	/* It was the reader who hung up. */
	assert_true(fake.variant);
}

enum bad_next {
	NO_MEMORY,
	SHORT_MEMORY,
	SHRINKABLE_MEMORY,
	NOT_MEMORY,
	NOT_A_FILE,
	OTHER_ARENA,
	NO_SUCH_SLOT,
	TOO_MANY_BYTES,
	TOO_MUCH_META,
	NO_GENERATION,
	BAD_NEXTS,
};

static bool next_badly(struct fake *fake)
{
	struct tensorarena_borrow *b = &fake->msg.borrow;

	if (fake->msg.header.command != TENSORARENA_NEXT)
		return true;
	switch (fake->variant) {
	case NO_MEMORY:
		close(fake->fds[--fake->nr_fds]);
		break;
	case SHORT_MEMORY:
		close(fake->fds[0]);
		fake->fds[0] = make_memory(MIB - 1, F_SEAL_SHRINK, 1);
		break;
	case SHRINKABLE_MEMORY:
		close(fake->fds[0]);
		fake->fds[0] = make_memory(2 * MIB, F_SEAL_GROW, 1);
		break;
	case NOT_MEMORY:
		close(fake->fds[0]);
		fake->fds[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		break;
	case NOT_A_FILE:
		close(fake->fds[0]);
		fake->fds[0] = epoll_create1(EPOLL_CLOEXEC);
		break;
	case OTHER_ARENA:
		b->ticket.arena++;
		break;
	case NO_SUCH_SLOT:
		b->ticket.slot = 2;
		break;
	case TOO_MANY_BYTES:
		b->ticket.nbytes = 2 * MIB + 1;
		break;
	case TOO_MUCH_META:
		b->meta_bytes = TENSORARENA_META_BYTES + 1;
		break;
	case NO_GENERATION:
		b->ticket.generation = 0;
		break;
	}
	return true;
}

static void bad_publications_are_errors(void **state)
{
	uint32_t fds = count_fds();
	struct tensorarena_borrow b;
	struct reader r;
	struct fake fake;
	int i;

	(void)state;
	for (i = 0; i < BAD_NEXTS; i++) {
		assert_int_equal(fake_attach(&fake, next_badly, i, &r), 0);
		assert_int_equal(next(&r, &b), -EPROTO);
		/* Once is enough. */
		assert_true(reader_ready(&r));
		assert_int_equal(next(&r, &b), -EPIPE);
		fake_close(&fake, &r);
		assert_int_equal(count_fds(), fds);
	}
}

/* The second NEXT is for the slot that is held, with memory of its own. */
static bool replace_held(struct fake *fake)
{
	if (fake->asked != 3)
		return true;
	close(fake->fds[0]);
	fake->fds[0] = make_memory(2 * MIB, F_SEAL_SHRINK, 2);
	fake->msg.borrow.ticket.generation = 1 + (uint32_t)fake->variant;
	return true;
}

static void what_is_held_stays_mapped(void **state)
{
	struct tensorarena_borrow held, b;
	struct reader r;
	struct fake fake;

	(void)state;
	assert_int_equal(fake_attach(&fake, replace_held, 1, &r), 0);
	assert_int_equal(next(&r, &held), 0);
	assert_int_equal(next(&r, &b), -EPROTO);
	assert_true(sees(&r, &held, 1));
	fake_close(&fake, &r);

	assert_int_equal(fake_attach(&fake, replace_held, 0, &r), 0);
	assert_int_equal(next(&r, &held), 0);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &held, 1));
	fake_close(&fake, &r);
}

static bool call_all_stale(struct fake *fake)
{
	fake->msg.header.flags = TA_WIRE_HAS_STALE;
	if (fake->msg.header.command == TA_WIRE_STALE)
		memset(fake->msg.bytes, 0xff, sizeof(struct ta_wire_stale));
	return true;
}

static void what_is_held_is_never_stale(void **state)
{
	struct tensorarena_borrow held, b;
	struct reader r;
	struct fake fake;

	(void)state;
	assert_int_equal(fake_attach(&fake, call_all_stale, 0, &r), 0);
	assert_int_equal(next(&r, &held), 0);
	assert_int_equal(next(&r, &b), 0);
	assert_true(sees(&r, &held, 1));
	fake_close(&fake, &r);
}

static bool answer_others_first(struct fake *fake)
{
	struct ta_wire_message msg = fake->msg;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	msg.header.id += 1000;
	msg.header.result = -EIO;
	ta_wire_send(fake->sock, &msg, &fd, 1, false);
	close(fd);
	return true;
}

static void answers_to_others_are_dropped(void **state)
{
	uint32_t fds = count_fds();
	struct tensorarena_borrow b;
	struct reader r;
	struct fake fake;

	(void)state;
	assert_int_equal(fake_attach(&fake, answer_others_first, 0, &r), 0);
	assert_int_equal(next(&r, &b), 0);
	assert_int_equal(release(&r, &b.ticket), 0);
	fake_close(&fake, &r);
	assert_int_equal(count_fds(), fds);
}

static bool hang_up_on(struct fake *fake)
{
	uint32_t i;

	if ((int)fake->msg.header.command != fake->variant)
		return true;
	for (i = 0; i < fake->nr_fds; i++)
		close(fake->fds[i]);
	return false;
}

static void a_hang_up_is_the_writers_end(void **state)
{
	struct tensorarena_borrow held, b;
	struct reader r;
	struct fake fake;

	(void)state;
	assert_int_equal(
		fake_attach(&fake, hang_up_on, (int)TENSORARENA_BORROW, &r), 0);
	assert_int_equal(next(&r, &held), 0);
	assert_int_equal(borrow(&r, &held.ticket, &b), -EPIPE);
	assert_true(sees(&r, &held, 1));
	assert_int_equal(release(&r, &held.ticket), 0);
	assert_int_equal(detach(&r), 0);
	fake_close(&fake, &r);

	assert_int_equal(fake_attach(&fake, hang_up_on,
				     (int)TENSORARENA_RELEASE, &r),
			 0);
	assert_int_equal(next(&r, &held), 0);
	assert_int_equal(release(&r, &held.ticket), 0);
	assert_int_equal(next(&r, &b), -EPIPE);
	fake_close(&fake, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fake_that_behaves_is_believed),
		cmocka_unit_test(bad_answers_to_attach_are_errors),
		cmocka_unit_test(a_server_that_never_answers_is_given_up_on),
		cmocka_unit_test(a_queue_that_stays_full_is_given_up_on),
		cmocka_unit_test(who_meets_room_in_time_is_taken_in),
		cmocka_unit_test(a_server_that_falls_silent_is_not_waited_for),
		cmocka_unit_test(bad_publications_are_errors),
		cmocka_unit_test(what_is_held_stays_mapped),
		cmocka_unit_test(what_is_held_is_never_stale),
		cmocka_unit_test(answers_to_others_are_dropped),
		cmocka_unit_test(a_hang_up_is_the_writers_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded hostile server", tests,
					   NULL, NULL);
}
