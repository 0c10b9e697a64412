// SPDX-License-Identifier: MIT
/* See fixture.h. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "fixture.h"
#include "lib/memory_check.h"

uint64_t test_headroom = TA_MEMORY_UNLIMITED;
int test_headroom_error;
void (*test_growing)(void);

int ta_memory_headroom(uint64_t *bytes, char *why, size_t why_size)
{
	(void)why;
	(void)why_size;
	if (test_growing)
		test_growing();
	*bytes = test_headroom;
	return test_headroom_error;
}

/* ---- writer ---- */

void arena_init(struct arena *arena, uint32_t seats)
{
	memset(arena, 0, sizeof(*arena));
	arena->args.slot_bytes = 4 * MIB;
	arena->args.slots = 4;
	arena->args.seats = seats;
	arena->args.node = TENSORARENA_NODE_LOCAL;
}

void arena_open(struct arena *arena)
{
	assert_int_equal(ta_engine_embedded.create(&arena->options,
						   &arena->args, &arena->handle,
						   &arena->port),
			 0);
}

void arena_close(struct arena *arena)
{
	arena->port->ops->close(arena->port, false);
	arena->port = NULL;
}

int writer_call(struct arena *arena, unsigned int cmd, void *arg)
{
	return arena->port->ops->call(arena->port, cmd, arg);
}

int acquire(struct arena *arena, uint64_t nbytes,
	    struct tensorarena_acquire *acq)
{
	*acq = (struct tensorarena_acquire){ .nbytes = nbytes };
	return writer_call(arena, TENSORARENA_ACQUIRE, acq);
}

int publish(struct arena *arena, const struct tensorarena_acquire *acq,
	    uint64_t nbytes, struct tensorarena_ticket *ticket)
{
	struct tensorarena_publish pub = {
		.generation = acq->generation,
		.nbytes = nbytes,
		.slot = acq->slot,
		.meta_bytes = 1,
		.meta = { 0x5a },
	};
	int err;

	err = writer_call(arena, TENSORARENA_PUBLISH, &pub);
	if (err)
		return err;
	*ticket = (struct tensorarena_ticket){
		.arena = arena->args.arena,
		.generation = acq->generation,
		.nbytes = nbytes,
		.slot = acq->slot,
	};
	return (int)pub.addressed;
}

struct tensorarena_ticket put(struct arena *arena, uint64_t nbytes,
			      uint8_t byte)
{
	struct tensorarena_ticket ticket;
	struct tensorarena_acquire acq;

	assert_int_equal(acquire(arena, nbytes, &acq), 0);
	memset(writer_data(arena, acq.slot), byte, nbytes);
	assert_in_range(publish(arena, &acq, nbytes, &ticket), 1,
			TENSORARENA_MAX_READERS);
	return ticket;
}

struct tensorarena_stats stats(struct arena *arena)
{
	struct tensorarena_stats st = { 0 };

	assert_int_equal(writer_call(arena, TENSORARENA_STATS, &st), 0);
	return st;
}

uint8_t *writer_data(struct arena *arena, uint32_t slot)
{
	return arena->port->base + slot * arena->args.stride;
}

bool writer_ready(struct arena *arena)
{
	short events = 0;
	int fd = arena->port->ops->poll_fd(arena->port, &events);

	return polls(fd, events, 0);
}

/* ---- reader ---- */

int attach(const struct arena *arena, int fd, struct reader *reader)
{
	memset(reader, 0, sizeof(*reader));
	return ta_engine_embedded.attach(&arena->handle, fd, &reader->args,
					 &reader->port);
}

void reader_open(const struct arena *arena, struct reader *reader)
{
	assert_int_equal(attach(arena, -1, reader), 0);
}

void reader_close(struct reader *reader)
{
	reader->port->ops->close(reader->port, false);
	reader->port = NULL;
}

int reader_call(struct reader *reader, unsigned int cmd, void *arg)
{
	return reader->port->ops->call(reader->port, cmd, arg);
}

int next(struct reader *reader, struct tensorarena_borrow *borrow)
{
	memset(borrow, 0, sizeof(*borrow));
	return reader_call(reader, TENSORARENA_NEXT, borrow);
}

int borrow(struct reader *reader, const struct tensorarena_ticket *ticket,
	   struct tensorarena_borrow *out)
{
	memset(out, 0, sizeof(*out));
	out->ticket = *ticket;
	return reader_call(reader, TENSORARENA_BORROW, out);
}

int release(struct reader *reader, const struct tensorarena_ticket *ticket)
{
	struct tensorarena_slot_ref ref = {
		.generation = ticket->generation,
		.slot = ticket->slot,
	};

	return reader_call(reader, TENSORARENA_RELEASE, &ref);
}

int detach(struct reader *reader)
{
	struct tensorarena_detach args = { 0 };

	return reader_call(reader, TENSORARENA_DETACH, &args);
}

bool reader_ready(struct reader *reader)
{
	short events = 0;
	int fd = reader->port->ops->poll_fd(reader->port, &events);

	return polls(fd, events, 0);
}

bool sees(const struct reader *reader, const struct tensorarena_borrow *borrow,
	  uint8_t byte)
{
	const uint8_t *data = reader->port->base + borrow->offset;
	uint64_t i;

	for (i = 0; i < borrow->ticket.nbytes; i++)
		if (data[i] != byte)
			return false;
	return true;
}

void settle(struct reader *reader)
{
	const struct tensorarena_ticket nothing = { 0 };
	struct tensorarena_borrow b;
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(borrow(reader, &nothing, &b), -ESTALE);
}

/* ---- peers on the bare socket ---- */

int raw_dial(const struct arena *arena)
{
	int sock = ta_embedded_dial(arena->handle.socket, ta_attach_deadline());

	assert_true(sock >= 0);
	return sock;
}

struct ta_wire_message raw_message(uint32_t command)
{
	return (struct ta_wire_message){
		.header = {
			.magic = TA_WIRE_MAGIC,
			.command = command,
			.id = 7,
		},
	};
}

struct ta_wire_message raw_attach(const struct arena *arena)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_ATTACH);

	msg.attach.arena = arena->handle.arena;
	memcpy(msg.attach.cookie, arena->handle.cookie,
	       sizeof(msg.attach.cookie));
	return msg;
}

int raw_send(int sock, const struct ta_wire_message *msg)
{
	return ta_wire_send(sock, msg, NULL, 0, true);
}

int raw_recv(int sock, struct ta_wire_message *msg,
	     struct ta_wire_parcel *parcel)
{
	assert_true(polls(sock, POLLIN, GUARD_MS));
	return ta_wire_recv(sock, msg, parcel);
}

int raw_ask(int sock, struct ta_wire_message *msg)
{
	struct ta_wire_parcel parcel;
	int err;

	err = raw_send(sock, msg);
	if (!err)
		err = raw_recv(sock, msg, &parcel);
	if (err)
		return err;
	ta_wire_discard(&parcel);
	return msg->header.result;
}

int raw_open(const struct arena *arena)
{
	struct ta_wire_message msg = raw_attach(arena);
	int sock = raw_dial(arena);

	assert_int_equal(raw_ask(sock, &msg), 0);
	return sock;
}

bool raw_hung_up(int sock)
{
	struct ta_wire_message msg;
	struct ta_wire_parcel parcel;
	int err;

	while (polls(sock, POLLIN, GUARD_MS)) {
		err = ta_wire_recv(sock, &msg, &parcel);
		if (err)
			return err == -EPIPE;
		ta_wire_discard(&parcel);
	}
	return false;
}

/* ---- processes and resources ---- */

uint32_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

bool polls(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&pfd, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

int reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void await_open_seats(struct arena *arena, uint32_t open)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	uint64_t deadline = ta_now_ns() + GUARD_MS * 1000000ull;

	while (stats(arena).nr_readers != open) {
		assert_true(ta_now_ns() < deadline);
		nanosleep(&pause, NULL);
	}
}

/* ---- memory ---- */

static sigjmp_buf touched;

/*
 * By the page tables: the counters in /proc/self/status leave out, in most
 * kernels, what a processor or thread has not yet added to them.
 */
long shared_kib(void)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512], kind = 'p';
	long kib, sum = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		/* A mapping's first line says whether it is shared. */
		sscanf(line, "%*x-%*x %*3c%c", &kind);
		if (kind == 's' && sscanf(line, "Rss: %ld kB", &kib) == 1)
			sum += kib;
	}
	fclose(file);
	return sum;
}

int raw_memory(int sock)
{
	struct ta_wire_message msg = raw_message(TENSORARENA_NEXT);
	struct ta_wire_parcel parcel;

	assert_int_equal(raw_send(sock, &msg), 0);
	assert_int_equal(raw_recv(sock, &msg, &parcel), 0);
	assert_int_equal(msg.header.result, 0);
	assert_int_equal(parcel.nr_fds, 1);
	return parcel.fds[0];
}

void assert_cannot_change(int fd, off_t size)
{
	struct stat st;
	char byte = 1;

	assert_true(write(fd, &byte, 1) < 0);
	assert_true(pwrite(fd, &byte, 1, 0) < 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, size - 1), -1);
	assert_int_equal(fallocate(fd,
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, 4096),
			 -1);
	assert_int_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0),
			 MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), -1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, size);
}

static void on_fault(int signal)
{
	siglongjmp(touched, signal);
}

int touch(const volatile uint8_t *addr)
{
	struct sigaction action = { .sa_handler = on_fault }, bus, segv;
	int signal;

	assert_int_equal(sigaction(SIGBUS, &action, &bus), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &segv), 0);
	signal = sigsetjmp(touched, 1);
	if (!signal)
		(void)*addr;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return signal;
}
