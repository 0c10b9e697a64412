// SPDX-License-Identifier: MIT
/* See group.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "group.h"
#include "paths.h"
#include "pickle.h"

/* Fifty times what the slowest round took anywhere, and the slowest exit. */
#define ANSWER_MS 120000
#define LEAVE_TRIES 1000

volatile sig_atomic_t group_interrupted;

/* ---- starting ---- */

/* The source as a file, for a program that does not inherit our memory. */
static int source_file(const struct setting *setting)
{
	int fd = memfd_create("source", 0);
	size_t done = 0;
	ssize_t n;

	while (fd >= 0 && done < setting->max_bytes) {
		n = write(fd, (char *)setting->src + done,
			  setting->max_bytes - done);
		if (n < 0)
			die("a file for the source", errno);
		done += (size_t)n;
	}
	return fd;
}

static void be_program(const struct group *group, const struct setting *setting,
		       bool writer, uint32_t number, int fd)
{
	char program[PATH_BYTES], readers[16], bytes[24], own[16], which[16];
	int source = writer ? source_file(setting) : -1;

	path_beside(group->contender->program, program);
	snprintf(readers, sizeof(readers), "%u", group->readers);
	snprintf(bytes, sizeof(bytes), "%zu", setting->max_bytes);
	snprintf(own, sizeof(own), "%u", group->number);
	snprintf(which, sizeof(which), "%u", number);
	/* Neither may sit where the other is to be. */
	fd = fcntl(fd, F_DUPFD, SOURCE_FD + 1);
	if (source >= 0)
		source = fcntl(source, F_DUPFD, SOURCE_FD + 1);
	dup2(fd, CONTROL_FD);
	if (source >= 0)
		dup2(source, SOURCE_FD);
	execlp(pickle_python(), "python3", program,
	       writer ? "writer" : "reader", readers, bytes, setting->dir, own,
	       which, !writer && setting->gpu ? "gpu" : "cpu", NULL);
	die(group->contender->program, errno);
}

static void be_function(const struct group *group,
			const struct setting *setting, bool writer,
			uint32_t number, int fd)
{
	struct end end = {
		.dir = setting->dir,
		.group = group->number,
		.readers = group->readers,
		.number = number,
		.max_bytes = setting->max_bytes,
		.engine = setting->engine,
	};
	struct gpu gpu;

	if (!writer && setting->gpu) {
		gpu_open(&gpu, number, setting->max_bytes);
		end.gpu = &gpu;
	}
	if (writer)
		process_writer(group->contender, &end, setting->src, fd);
	else
		process_reader(group->contender, &end, fd);
}

static void member_start(struct member *member, const struct group *group,
			 const struct setting *setting, bool writer,
			 uint32_t number)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		die("socketpair", errno);
	fflush(stdout);
	member->pid = fork();
	if (member->pid < 0)
		die("fork", errno);
	if (!member->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		close(pair[0]);
		if (group->contender->program)
			be_program(group, setting, writer, number, pair[1]);
		else
			be_function(group, setting, writer, number, pair[1]);
		exit(0);
	}
	close(pair[1]);
	member->fd = pair[0];
}

/* ---- talking ---- */

static void broken(const struct group *group, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s with %u readers: %s",
		 group->contender->name, group->readers, what);
	die(text, 0);
}

static void tell(const struct group *group, const struct member *to,
		 const struct order *order)
{
	if (!control_send(to->fd, order, sizeof(*order)))
		broken(group, "a process is gone");
}

static void hear(const struct group *group, const struct member *from,
		 struct report *report)
{
	struct pollfd pfd = { .fd = from->fd, .events = POLLIN };
	int n;

	do
		n = poll(&pfd, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR && !group_interrupted);
	if (group_interrupted)
		die("interrupted", 0);
	if (!n)
		broken(group, "a process hangs");
	if (!control_receive(from->fd, report, sizeof(*report)))
		broken(group, "a process is gone");
}

static void ask(const struct group *group, const struct member *member,
		const struct order *order, struct report *report)
{
	tell(group, member, order);
	hear(group, member, report);
}

static void meet(struct group *group)
{
	const struct order order = { .kind = ORDER_MEET };
	struct report report;

	ask(group, &group->writer, &order, &report);
	memcpy(group->about, report.text, sizeof(group->about));
}

void group_start(struct group *group, const struct setting *setting)
{
	struct order order = { .kind = ORDER_OPEN };
	struct report report;
	uint32_t i;

	member_start(&group->writer, group, setting, true, 0);
	for (i = 0; i < group->readers; i++)
		member_start(&group->reader[i], group, setting, false, i);
	ask(group, &group->writer, &order, &report);
	memcpy(order.address, report.text, sizeof(order.address));
	for (i = 0; i < group->readers; i++)
		tell(group, &group->reader[i], &order);
	for (i = 0; i < group->readers; i++)
		hear(group, &group->reader[i], &report);
	meet(group);
}

/* ---- rounds ---- */

/* All readers ready, then the writer; its checksum of the source. */
static uint64_t arm(struct group *group, const struct order *order)
{
	struct report report;
	uint32_t i;

	for (i = 0; i < group->readers; i++)
		tell(group, &group->reader[i], order);
	for (i = 0; i < group->readers; i++)
		hear(group, &group->reader[i], &report);
	ask(group, &group->writer, order, &report);
	memcpy(group->about, report.text, sizeof(group->about));
	return report.digest;
}

static bool right(const struct group *group, const struct report *report,
		  enum mode mode, uint64_t digest)
{
	bool checks = mode == MODE_CHECK || mode == MODE_CHECK_GPU;

	return group->contender->floor ||
	       (report->stamped && (!checks || report->digest == digest));
}

void group_round(struct group *group, enum mode mode, size_t nbytes,
		 uint64_t stamp, struct outcome *outcome)
{
	struct order order = {
		.kind = ORDER_ARM,
		.mode = mode,
		.nbytes = nbytes,
		.stamp = stamp,
	};
	struct report report;
	uint64_t start, digest;
	uint32_t i;

	memset(outcome, 0, sizeof(*outcome));
	digest = arm(group, &order);
	order.kind = ORDER_GO;
	ask(group, &group->writer, &order, &report);
	start = report.start_ns;
	outcome->put_ns = report.put_ns - start;
	outcome->free_ns = report.end_ns - start;
	for (i = 0; i < group->readers; i++) {
		hear(group, &group->reader[i], &report);
		if (!right(group, &report, mode, digest))
			broken(group, "wrong bytes arrived");
		outcome->have_ns[i] = report.have_ns - start;
		outcome->end_ns[i] = report.end_ns - start;
		outcome->readers_cpu_ns += report.cpu_ns;
		outcome->readers_faults += report.faults;
	}
	order.kind = ORDER_BILL;
	ask(group, &group->writer, &order, &report);
	outcome->writer_cpu_ns = report.cpu_ns;
	outcome->writer_faults = report.faults;
}

/* Asks a process to leave, and waits. */
static void dismiss(const struct group *group, struct member *member)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	int i;

	/* Children hold copies of what was open when they were forked. */
	shutdown(member->fd, SHUT_RDWR);
	close(member->fd);
	for (i = 0; i < LEAVE_TRIES; i++) {
		if (waitpid(member->pid, NULL, WNOHANG))
			return;
		nanosleep(&moment, NULL);
	}
	broken(group, "a process does not leave");
}

void group_end(struct group *group)
{
	uint32_t i;

	for (i = 0; i < group->readers; i++)
		dismiss(group, &group->reader[i]);
	dismiss(group, &group->writer);
}
