// SPDX-License-Identifier: MIT
/* Copies are exact however they are made, and only large ones start threads. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <lib/copy.h>
#include <lib/copy_gather.h>

#include "tasks.h"
#include "test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MARGIN ((size_t)4096)
#define CANARY 0xa5

/* Large enough for every plan. */
#define LARGEST (64 * MIB)
#define ROOM (68 * MIB)

static uint8_t *source, *target;

static int make_buffers(void **state)
{
	size_t i;

	(void)state;
	source = aligned_alloc(2 * MIB, ROOM);
	target = aligned_alloc(2 * MIB, ROOM);
	if (!source || !target)
		return -1;
	for (i = 0; i < ROOM / 8; i++)
		((uint64_t *)source)[i] = (i + 1) * 0x9e3779b97f4a7c15;
	return 0;
}

static int free_buffers(void **state)
{
	(void)state;
	free(source);
	free(target);
	return 0;
}

static void expect_canaries(const uint8_t *p, size_t n)
{
	while (n--)
		assert_int_equal(p[n], CANARY);
}

/* A copy of @n bytes to @to, between canaries. */
static void check_copy(struct ta_copier *copier, size_t n, size_t to,
		       size_t from)
{
	uint8_t *dst = target + MARGIN + to;

	memset(dst - 64, CANARY, 64);
	memset(dst, CANARY, n);
	memset(dst + n, CANARY, 64);
	ta_copy(copier, dst, source + from, n);
	if (memcmp(dst, source + from, n))
		fail_msg("%zu bytes to %zu from %zu with %s are wrong", n, to,
			 from, copier->kernel->name);
	expect_canaries(dst - 64, 64);
	expect_canaries(dst + n, 64);
}

/* The next size for which the table says something else; 0: none. */
static size_t next_plan(size_t n)
{
	const struct ta_copy_plan *plan = ta_copy_plan_for(n);
	size_t high = SIZE_MAX, middle;

	if (ta_copy_plan_for(high) == plan)
		return 0;
	while (high - n > 1) {
		middle = n + (high - n) / 2;
		if (ta_copy_plan_for(middle) == plan)
			n = middle;
		else
			high = middle;
	}
	return high;
}

static void the_table_makes_sense(void **state)
{
	const struct ta_copy_plan *plan = ta_copy_plan_for(0), *next;
	size_t n;

	(void)state;
	assert_int_equal(plan->from, 0);
	assert_int_equal(plan->threads, 1);
	assert_false(plan->stream);
	for (n = next_plan(0); n; n = next_plan(n), plan = next) {
		next = ta_copy_plan_for(n);
		assert_int_equal(next->from, n);
		assert_in_range(next->threads, plan->threads,
				TA_COPY_MAX_THREADS);
		assert_true(next->stream);
		assert_true(n <= LARGEST);
		if (next->threads == 1)
			continue;
		assert_true(next->chunk >= 64 * KIB);
		assert_int_equal(next->chunk & (next->chunk - 1), 0);
		/* There is a chunk for everybody. */
		assert_true(n / next->chunk >= next->threads);
	}
}

static void copies_are_exact_where_the_plan_changes(void **state)
{
	struct ta_copier copier;
	size_t n;

	(void)state;
	ta_copier_init(&copier, 4, -1);
	check_copy(&copier, 0, 0, 0);
	check_copy(&copier, 1, 0, 0);
	for (n = next_plan(0); n; n = next_plan(n)) {
		check_copy(&copier, n - 1, 0, 0);
		check_copy(&copier, n, 17, 0);
		check_copy(&copier, n + 1, 63, 5);
	}
	check_copy(&copier, LARGEST + 12345, 0, 3);
	ta_copier_destroy(&copier, false);
}

/* @check with every kernel there is here. */
static void with_every_kernel(struct ta_copier *copier,
			      void (*check)(struct ta_copier *))
{
	const struct ta_copy_kernel *kernel;

	copier->kernel = &ta_copy_plain;
	check(copier);
	for (kernel = ta_copy_streaming; kernel->name; kernel++)
		if (kernel->usable()) {
			copier->kernel = kernel;
			check(copier);
		}
}

static void check_chunks(struct ta_copier *copier)
{
	const size_t chunk = copier->forced->chunk;
	static const size_t to[] = { 0, 1, 64, 4095 };
	size_t i, chunks, delta;

	for (i = 0; i < ARRAY_SIZE(to); i++)
		for (chunks = 0; chunks < 5; chunks++)
			for (delta = chunks ? 0 : 65; delta <= 130; delta++)
				check_copy(copier, chunks * chunk + delta - 65,
					   to[i], delta % 7);
}

static void copies_are_exact_around_the_ends_of_chunks(void **state)
{
	const struct ta_copy_plan plan = { 0, 3, 4 * KIB, true };
	struct ta_copier copier;

	(void)state;
	ta_copier_init(&copier, 3, -1);
	copier.forced = &plan;
	with_every_kernel(&copier, check_chunks);
	ta_copier_destroy(&copier, false);
}

static _Atomic uint32_t streamed;

static void count_and_copy(void *dst, const void *src, size_t n)
{
	atomic_fetch_add(&streamed, 1);
	memcpy(dst, src, n);
}

static void what_is_small_is_not_streamed(void **state)
{
	struct ta_copy_kernel spy = ta_copy_plain;
	const struct ta_part rows[] = {
		{ source, 100000, 64, 65 },
		{ source, 3000, 4096, 5000 },
	};
	size_t n, large = next_plan(0);
	struct ta_copier copier;
	uint32_t threads;

	(void)state;
	spy.copy = count_and_copy;
	for (threads = 1; threads <= 3; threads += 2) {
		ta_copier_init(&copier, threads, -1);
		copier.kernel = &spy;
		atomic_store(&streamed, 0);
		check_copy(&copier, large - 1, 0, 0);
		assert_int_equal(streamed, 0);
		check_copy(&copier, large, 0, 0);
		assert_int_equal(streamed, 1);
		/* Nor are small rows, however many. */
		atomic_store(&streamed, 0);
		assert_ok(ta_parts_nbytes(&rows[0], 1, &n));
		ta_copy_parts(&copier, target, &rows[0], n);
		assert_int_equal(streamed, 0);
		assert_ok(ta_parts_nbytes(&rows[1], 1, &n));
		ta_copy_parts(&copier, target, &rows[1], n);
		assert_true(streamed >= 3000);
		ta_copier_destroy(&copier, false);
	}
}

/* Rows of several kinds, more than a chunk each and much less. */
static void check_parts(struct ta_copier *copier)
{
	const struct ta_part parts[] = {
		{ source + 1, 1, 100003, 0 },
		{ source + 7, 5000, 3, 11 },
		{ NULL, 0, 0, 0 },
		{ source + 64, 700, 1024, 1500 },
		{ source, 9, 70000, 70001 },
		{ source + 3, 100, 64, 0 },
		{ source, 300, 4096, 4096 },
		{ source + 5, 1, 1, 0 },
	};
	uint8_t *dst = target + MARGIN + 13;
	const uint8_t *row;
	size_t n, done = 0, r, i;

	assert_ok(ta_parts_nbytes(parts, ARRAY_SIZE(parts), &n));
	memset(dst - 64, CANARY, n + 128);
	ta_copy_parts(copier, dst, parts, n);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		for (r = 0; r < parts[i].rows; r++) {
			row = parts[i].data;
			row += r * parts[i].stride;
			if (memcmp(dst + done, row, parts[i].row_bytes))
				fail_msg("part %zu, row %zu with %s", i, r,
					 copier->kernel->name);
			done += parts[i].row_bytes;
		}
	assert_int_equal(done, n);
	expect_canaries(dst - 64, 64);
	expect_canaries(dst + n, 64);
}

static void parts_are_gathered_exactly_by_several_threads(void **state)
{
	const struct ta_copy_plan plan = { 0, 4, 16 * KIB, true };
	struct ta_copier copier;
	int i;

	(void)state;
	ta_copier_init(&copier, 4, -1);
	copier.forced = &plan;
	for (i = 0; i < 8; i++)
		with_every_kernel(&copier, check_parts);
	ta_copier_destroy(&copier, false);
}

/* ---- threads ---- */

#define MANY 16

/* For when only the number of threads matters: not so many bytes. */
static const struct ta_copy_plan many = { 0, MANY, 64 * KIB, true };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many there should be for a copy of @n bytes, by the table and as told. */
static uint32_t threads_for(size_t n, uint32_t most)
{
	return least(ta_copy_plan_for(n)->threads, most);
}

static void only_large_copies_start_threads(void **state)
{
	size_t crossover = next_plan(0);
	struct ta_cpus_found found;
	struct ta_copier copier;

	(void)state;
	while (ta_copy_plan_for(crossover)->threads == 1)
		crossover = next_plan(crossover);
	ta_cpus_find(-1, &found);
	ta_copier_init(&copier, 0, -1);
	expect_copiers(0);
	check_copy(&copier, crossover - 1, 0, 0);
	expect_copiers(0);
	assert_null(atomic_load(&copier.pool));
	check_copy(&copier, crossover, 0, 0);
	expect_copiers(threads_for(crossover, found.threads) - 1);
	check_copy(&copier, LARGEST, 0, 0);
	expect_copiers(threads_for(LARGEST, found.threads) - 1);
	/* They stay for the next. */
	check_copy(&copier, crossover, 0, 0);
	expect_copiers(threads_for(LARGEST, found.threads) - 1);
	ta_copier_destroy(&copier, false);
	expect_copiers(0);
}

static void one_thread_when_told_so_is_the_callers(void **state)
{
	struct ta_copier copier;

	(void)state;
	ta_copier_init(&copier, 1, -1);
	copier.forced = &many;
	check_copy(&copier, MIB, 0, 0);
	expect_copiers(0);
	ta_copier_destroy(&copier, false);
}

static void more_threads_than_processors_are_possible_when_told_so(void **state)
{
	struct ta_copier copier;

	(void)state;
	ta_copier_init(&copier, 64, -1);
	copier.forced = &many;
	check_copy(&copier, MIB, 0, 0);
	expect_copiers(MANY - 1);
	ta_copier_destroy(&copier, false);
	expect_copiers(0);
}

static void one_processor_needs_no_thread(void **state)
{
	struct ta_cpus here = { 0 }, one = { 0 };
	struct ta_copier copier;
	size_t cpu = 0;

	(void)state;
	assert_int_not_equal(sched_getaffinity(0, sizeof(here.set), here.set),
			     -1);
	while (!CPU_ISSET_S(cpu, sizeof(here.set), here.set))
		cpu++;
	CPU_SET_S(cpu, sizeof(one.set), one.set);
	ta_cpus_move_to(&one);
	ta_copier_init(&copier, 0, -1);
	copier.forced = &many;
	check_copy(&copier, MIB, 0, 0);
	check_copy(&copier, MIB, 1, 0);
	ta_cpus_move_to(&here);
	expect_copiers(0);
	/* That has been found out once and for all, or until told. */
	check_copy(&copier, MIB, 0, 0);
	expect_copiers(0);
	ta_copier_set_threads(&copier, 2);
	check_copy(&copier, MIB, 0, 0);
	expect_copiers(1);
	ta_copier_destroy(&copier, false);
}

static void the_number_of_threads_can_be_changed(void **state)
{
	struct ta_cpus_found found;
	struct ta_copier copier;

	(void)state;
	ta_cpus_find(-1, &found);
	ta_copier_init(&copier, 2, -1);
	copier.forced = &many;
	check_copy(&copier, MIB, 0, 0);
	expect_copiers(1);
	ta_copier_set_threads(&copier, 5);
	expect_copiers(1);
	check_copy(&copier, MIB, 1, 0);
	expect_copiers(4);
	ta_copier_set_threads(&copier, 3);
	expect_copiers(2);
	check_copy(&copier, MIB, 2, 0);
	expect_copiers(2);
	ta_copier_set_threads(&copier, 1);
	expect_copiers(0);
	check_copy(&copier, MIB, 3, 0);
	expect_copiers(0);
	/* Back to choosing, from above and from below. */
	ta_copier_set_threads(&copier, 16);
	check_copy(&copier, MIB, 4, 0);
	expect_copiers(15);
	ta_copier_set_threads(&copier, 0);
	check_copy(&copier, MIB, 5, 0);
	expect_copiers(least(MANY, found.threads) - 1);
	ta_copier_destroy(&copier, false);
	expect_copiers(0);
}

static void a_copy_does_without_threads_that_cannot_be_had(void **state)
{
	struct ta_copier copier;

	(void)state;
	ta_copier_init(&copier, 4, -1);
	copier.forced = &many;
	if (!forbid_threads())
		skip();
	check_copy(&copier, MIB, 0, 0);
	allow_threads();
	expect_copiers(0);
	/* It is not tried at every copy... */
	check_copy(&copier, MIB, 1, 0);
	expect_copiers(0);
	/* ...but when somebody says so. */
	ta_copier_set_threads(&copier, 4);
	check_copy(&copier, MIB, 2, 0);
	expect_copiers(3);
	ta_copier_destroy(&copier, false);
}

static void a_node_may_be_given(void **state)
{
	struct ta_copier copier;
	int node;

	(void)state;
	/* The last is one that nobody has. */
	for (node = 0; node <= 1023; node += 1023) {
		ta_copier_init(&copier, 3, node);
		copier.forced = &many;
		check_copy(&copier, MIB, 0, 0);
		expect_copiers(2);
		ta_copier_destroy(&copier, false);
	}
}

struct copying {
	struct ta_copier *copier;
	pthread_t thread;
	size_t at;
	uint32_t wrong;
};

static void *copy_often(void *arg)
{
	struct copying *c = arg;
	size_t n = 3 * MIB + c->at / 64;
	int i;

	for (i = 0; i < 8; i++) {
		memset(target + c->at, CANARY, n);
		ta_copy(c->copier, target + c->at, source + c->at + i, n);
		c->wrong += !!memcmp(target + c->at, source + c->at + i, n);
	}
	return NULL;
}

static void several_copies_at_once_are_exact(void **state)
{
	struct copying copying[6];
	struct ta_copier copier;
	uint32_t i;

	(void)state;
	ta_copier_init(&copier, 4, -1);
	for (i = 0; i < ARRAY_SIZE(copying); i++) {
		copying[i] = (struct copying){
			.copier = &copier,
			.at = i * 5 * MIB + i,
		};
		assert_int_equal(pthread_create(&copying[i].thread, NULL,
						copy_often, &copying[i]),
				 0);
	}
	for (i = 0; i < ARRAY_SIZE(copying); i++) {
		assert_int_equal(pthread_join(copying[i].thread, NULL), 0);
		assert_int_equal(copying[i].wrong, 0);
	}
	ta_copier_destroy(&copier, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_makes_sense),
		cmocka_unit_test(copies_are_exact_where_the_plan_changes),
		cmocka_unit_test(copies_are_exact_around_the_ends_of_chunks),
		cmocka_unit_test(what_is_small_is_not_streamed),
		cmocka_unit_test(parts_are_gathered_exactly_by_several_threads),
		cmocka_unit_test(only_large_copies_start_threads),
		cmocka_unit_test(one_thread_when_told_so_is_the_callers),
		cmocka_unit_test(
			more_threads_than_processors_are_possible_when_told_so),
		cmocka_unit_test(one_processor_needs_no_thread),
		cmocka_unit_test(the_number_of_threads_can_be_changed),
		cmocka_unit_test(
			a_copy_does_without_threads_that_cannot_be_had),
		cmocka_unit_test(a_node_may_be_given),
		cmocka_unit_test(several_copies_at_once_are_exact),
	};

	return run_all(tests, make_buffers, free_buffers);
}
