// SPDX-License-Identifier: MIT
/*
 * What the library does about an engine that fails or lies: both engines are
 * replaced by one that answers as the test says.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lib/engine.h>
#include <lib/tensor.h>

#include "test.h"

#define COOKIE "000102030405060708090a0b0c0d0e0f"
#define SLOT_BYTES 64

/* What the fake engine answers, and what it has been asked. */
static struct {
	int device_err; /* of making a port */
	int embedded_err;
	int acquire_err;
	uint32_t open;
	int publish_err;
	uint32_t addressed;
	int next_err;
	struct tensorarena_borrow next;
	int release_err;
	int poll_fd;
	bool no_wipe_on_fork;

	enum ta_engine_kind made;
	unsigned int ports;
	unsigned int aborts;
	unsigned int publishes;
	unsigned int nexts;
	unsigned int releases;
	uint64_t released_generation;
} fake;

static uint8_t memory[2 * SLOT_BYTES];

/* In place of the C library's, which fork detection calls. */
int madvise(void *addr, size_t size, int advice)
{
	if (advice == MADV_WIPEONFORK && fake.no_wipe_on_fork) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, addr, size, advice);
}

static int fake_call(struct ta_port *port, unsigned int cmd, void *arg)
{
	(void)port;
	switch (cmd) {
	case TENSORARENA_ACQUIRE: {
		struct tensorarena_acquire *a = arg;

		a->slot = 1;
		a->generation = 5;
		a->offset = SLOT_BYTES;
		a->open = fake.open;
		return fake.acquire_err;
	}
	case TENSORARENA_PUBLISH: {
		struct tensorarena_publish *p = arg;

		fake.publishes++;
		p->addressed = fake.addressed;
		return fake.publish_err;
	}
	case TENSORARENA_ABORT:
		fake.aborts++;
		return 0;
	case TENSORARENA_NEXT:
	case TENSORARENA_BORROW:
		fake.nexts++;
		if (!fake.next_err)
			*(struct tensorarena_borrow *)arg = fake.next;
		return fake.next_err;
	case TENSORARENA_RELEASE:
		fake.releases++;
		fake.released_generation =
			((struct tensorarena_slot_ref *)arg)->generation;
		return fake.release_err;
	default:
		return -ENOTTY;
	}
}

static int fake_poll_fd(struct ta_port *port, short *events)
{
	(void)port;
	*events = POLLIN;
	return fake.poll_fd;
}

static int fake_connect(struct ta_port *port)
{
	(void)port;
	return -EOPNOTSUPP;
}

static void fake_close(struct ta_port *port, bool forked)
{
	(void)forked;
	fake.ports--;
	free(port);
}

static const struct ta_port_ops fake_ops = {
	.call = fake_call,
	.poll_fd = fake_poll_fd,
	.connect = fake_connect,
	.close = fake_close,
};

static int make_port(enum ta_engine_kind kind, int err, struct ta_port **port)
{
	if (err)
		return err;
	*port = calloc(1, sizeof(**port));
	if (!*port)
		return -ENOMEM;
	(*port)->ops = &fake_ops;
	(*port)->base = memory;
	(*port)->bytes = sizeof(memory);
	fake.made = kind;
	fake.ports++;
	return 0;
}

static int create_device(const struct ta_options *options,
			 struct tensorarena_create *args,
			 struct ta_handle *handle, struct ta_port **port)
{
	(void)options;
	(void)args;
	*handle = (struct ta_handle){ .engine = TA_ENGINE_DEVICE, .arena = 9 };
	return make_port(TA_ENGINE_DEVICE, fake.device_err, port);
}

static int create_embedded(const struct ta_options *options,
			   struct tensorarena_create *args,
			   struct ta_handle *handle, struct ta_port **port)
{
	(void)options;
	(void)args;
	*handle = (struct ta_handle){ .engine = TA_ENGINE_EMBEDDED };
	strcpy(handle->socket, "@x");
	return make_port(TA_ENGINE_EMBEDDED, fake.embedded_err, port);
}

static int attach(const struct ta_handle *handle, int fd,
		  struct tensorarena_attach *args, struct ta_port **port)
{
	(void)fd;
	args->reader = 3;
	args->seat = 2;
	return make_port(handle->engine, fake.device_err, port);
}

const struct ta_engine ta_engine_device = {
	.name = "fake device",
	.kind = TA_ENGINE_DEVICE,
	.create = create_device,
	.attach = attach,
};

const struct ta_engine ta_engine_embedded = {
	.name = "fake embedded",
	.kind = TA_ENGINE_EMBEDDED,
	.create = create_embedded,
	.attach = attach,
};

static char why[256];

static int create(uint32_t engine, struct ta_writer **writer)
{
	struct ta_options o;

	ta_options_init(&o);
	o.engine = engine;
	o.flags = TA_NO_MEMORY_CHECK;
	return ta_create(&o, writer, why, sizeof(why));
}

static int reset(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(memory, 0, sizeof(memory));
	fake.open = 1;
	fake.addressed = 1;
	fake.poll_fd = eventfd(0, EFD_CLOEXEC);
	return fake.poll_fd < 0;
}

static int nothing_left(void **state)
{
	(void)state;
	close(fake.poll_fd);
	return fake.ports != 0;
}

/* ---- choosing an engine ---- */

static void auto_falls_back_only_where_there_is_no_device(void **state)
{
	static const int absent[] = { -ENOENT, -ENOTDIR, -ENODEV,
				      -ENXIO,  -EACCES,	 -EPERM };
	static const int failed[] = { -EDQUOT, -ENOMEM, -EMFILE,    -ENOTTY,
				      -EINVAL, -EINTR,	-EOPNOTSUPP };
	struct ta_writer *writer;
	size_t i;

	(void)state;
	assert_ok(create(TA_ENGINE_AUTO, &writer));
	assert_int_equal(ta_writer_engine(writer), TA_ENGINE_DEVICE);
	ta_writer_close(writer);
	for (i = 0; i < ARRAY_SIZE(absent); i++) {
		fake.device_err = absent[i];
		assert_ok(create(TA_ENGINE_AUTO, &writer));
		assert_int_equal(ta_writer_engine(writer), TA_ENGINE_EMBEDDED);
		ta_writer_close(writer);
		assert_err(create(TA_ENGINE_DEVICE, &writer), absent[i]);
	}
	for (i = 0; i < ARRAY_SIZE(failed); i++) {
		fake.device_err = failed[i];
		assert_err(create(TA_ENGINE_AUTO, &writer), failed[i]);
		assert_non_null(strstr(why, "fake device"));
	}
}

static void a_failing_engine_is_named_with_the_reason(void **state)
{
	struct ta_writer *writer;

	(void)state;
	fake.embedded_err = -EADDRINUSE;
	assert_err(create(TA_ENGINE_EMBEDDED, &writer), -EADDRINUSE);
	assert_string_equal(why,
			    "fake embedded engine: the socket path is taken");
}

static void without_fork_detection_there_are_no_objects(void **state)
{
	struct ta_writer *writer;
	struct ta_reader *reader;

	(void)state;
	fake.no_wipe_on_fork = true;
	assert_err(create(TA_ENGINE_DEVICE, &writer), -EINVAL);
	assert_non_null(strstr(why, "forked"));
	assert_err(ta_attach("tensorarena1:device:9:" COOKIE, &reader),
		   -EINVAL);
	assert_int_equal(fake.made, TA_ENGINE_AUTO);
}

/* ---- writing ---- */

static void a_put_that_cannot_be_published_gives_its_slot_back(void **state)
{
	static const int errors[] = { -EINVAL, -ESTALE, -EINTR, -EFAULT };
	struct ta_writer *writer;
	struct ta_ticket ticket;
	size_t i;

	(void)state;
	assert_ok(create(TA_ENGINE_DEVICE, &writer));
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake.publish_err = errors[i];
		assert_err(ta_put(writer, "x", 1, NULL, &ticket), errors[i]);
		assert_int_equal(fake.aborts, i + 1);
	}
	ta_writer_close(writer);
}

static void a_put_for_nobody_copies_nothing(void **state)
{
	struct ta_writer *writer;
	struct ta_loan *loan;

	(void)state;
	assert_ok(create(TA_ENGINE_DEVICE, &writer));
	fake.open = 0;
	assert_err(ta_put(writer, "x", 1, NULL, NULL), -ENOTCONN);
	assert_int_equal(memory[SLOT_BYTES], 0);
	assert_err(ta_loan(writer, 1, &loan), -ENOTCONN);
	assert_int_equal(fake.aborts, 2);
	assert_int_equal(fake.publishes, 0);
	/* They left while it was copied: the engine has freed the slot. */
	fake.open = 1;
	fake.addressed = 0;
	assert_err(ta_put(writer, "x", 1, NULL, NULL), -ENOTCONN);
	assert_int_equal(memory[SLOT_BYTES], 'x');
	assert_int_equal(fake.aborts, 2);
	ta_writer_close(writer);
}

static void a_put_that_gets_no_slot_is_left_at_that(void **state)
{
	struct ta_writer *writer;
	struct ta_loan *loan;

	(void)state;
	assert_ok(create(TA_ENGINE_DEVICE, &writer));
	fake.acquire_err = -ENOMEM;
	assert_err(ta_put(writer, "x", 1, NULL, NULL), -ENOMEM);
	assert_err(ta_loan(writer, 1, &loan), -ENOMEM);
	assert_int_equal(fake.aborts, 0);
	ta_writer_close(writer);
}

/* ---- reading ---- */

static struct ta_reader *open_reader(void)
{
	struct ta_reader *reader;

	assert_ok(ta_attach("tensorarena1:device:9:" COOKIE, &reader));
	return reader;
}

static void offer(uint32_t slot, uint64_t generation, uint64_t offset,
		  uint64_t nbytes)
{
	int used;

	memset(&fake.next, 0, sizeof(fake.next));
	fake.next.ticket.slot = slot;
	fake.next.ticket.generation = generation;
	fake.next.ticket.nbytes = nbytes;
	fake.next.offset = offset;
	used = ta_tensor_encode(NULL, nbytes, fake.next.meta);
	assert_true(used > 0);
	fake.next.meta_bytes = (uint32_t)used;
}

static void bytes_outside_the_mapping_are_refused_and_released(void **state)
{
	struct ta_reader *reader = open_reader();
	struct ta_view *view;

	(void)state;
	offer(0, 1, 0, sizeof(memory) + 1);
	assert_err(ta_next(reader, 0, &view), -EPROTO);
	assert_int_equal(fake.releases, 1);
	offer(0, 2, sizeof(memory) + 1, 0);
	assert_err(ta_next(reader, 0, &view), -EPROTO);
	offer(0, 3, UINT64_MAX, 2);
	assert_err(ta_next(reader, 0, &view), -EPROTO);
	assert_int_equal(fake.releases, 3);
	assert_int_equal(fake.released_generation, 3);
	offer(UINT32_MAX, 4, 0, 1);
	assert_err(ta_next(reader, 0, &view), -EPROTO);
	offer(1, 5, sizeof(memory), 0);
	assert_ok(ta_next(reader, 0, &view));
	assert_ok(ta_release(view));
	ta_reader_close(reader);
}

static void a_slot_reused_under_a_view_is_refused(void **state)
{
	struct ta_reader *reader = open_reader();
	struct ta_view *view, *other;

	(void)state;
	offer(1, 7, 0, 1);
	assert_ok(ta_next(reader, 0, &view));
	offer(1, 8, 0, 1);
	assert_err(ta_next(reader, 0, &other), -EPROTO);
	assert_int_equal(fake.releases, 0);
	assert_ok(ta_release(view));
	assert_int_equal(fake.released_generation, 7);
	ta_reader_close(reader);
}

static void a_view_is_gone_though_its_release_fails(void **state)
{
	struct ta_reader *reader = open_reader();
	struct ta_view *view;

	(void)state;
	offer(1, 7, 0, 1);
	assert_ok(ta_next(reader, 0, &view));
	fake.release_err = -ESTALE;
	assert_err(ta_release(view), -ESTALE);
	fake.release_err = 0;
	/* Its hold is forgotten too, so that the next one counts anew. */
	offer(1, 8, 0, 1);
	assert_ok(ta_next(reader, 0, &view));
	assert_ok(ta_release(view));
	assert_int_equal(fake.releases, 2);
	ta_reader_close(reader);
}

/* ---- waiting ---- */

static void false_alarms_do_not_prolong_a_wait(void **state)
{
	struct ta_reader *reader = open_reader();
	const uint64_t one = 1;
	struct ta_view *view;

	(void)state;
	fake.next_err = -EAGAIN;
	assert_int_equal(write(fake.poll_fd, &one, sizeof(one)), sizeof(one));
	assert_err(ta_next(reader, 20, &view), -EAGAIN);
	assert_true(fake.nexts > 1);
	ta_reader_close(reader);
}

static void a_wait_asks_again_only_when_woken(void **state)
{
	struct ta_reader *reader = open_reader();
	struct ta_view *view;

	(void)state;
	fake.next_err = -EAGAIN;
	assert_err(ta_next(reader, 20, &view), -EAGAIN);
	assert_in_range(fake.nexts, 1, 2);
	ta_reader_close(reader);
}

static void a_wait_on_a_lost_descriptor_ends(void **state)
{
	struct ta_reader *reader = open_reader();
	int fd = fake.poll_fd;
	struct ta_view *view;

	(void)state;
	fake.next_err = -EAGAIN;
	fake.poll_fd = -EMFILE;
	assert_err(ta_next(reader, -1, &view), -EMFILE);
	fake.poll_fd = 100000;
	assert_err(ta_next(reader, -1, &view), -EBADF);
	fake.poll_fd = fd;
	ta_reader_close(reader);
}

/* ---- attaching ---- */

static void an_attach_that_fails_consumes_its_descriptor(void **state)
{
	struct ta_reader *reader;
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	fake.device_err = -EUSERS;
	assert_err(ta_attach_fd("tensorarena1:device:9:" COOKIE, fd, &reader),
		   -EUSERS);
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
}

static void what_the_engine_says_of_an_attachment_is_passed_on(void **state)
{
	struct ta_reader *reader = open_reader();

	(void)state;
	assert_int_equal(ta_reader_id(reader), 3);
	assert_int_equal(ta_reader_seat(reader), 2);
	assert_int_equal(ta_reader_engine(reader), TA_ENGINE_DEVICE);
	ta_reader_close(reader);
}

#define WITH_FAKE(test)                                                        \
	cmocka_unit_test_setup_teardown(test, reset, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(auto_falls_back_only_where_there_is_no_device),
		WITH_FAKE(a_failing_engine_is_named_with_the_reason),
		WITH_FAKE(without_fork_detection_there_are_no_objects),
		WITH_FAKE(a_put_that_cannot_be_published_gives_its_slot_back),
		WITH_FAKE(a_put_for_nobody_copies_nothing),
		WITH_FAKE(a_put_that_gets_no_slot_is_left_at_that),
		WITH_FAKE(bytes_outside_the_mapping_are_refused_and_released),
		WITH_FAKE(a_slot_reused_under_a_view_is_refused),
		WITH_FAKE(a_view_is_gone_though_its_release_fails),
		WITH_FAKE(false_alarms_do_not_prolong_a_wait),
		WITH_FAKE(a_wait_asks_again_only_when_woken),
		WITH_FAKE(a_wait_on_a_lost_descriptor_ends),
		WITH_FAKE(an_attach_that_fails_consumes_its_descriptor),
		WITH_FAKE(what_the_engine_says_of_an_attachment_is_passed_on),
	};

	return run_all(tests, NULL, NULL);
}
