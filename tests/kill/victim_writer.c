// SPDX-License-Identifier: MIT
/* What a writer does, step by step. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kill.h"
#include "pattern.h"
#include "raw.h"

#define SURVIVORS 2

static uint64_t new_seed(struct victim *v)
{
	return ++v->seeds;
}

static void send_handle(const struct victim *v)
{
	struct message m = { .kind = MSG_HANDLE };

	snprintf(m.text, sizeof(m.text), "%s", ta_handle(v->writer));
	if (send(v->sock, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		_exit(98);
}

static void op_create(struct victim *v)
{
	struct ta_options o;

	ta_options_init(&o);
	o.engine = test_engine();
	o.slots = 6;
	o.slot_bytes = 4 * MIB;
	o.seats = SURVIVORS;
	o.flags = TA_NO_MEMORY_CHECK;
	victim_expect("create", ta_create(&o, &v->writer, NULL, 0), 0);
	send_handle(v);
}

/* The arena's readers come. */
static void op_welcome(struct victim *v)
{
	double end = now_seconds() + HANG_SECONDS;
	struct ta_stats st;

	do {
		usleep(500);
		victim_expect("stats", ta_stats(v->writer, &st, NULL, 0), 0);
	} while (st.attached < SURVIVORS && now_seconds() < end);
	MUST(st.attached == SURVIVORS);
}

static void op_populate(struct victim *v)
{
	victim_expect("populate", ta_populate(v->writer, 2, 64 * KIB), -ENOMEM);
}

static void put_some(struct victim *v, size_t bytes)
{
	/* Readers may be slow; a decline is an answer, too. */
	victim_expect("put", put_pattern(v->writer, bytes, new_seed(v), NULL),
		      -EAGAIN);
}

static void op_put(struct victim *v)
{
	put_some(v, 1 + random_below(&v->random, 64 * KIB));
}

static void op_put_large(struct victim *v)
{
	put_some(v, 3 * MIB + random_below(&v->random, MIB));
}

static void op_loan(struct victim *v)
{
	int err;

	do {
		err = ta_loan(v->writer, 2 * MIB, &v->loan);
	} while (err == -EAGAIN);
	victim_expect("loan", err, 0);
}

static void op_fill(struct victim *v)
{
	fill_pattern(v->loan->data, v->loan->nbytes, new_seed(v));
}

static void op_commit(struct victim *v)
{
	struct ta_tensor tensor = {
		.code = TA_UINT,
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.tag_bytes = sizeof(v->seeds),
		.shape = { (int64_t)v->loan->nbytes },
	};

	memcpy(tensor.tag, &v->seeds, sizeof(v->seeds));
	victim_expect("commit",
		      ta_commit(v->loan, v->loan->nbytes, &tensor, NULL), 0);
}

static void op_abort(struct victim *v)
{
	victim_expect("abort", ta_abort(v->loan), 0);
}

static void op_retract(struct victim *v)
{
	struct ta_ticket ticket;
	int err = put_pattern(v->writer, 4 * KIB, new_seed(v), &ticket);

	/* Readers may be slow, and they may be quick. */
	victim_expect("put", err, -EAGAIN);
	if (!err)
		victim_expect("retract", ta_retract(v->writer, &ticket, NULL),
			      -ESTALE);
}

static void op_stats(struct victim *v)
{
	struct ta_reader_stats row[4];
	struct ta_stats st;

	victim_expect("stats", ta_stats(v->writer, &st, row, COUNT(row)), 0);
}

static void op_trim(struct victim *v)
{
	victim_expect("trim", ta_trim(v->writer, 0, NULL), -EBUSY);
}

/* The second of the survivors, whichever that is. */
static void op_evict(struct victim *v)
{
	struct message m = { .kind = MSG_EVICTED };
	struct ta_reader_stats row[SURVIVORS];
	struct ta_stats st;

	victim_expect("stats", ta_stats(v->writer, &st, row, COUNT(row)), 0);
	MUST(st.readers == SURVIVORS);
	if (send(v->sock, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		_exit(98);
	victim_expect("evict", ta_evict(v->writer, row[1].reader), 0);
}

static void op_connect(struct victim *v)
{
	int fd = ta_writer_connect(v->writer);

	victim_expect("connect", fd < 0 ? fd : 0, 0);
}

static void op_close(struct victim *v)
{
	ta_writer_close(v->writer);
	v->writer = NULL;
}

static void op_pin(struct victim *v)
{
	op_loan(v);
	op_pin_pages(v, v->loan->data, v->loan->nbytes, true);
}

/* Inside the one memcpy: its source is memory that never comes. */
static void op_copy(struct victim *v)
{
	void *src = sleeping_page(NULL, 2 * MIB);

	MUST(src);
	ta_put(v->writer, src, 2 * MIB, NULL, NULL);
	MUST(false);
}

static void op_oom(struct victim *v)
{
	oom_cgroup_enter();
	put_some(v, 2 * MIB);
	if (random_below(&v->random, 2))
		ta_populate(v->writer, 6, 4 * MIB);
	eat_memory(v);
}

static const struct op ops[] = {
	{ "create", op_create, ON_BOTH, 0, false },
	{ "welcome", op_welcome, ON_BOTH, 0, false },
	{ "populate", op_populate, ON_BOTH, 0, false },
	{ "put", op_put, ON_BOTH, 0, false },
	{ "put much", op_put_large, ON_BOTH, 0, false },
	{ "loan", op_loan, ON_BOTH, 0, false },
	{ "fill", op_fill, ON_BOTH, 0, false },
	{ "commit", op_commit, ON_BOTH, 0, false },
	{ "loan again", op_loan, ON_BOTH, 0, false },
	{ "abort", op_abort, ON_BOTH, 0, false },
	{ "retract", op_retract, ON_BOTH, 0, false },
	{ "stats", op_stats, ON_BOTH, 0, false },
	{ "trim", op_trim, ON_BOTH, 0, false },
	{ "evict", op_evict, ON_BOTH, 0, true },
	{ "connect", op_connect, ON_EMBEDDED, 0, true },
	{ "copy", op_copy, ON_BOTH, OP_SLEEPS, true },
	{ "pin", op_pin, ON_BOTH, 0, true },
	{ "fork", op_fork, ON_BOTH, 0, true },
	{ "fork and exec", op_fork_exec, ON_BOTH, 0, true },
	{ "vfork and exec", op_vfork_exec, ON_BOTH, 0, true },
	{ "exec", op_exec, ON_BOTH, OP_ENDS, true },
	{ "exit", op_exit, ON_BOTH, OP_ENDS, true },
	{ "exit with 64 threads", op_exit_64_threads, ON_BOTH, OP_ENDS, true },
	{ "out of memory", op_oom, ON_BOTH, OP_ENDS | OP_OOM, true },
	{ "close", op_close, ON_BOTH, 0, true },
	RAW_OP("CREATE", raw_create),
	RAW_OP("ACQUIRE", raw_acquire),
	RAW_OP("PUBLISH", raw_publish),
	RAW_OP_READING("ABORT", raw_abort),
	RAW_OP("RETRACT", raw_retract),
	RAW_OP("POPULATE", raw_populate),
	RAW_OP("TRIM", raw_trim),
	RAW_OP("EVICT", raw_evict),
	RAW_OP("STATS", raw_stats),
	RAW_OP("DETACH", raw_writer_detach),
};

const struct role writer_role = { "writer", ops, COUNT(ops) };
