// SPDX-License-Identifier: MIT
/*
 * The fuzzer; see fuzz.h.
 *
 *	op-fuzz [--rounds OPERATIONS] [--seed S] [--only SEQUENCE]
 *
 * TENSORARENA_SECONDS in the environment ends each of its two parts earlier.
 */
#include <inttypes.h>

#include "crowd.h"

#define CORPUS 512
/*
 * Of every so many operations, one is of these: what takes the emulated machine
 * a hundred times as long as a system call is rare.
 */
#define OBSERVE_EVERY 6
#define FORK_EVERY 997
#define MALFORMED_EVERY 13
#define MAPPING_EVERY 17
#define POPULATE_EVERY 61
#define TRIM_EVERY 59
#define CHILD_EVERY 64
#define COME_OR_GO_EVERY 4

static struct sequence corpus[CORPUS];
static uint32_t kept;
static struct fuzz_tally tally;

/* ---- one operation ---- */

#define COME_OR_GO (1U << OP_ATTACH | 1U << OP_LEAVE)

static bool anybody_reads(const struct stage *s)
{
	uint32_t i;

	for (i = 0; i < MODEL_SEATS; i++)
		if (s->seat[i].port || s->seat[i].child)
			return true;
	return false;
}

static bool has_port(const struct stage *s)
{
	bool has = s->writer;
	uint32_t i;

	for (i = 0; i < MODEL_SEATS; i++)
		has = has || s->seat[i].port;
	return has;
}

/*
 * First a kind, then one of the kind: there are many more tickets to borrow
 * than slots to acquire.
 */
static const char *machine_op(struct stage *s, uint32_t choice, bool *good)
{
	static struct op all[MODEL_OPS], some[MODEL_OPS];
	uint32_t nr = world_ops(&s->w, all), nr_some = 0, i;
	uint32_t kinds = 0, kind;
	struct op op;

	for (i = 0; i < nr; i++)
		if (can_express(s, &all[i]))
			kinds |= 1U << all[i].kind;
	/* A writer's end is the end of much. */
	if (choice % 256 && kinds != 1U << OP_WRITER_GONE)
		kinds &= ~(1U << OP_WRITER_GONE);
	choice /= 256;
	if (choice % COME_OR_GO_EVERY && kinds & ~COME_OR_GO &&
	    (anybody_reads(s) || !s->writer))
		kinds &= ~COME_OR_GO;
	choice /= COME_OR_GO_EVERY;
	if (!kinds)
		return NULL;
	kind = choice % (uint32_t)__builtin_popcount(kinds);
	choice /= 32;
	while (kind--)
		kinds &= kinds - 1;
	kind = (uint32_t)__builtin_ctz(kinds);
	for (i = 0; i < nr; i++)
		if (all[i].kind == kind && can_express(s, &all[i]))
			some[nr_some++] = all[i];
	op = some[choice % nr_some];
	/* Some readers are processes of their own. */
	op.unused = kind == OP_ATTACH && choice / 8 % CHILD_EVERY == 0;
	tally.kind[kind]++;
	return modelled_op(s, &op, good);
}

static const char *any_op(struct stage *s, uint32_t choice, bool *good)
{
	uint32_t what = choice % 1009;

	choice = choice * 2654435761U >> 4;
	*good = false;
	if (what % OBSERVE_EVERY == 0)
		return observe(s, good);
	/* These are the kernel's. */
	if (s->device && has_port(s) && what % FORK_EVERY == 0)
		return foreign_op(s, choice);
	if (s->device && has_port(s) && what % MALFORMED_EVERY == 0)
		return malformed_op(s, choice);
	if (s->device && has_port(s) && what % MAPPING_EVERY == 0)
		return mapping_op(s, choice, good);
	if (s->writer && what % POPULATE_EVERY == 0)
		return populate_op(s, choice, good);
	if (s->writer && what % TRIM_EVERY == 0)
		return trim_op(s, choice, good);
	return machine_op(s, choice, good);
}

/* ---- sequences ---- */

static void make_sequence(struct sequence *q, uint64_t *random)
{
	uint32_t i, from;

	if (kept && random_below(random, 2)) {
		*q = corpus[random_below(random, kept)];
		/* Another end, or another something in the middle. */
		from = (uint32_t)random_below(random, q->nr);
		if (random_below(random, 2)) {
			q->choice[from] = (uint32_t)random_next(random);
			from = q->nr;
		}
	} else {
		from = 0;
	}
	q->nr = 20 + (uint32_t)random_below(random, SEQUENCE_OPS - 20);
	for (i = from; i < q->nr; i++)
		q->choice[i] = (uint32_t)random_next(random);
}

static const char *play(const struct sequence *q, uint32_t seats, uint32_t *at)
{
	static struct stage s;
	const char *why = NULL;
	bool good;
	uint32_t i;

	stage_open(&s, seats);
	for (i = 0; i < q->nr && !why; i++) {
		/* The embedded engine ends with its writer. */
		if (!s.writer && (!s.device || !anybody_reads(&s)))
			break;
		why = any_op(&s, q->choice[i], &good);
		tally.ops++;
		tally.succeeded += good;
		if (!why)
			why = model_compare(&s.w);
	}
	*at = i;
	return why ?: stage_close(&s);
}

static const char *run_sequence(const struct campaign *c, uint64_t nr)
{
	uint64_t random = campaign_random(c, nr, 0);
	uint32_t seats = (uint32_t)random_below(&random, MODEL_SEATS + 1);
	struct sequence q;
	const char *why;
	uint32_t at;

	make_sequence(&q, &random);
	kcov_start();
	why = play(&q, seats, &at);
	if (kcov_stop() && kept < CORPUS)
		corpus[kept++] = q;
	if (why)
		printf("# sequence %" PRIu64 " (--seed %" PRIu64
		       "), operation %u: %s\n",
		       nr, c->seed, at, why);
	tally.sequences++;
	return why;
}

/* On a slow machine it takes hours. */
static void show_progress(const struct campaign *c)
{
	static uint64_t shown;

	if (tally.ops * 20 / c->rounds == shown)
		return;
	shown = tally.ops * 20 / c->rounds;
	printf("# %" PRIu64 " operations, %u places reached\n", tally.ops,
	       kcov_total());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct campaign c = campaign_start(argc, argv, 20000);
	bool coverage = kcov_open();
	uint64_t failures = 0, nr;
	const char *why;
	double share, end;
	int i;

	printf("1..3\n");
	/*
	 * What has been kept depends on everything before, so that one sequence
	 * can only be had again by all before it.
	 */
	end = campaign_end();
	for (nr = 0; tally.ops < c.rounds && failures < 10; nr++) {
		if (now_seconds() >= end && tally.ops)
			break;
		if (c.only != ~0ULL && nr > c.only)
			break;
		failures += run_sequence(&c, nr) != NULL;
		show_progress(&c);
	}
	share = (double)tally.succeeded / (double)tally.ops;
	printf("# %" PRIu64 " operations in %" PRIu64
	       " sequences, %.0f%% of them succeeded\n",
	       tally.ops, tally.sequences, share * 100);
	for (i = 0; i < 64; i++)
		if (tally.kind[i])
			printf("# kind %d: %" PRIu64 "\n", i, tally.kind[i]);
	if (coverage)
		printf("# %u places in the module reached, %u sequences kept\n",
		       kcov_total(), kept);
	printf("%sok 1 - every answer is the model's\n",
	       failures ? "not " : "");
	printf("%sok 2 - a fifth of the operations succeed\n",
	       share < 0.2 ? "not " : "");
	campaign_fact("op-fuzz, modelled", tally.ops, "operations", failures);
	memset(&tally, 0, sizeof(tally));
	why = crowd_run(c.rounds, campaign_random(&c, 0, 1), &tally);
	printf("# %" PRIu64
	       " operations of a crowd, %.0f%% of them succeeded\n",
	       tally.ops, (double)tally.succeeded / (double)tally.ops * 100);
	if (why)
		printf("# %s\n", why);
	printf("%sok 3 - a crowd loses nothing and sees nothing wrong\n",
	       why ? "not " : "");
	campaign_fact("op-fuzz, crowd", tally.ops, "operations", !!why);
	return failures || share < 0.2 || why;
}
