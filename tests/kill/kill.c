// SPDX-License-Identifier: MIT
/*
 * The director; see kill.h.
 *
 *	kill-reader | kill-writer [--rounds N] [--seed S] [--only ROUND]
 *
 * The name it is called by says who dies.  The first rounds are to learn how
 * many stops each operation has and how long it takes: its victim is killed
 * after it.  From then on a round's number and the seed decide everything.
 * TENSORARENA_SECONDS in the environment ends it earlier.  The result is TAP,
 * one point an operation, and a last line with the rounds that passed and
 * failed.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <sys/wait.h>

#include "kill.h"

enum purpose {
	FOR_HOW,
	FOR_WHERE,
	FOR_VICTIM,
};

/**
 * struct tally - what became of an operation's rounds
 * @skip: why it cannot be done here
 * @stops: system call stops it has
 * @seconds: how long it takes
 * @at_stop: victims killed at one of its stops; @in_time, @after, @self alike
 * @stop_seen: which stops those were, as a mask of 64 parts
 */
struct tally {
	const char *skip;
	uint32_t stops;
	double seconds;
	uint64_t at_stop, in_time, after, self;
	uint64_t failed;
	char why[256];
};

static const struct role *role;
static struct tally *tally;
static const char *(*round_of)(const struct blow *blow, uint64_t seed,
			       struct outcome *outcome);

/* Operations that do not end here are hit in their beginning. */
static const double endless = 0.02;

static bool can_trace(const struct op *op)
{
	return !(op->flags & (OP_SLEEPS | OP_OOM));
}

static void aim(const struct campaign *c, uint64_t round, struct blow *blow)
{
	uint64_t how = campaign_random(c, round, FOR_HOW);
	double where = random_fraction(campaign_random(c, round, FOR_WHERE));
	const struct tally *t = &tally[blow->op];

	blow->traced = can_trace(&role->op[blow->op]) && how % 3;
	blow->stop = (uint32_t)(where * (t->stops + 1));
	/* A little beyond its end, which is a point as well. */
	blow->delay = 1e-9 + where * 1.1 * (t->seconds ? t->seconds : endless);
}

static void count(struct tally *t, const struct blow *blow,
		  const struct outcome *o)
{
	if (o->self)
		t->self++;
	else if (o->ended)
		t->after++;
	else if (blow->traced)
		t->at_stop++;
	else
		t->in_time++;
}

/* A victim may not end in any way but those its operation is about. */
static const char *judge(const struct op *op, const struct outcome *o)
{
	if (WIFSIGNALED(o->status) && WTERMSIG(o->status) == SIGKILL)
		return NULL;
	if (op->flags & OP_ENDS && WIFEXITED(o->status) &&
	    !WEXITSTATUS(o->status))
		return NULL;
	return wrong("the victim ended with status 0x%x", o->status);
}

static void play(const struct campaign *c, uint64_t round,
		 const struct blow *blow, struct outcome *o)
{
	const struct op *op = &role->op[blow->op];
	struct tally *t = &tally[blow->op];
	const char *why =
		round_of(blow, campaign_random(c, round, FOR_VICTIM), o);

	if (!why)
		why = judge(op, o);
	count(t, blow, o);
	if (!why)
		return;
	t->failed++;
	snprintf(t->why, sizeof(t->why), "%s", why);
	printf("# round %" PRIu64 " (--seed %" PRIu64
	       "), %s, %s %u, %.6f s: %s\n",
	       round, c->seed, op->name, blow->traced ? "stop" : "time",
	       blow->stop, blow->delay, why);
	fflush(stdout);
}

/* Learns about every operation; these are rounds like any other. */
static uint64_t learn(const struct campaign *c)
{
	uint64_t round = 0;
	struct outcome o;
	uint32_t i;

	for (i = 0; i < role->nr; i++) {
		struct blow blow = { .op = i, .stop = ~0U };

		if (tally[i].skip)
			continue;
		play(c, round++, &blow, &o);
		tally[i].seconds = o.seconds;
		if (!can_trace(&role->op[i]))
			continue;
		blow.traced = true;
		play(c, round++, &blow, &o);
		tally[i].stops = o.stops;
	}
	return round;
}

static uint32_t next_op(uint32_t op)
{
	do
		op = (op + 1) % role->nr;
	while (tally[op].skip);
	return op;
}

static void campaign(const struct campaign *c)
{
	const double end = campaign_end();
	struct blow blow = { .op = role->nr - 1 };
	uint64_t round = learn(c);
	struct outcome o;

	for (; round < c->rounds || c->only != ~0ULL; round++) {
		if (now_seconds() >= end)
			break;
		blow.op = next_op(blow.op);
		aim(c, round, &blow);
		if (c->only == ~0ULL || c->only == round)
			play(c, round, &blow, &o);
		if (c->only == round)
			break;
	}
}

static void find_skips(void)
{
	unsigned int engine = test_engine() == TA_ENGINE_DEVICE ? ON_DEVICE :
								  ON_EMBEDDED;
	const char *no_cgroup = oom_cgroup_make();
	uint32_t i;

	for (i = 0; i < role->nr; i++) {
		const struct op *op = &role->op[i];

		if (!(op->engines & engine))
			tally[i].skip = "not on this engine";
		else if (op->flags & OP_OOM)
			tally[i].skip = no_cgroup;
		/* Asked here, in a process that will not use it. */
		else if (op->flags & OP_SLEEPS && !sleeping_page(NULL, 1))
			tally[i].skip = "no userfaultfd here";
		else if (op->flags & OP_ANSWERS &&
			 !sleeping_page_to_write("", 1))
			tally[i].skip = "userfaultfd does not see writes here";
	}
}

static void report(const struct campaign *c, const char *end)
{
	uint64_t rounds = 0, failed = 0;
	char name[32];
	uint32_t i;

	for (i = 0; i < role->nr; i++) {
		const struct tally *t = &tally[i];

		if (t->skip) {
			printf("ok %u - %s killed in %s # SKIP %s\n", i + 1,
			       role->name, role->op[i].name, t->skip);
			continue;
		}
		printf("# %s: %" PRIu64 " at one of %u stops, %" PRIu64
		       " in time, %" PRIu64 " after it, %" PRIu64
		       " ended by themselves\n",
		       role->op[i].name, t->at_stop, t->stops, t->in_time,
		       t->after, t->self);
		printf("%sok %u - nothing is lost when a %s is killed in %s\n",
		       t->failed ? "not " : "", i + 1, role->name,
		       role->op[i].name);
		rounds += t->at_stop + t->in_time + t->after + t->self;
		failed += t->failed;
	}
	if (end)
		printf("# %s\n", end);
	printf("%sok %u - nothing is left in the end\n", end ? "not " : "",
	       role->nr + 1);
	snprintf(name, sizeof(name), "kill-%s", role->name);
	campaign_fact(name, rounds, "rounds", failed);
	printf("# seed %" PRIu64 "\n", c->seed);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", rounds - failed,
	       failed + !!end);
	fflush(stdout);
	exit(failed || end);
}

int main(int argc, char **argv)
{
	const char *end;
	struct campaign c;

	if (argc > 3 && !strcmp(argv[1], "victim"))
		return victim_main(argv);
	if (argc > 3 && !strcmp(argv[1], "survivor"))
		return survivor_main(argv);
	if (argc > 4 && !strcmp(argv[1], "linger"))
		return linger_main(argv);

	c = campaign_start(argc, argv, 60);
	if (strstr(basename(argv[0]), "writer")) {
		role = &writer_role;
		round_of = writer_round;
	} else {
		role = &reader_role;
		round_of = reader_round;
	}
	tally = calloc(role->nr, sizeof(*tally));
	MUST(tally);
	printf("1..%u\n", role->nr + 1);
	find_skips();
	campaign(&c);
	end = role == &writer_role ? writer_rounds_end() : reader_rounds_end();
	oom_cgroup_remove();
	report(&c, end);
}
