// SPDX-License-Identifier: MIT
/* What a reader does, step by step. */
#include <errno.h>
#include <unistd.h>

#include "kill.h"
#include "pattern.h"
#include "raw.h"

#define PATIENCE_MS ((int)(HANG_SECONDS * 500))

static void op_attach(struct victim *v)
{
	victim_expect("attach", ta_attach(v->handle, &v->reader), 0);
}

static void op_next(struct victim *v)
{
	victim_expect("next", ta_next(v->reader, PATIENCE_MS, &v->view[0]), 0);
}

static void op_read(struct victim *v)
{
	const struct ta_view *view = v->view[0];
	uint64_t seed;

	memcpy(&seed, view->tensor.tag, sizeof(seed));
	MUST(is_pattern(view->data, view->nbytes, seed));
}

static void op_view(struct victim *v)
{
	struct ta_ticket ticket = v->view[0]->ticket;

	victim_expect("view", ta_view(v->reader, &ticket, &v->view[1]), 0);
}

static void op_release(struct victim *v)
{
	victim_expect("release", ta_release(v->view[1]), 0);
	victim_expect("release", ta_release(v->view[0]), 0);
}

static void op_pin(struct victim *v)
{
	op_pin_pages(v, (void *)v->view[0]->data, v->view[0]->nbytes, false);
}

static void op_close(struct victim *v)
{
	ta_reader_close(v->reader);
	v->reader = NULL;
}

static void op_wait(struct victim *v)
{
	struct ta_view *view;

	while (!ta_next(v->reader, -1, &view))
		if (random_below(&v->random, 2))
			victim_expect("release", ta_release(view), 0);
	MUST(false);
}

static void op_oom(struct victim *v)
{
	struct ta_view *view;

	oom_cgroup_enter();
	if (!ta_next(v->reader, 0, &view) && random_below(&v->random, 2))
		ta_release(view);
	eat_memory(v);
}

/* Comes and goes for as long as it may. */
static void op_attach_again(struct victim *v)
{
	int i;

	for (i = 0; i < 3; i++) {
		op_close(v);
		op_attach(v);
	}
}

static const struct op ops[] = {
	{ "attach", op_attach, ON_BOTH, 0, false },
	{ "next", op_next, ON_BOTH, 0, false },
	{ "read", op_read, ON_BOTH, 0, false },
	{ "view", op_view, ON_BOTH, 0, false },
	{ "release", op_release, ON_BOTH, 0, false },
	{ "next again", op_next, ON_BOTH, 0, false },
	{ "wait", op_wait, ON_BOTH, OP_SLEEPS, true },
	{ "pin", op_pin, ON_BOTH, 0, true },
	{ "fork", op_fork, ON_BOTH, 0, true },
	{ "fork and exec", op_fork_exec, ON_BOTH, 0, true },
	{ "vfork and exec", op_vfork_exec, ON_BOTH, 0, true },
	{ "exec", op_exec, ON_BOTH, OP_ENDS, true },
	{ "exit", op_exit, ON_BOTH, OP_ENDS, true },
	{ "exit with 64 threads", op_exit_64_threads, ON_BOTH, OP_ENDS, true },
	{ "out of memory", op_oom, ON_BOTH, OP_ENDS | OP_OOM, true },
	{ "close", op_close, ON_BOTH, 0, true },
	{ "attach again", op_attach_again, ON_BOTH, 0, true },
	RAW_OP("ATTACH", raw_attach),
	RAW_OP("NEXT", raw_next),
	RAW_OP("BORROW", raw_borrow),
	RAW_OP_READING("RELEASE", raw_release),
	RAW_OP("DETACH", raw_reader_detach),
};

const struct role reader_role = { "reader", ops, COUNT(ops) };
