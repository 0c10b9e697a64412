// SPDX-License-Identifier: MIT
/*
 * What the machinery costs: each operation on a slot, without any bytes, by
 * engine and number of readers; and an arena that nobody uses.
 *
 * The readers are in a process of their own, because a reader's operation may
 * need the writer's process.  They take their turns, so that an operation is
 * measured and not how many processes fit on the machine's cores.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ops.h"
#include "tools/number.h"

#define ROUNDS 1000
#define ROUNDS_MAX 1000000
/* The first ones build the slot, map it and fill caches. */
#define WARMUP 20

static const uint32_t counts[] = { 1, 2, 4, 8, 16, 32, 64 };

static const char usage[] =
	"usage: ops [options]\n"
	"\n"
	"  --json FILE      where every sample goes\n"
	"  --rounds N       publications for each number of readers (default "
	"1000)\n"
	"  --engine ENGINE  auto, device or embedded (default auto)\n"
	"  --first N        times that the first use of a slot is measured, 1 "
	"to "
	"9\n"
	"                   (default 5)\n";

const char *const op_names[OPS] = {
	[OP_ACQUIRE] = "acquire", [OP_PUBLISH] = "publish",
	[OP_BORROW] = "borrow",	  [OP_NEXT] = "next",
	[OP_RELEASE] = "release",
};

void ops_must(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "ops: %s: %s\n", what, ta_strerror(err));
	exit(1);
}

static uint32_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Wraps; what is measured is shorter. */
	return (uint32_t)now.tv_sec * 1000000000u + (uint32_t)now.tv_nsec;
}

static void add(struct op_samples *s, uint32_t start)
{
	s->ns[s->nr++] = now_ns() - start;
}

/* ---- the readers ---- */

/* One reader's turn: by ticket and by order of publication in turn. */
static void read_one(struct ta_reader *reader, const struct ta_ticket *ticket,
		     bool by_ticket, struct op_samples *s)
{
	struct ta_view *view;
	uint32_t start = now_ns();

	if (by_ticket)
		ops_must("ta_view", ta_view(reader, ticket, &view));
	else
		ops_must("ta_next", ta_next(reader, 0, &view));
	add(&s[by_ticket ? OP_BORROW : OP_NEXT], start);
	start = now_ns();
	ops_must("ta_release", ta_release(view));
	add(&s[OP_RELEASE], start);
}

static void be_readers(const char *handle, const struct op_run *run,
		       int tickets, int done)
{
	struct ta_reader *reader[TENSORARENA_MAX_READERS];
	struct ta_ticket ticket;
	uint32_t i, round;

	for (i = 0; i < run->readers; i++)
		ops_must("ta_attach", ta_attach(handle, &reader[i]));
	for (round = 0; read(tickets, &ticket, sizeof(ticket)) > 0; round++) {
		if (round == WARMUP)
			for (i = OP_BORROW; i < OPS; i++)
				run->samples[i].nr = 0;
		for (i = 0; i < run->readers; i++)
			read_one(reader[i], &ticket, round % 2, run->samples);
		if (write(done, "", 1) != 1)
			exit(1);
	}
	for (i = 0; i < run->readers; i++)
		ta_reader_close(reader[i]);
}

/* ---- the writer ---- */

static void publish_one(struct ta_writer *writer, struct op_samples *s,
			struct ta_ticket *ticket)
{
	struct ta_loan *loan;
	uint32_t start = now_ns();

	ops_must("ta_loan", ta_loan(writer, OP_BYTES, &loan));
	add(&s[OP_ACQUIRE], start);
	start = now_ns();
	ops_must("ta_commit", ta_commit(loan, OP_BYTES, NULL, ticket));
	add(&s[OP_PUBLISH], start);
}

static void be_writer(struct ta_writer *writer, const struct op_run *run,
		      int tickets, int done)
{
	struct ta_ticket ticket;
	uint32_t round;
	char byte;

	for (round = 0; round < WARMUP + run->rounds; round++) {
		if (round == WARMUP) {
			run->samples[OP_ACQUIRE].nr = 0;
			run->samples[OP_PUBLISH].nr = 0;
		}
		publish_one(writer, run->samples, &ticket);
		if (write(tickets, &ticket, sizeof(ticket)) !=
			    (ssize_t)sizeof(ticket) ||
		    read(done, &byte, 1) != 1)
			ops_must("the readers", -EPIPE);
	}
}

/* Both processes write to these. */
static void share_samples(struct op_run *run)
{
	uint32_t most = (WARMUP + run->rounds) * run->readers, i;
	uint32_t *ns;

	run->samples = mmap(NULL, OPS * sizeof(*run->samples),
			    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	ns = mmap(NULL, OPS * (size_t)most * sizeof(*ns),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run->samples == MAP_FAILED || ns == MAP_FAILED)
		ops_must("memory for samples", -errno);
	for (i = 0; i < OPS; i++)
		run->samples[i].ns = ns + (size_t)i * most;
}

static void measure(struct op_run *run, enum ta_engine_kind engine)
{
	struct ta_options options;
	struct ta_writer *writer;
	int tickets[2], done[2], status;
	char why[256];
	pid_t pid;

	share_samples(run);
	ta_options_init(&options);
	options.slots = 1;
	options.slot_bytes = OP_BYTES;
	options.seats = run->readers;
	options.engine = engine;
	if (ta_create(&options, &writer, why, sizeof(why))) {
		fprintf(stderr, "ops: %s\n", why);
		exit(1);
	}
	run->device = ta_writer_engine(writer) == TA_ENGINE_DEVICE;
	ops_must("pipe", pipe(tickets) || pipe(done) ? -errno : 0);
	pid = fork();
	if (!pid) {
		close(tickets[1]);
		be_readers(ta_handle(writer), run, tickets[0], done[1]);
		_exit(0);
	}
	close(tickets[0]);
	close(done[1]);
	be_writer(writer, run, tickets[1], done[0]);
	close(tickets[1]);
	close(done[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		ops_must("the readers", -ECHILD);
	ta_writer_close(writer);
}

/* ---- the command line ---- */

static int engine_named(const char *name, enum ta_engine_kind *engine)
{
	*engine = !strcmp(name, "device")   ? TA_ENGINE_DEVICE :
		  !strcmp(name, "embedded") ? TA_ENGINE_EMBEDDED :
					      TA_ENGINE_AUTO;
	return *engine || !strcmp(name, "auto") ? 0 : -1;
}

static int parse(int argc, char **argv, struct op_request *request)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "rounds", required_argument, NULL, 'k' },
		{ "engine", required_argument, NULL, 'e' },
		{ "first", required_argument, NULL, 'f' },
		{ 0 },
	};
	int c, err = 0;

	while (!err && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'j')
			request->path = optarg;
		else if (c == 'k')
			err = number_u32(optarg, 1, ROUNDS_MAX,
					 &request->rounds);
		else if (c == 'f')
			err = number_u32(optarg, 1, OP_FIRST_MOST,
					 &request->first);
		else
			err = c == 'e' ?
				      engine_named(optarg, &request->engine) :
				      -1;
	}
	return err || optind != argc ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct op_request request = { .rounds = ROUNDS, .first = 5 };
	struct op_run run[sizeof(counts) / sizeof(counts[0])];
	struct op_result result = {
		.run = run,
		.runs = sizeof(run) / sizeof(run[0]),
	};
	size_t i;

	if (parse(argc, argv, &request)) {
		fputs(usage, stderr);
		return 2;
	}
	/* First, while this process is small. */
	ops_idle(request.engine, &result.idle);
	result.firsts = request.first;
	for (i = 0; i < result.runs; i++) {
		run[i] = (struct op_run){
			.readers = counts[i],
			.rounds = request.rounds,
		};
		measure(&run[i], request.engine);
	}
	ops_first(request.engine, result.first, request.first);
	if (request.path)
		return ops_write(request.path, &result);
	ops_print(&result);
	return 0;
}
