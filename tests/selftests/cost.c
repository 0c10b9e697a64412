// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the commands cost.  Figures for people: printed, never judged, because
 * they say more about the machine than about the module.
 */
#include <kselftest_harness.h>
#include <linux/perf_event.h>

#include "arena.h"
#include "proc.h"

#define ROUNDS 2000

static int counter_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* Instructions so far, 0 where the processor does not count them. */
static uint64_t instructions(int counter)
{
	uint64_t value = 0;

	if (counter >= 0)
		MUST(read(counter, &value, sizeof(value)) == sizeof(value));
	return value;
}

struct meter {
	int counter;
	uint64_t count;
	double ms;
};

static void meter_start(struct meter *m)
{
	m->count = instructions(m->counter);
	m->ms = now_ms();
}

static void meter_stop(const struct meter *m, const char *what)
{
	double ns = (now_ms() - m->ms) * 1e6 / ROUNDS;
	uint64_t count = (instructions(m->counter) - m->count) / ROUNDS;

	if (m->counter >= 0)
		printf("# %-36s %8.0f ns %8llu instructions\n", what, ns,
		       (unsigned long long)count);
	else
		printf("# %-36s %8.0f ns\n", what, ns);
}

TEST(each_command)
{
	struct meter m = { .counter = counter_open() };
	struct tensorarena_acquire acq;
	struct tensorarena_borrow b;
	struct reader r;
	struct arena a;
	int i, nothing;

	arena_create(&a, 4, CHUNK, 0);
	reader_attach(&a, &r);
	ASSERT_EQ(0, acquire(&a, 1, &acq));
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));

	meter_start(&m);
	for (i = 0; i < ROUNDS; i++)
		ioctl(a.fd, 0, NULL);
	meter_stop(&m, "a command that does not exist");
	meter_start(&m);
	for (i = 0; i < ROUNDS; i++)
		MUST(next(&r, &b) == -EAGAIN);
	meter_stop(&m, "NEXT, nothing there");
	meter_start(&m);
	for (i = 0; i < ROUNDS; i++) {
		MUST(!acquire(&a, 1, &acq));
		MUST(!abort_slot(&a, acq.slot, acq.generation));
	}
	meter_stop(&m, "ACQUIRE + ABORT");
	meter_start(&m);
	for (i = 0; i < ROUNDS; i++) {
		MUST(!acquire(&a, 1, &acq));
		MUST(publish(&a, acq.slot, acq.generation, 1) == 1);
		MUST(!next(&r, &b));
		MUST(!release(&r, &b.ticket));
	}
	meter_stop(&m, "ACQUIRE + PUBLISH + NEXT + RELEASE");
	meter_start(&m);
	for (i = 0; i < ROUNDS; i++)
		nothing = poll_now(a.fd) + poll_now(r.fd);
	meter_stop(&m, "poll of both files");
	EXPECT_EQ(POLLOUT, nothing);
}

/* The writer's cost must not grow with the readers much. */
TEST(the_writer_with_many_readers)
{
	static const uint32_t readers[] = { 1, 8, 64 };
	struct reader r[TENSORARENA_MAX_READERS];
	struct tensorarena_acquire acq;
	struct arena a;
	uint32_t nr = 0;
	size_t i;
	int round;

	arena_create(&a, 1, CHUNK, 0);
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		char what[64];
		double cost = 0;

		while (nr < readers[i])
			reader_attach(&a, &r[nr++]);
		for (round = 0; round < ROUNDS / 10; round++) {
			struct tensorarena_ticket ticket;
			double start = now_ms();
			uint32_t j;

			MUST(!acquire(&a, 1, &acq));
			MUST(publish(&a, acq.slot, acq.generation, 1) ==
			     (int)nr);
			cost += now_ms() - start;
			ticket.slot = acq.slot;
			ticket.generation = acq.generation;
			for (j = 0; j < nr; j++)
				MUST(!release(&r[j], &ticket));
		}
		snprintf(what, sizeof(what), "ACQUIRE + PUBLISH, %u readers",
			 nr);
		printf("# %-36s %8.0f ns\n", what, cost * 1e6 / round);
	}
	EXPECT_EQ(TENSORARENA_MAX_READERS, nr);
}

TEST(building_and_faulting_a_chunk)
{
	struct tensorarena_acquire acq;
	struct tensorarena_trim trim = { 0 };
	struct arena a;
	double ms;
	int i;

	arena_create(&a, 1, 8 * CHUNK, 0);
	arena_map(&a);
	ms = now_ms();
	ASSERT_EQ(0, acquire(&a, 8 * CHUNK, &acq));
	printf("# %-36s %8.0f us\n", "building 2 MiB",
	       (now_ms() - ms) * 1e3 / 8);
	ms = now_ms();
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, touch_read(a.map + (size_t)i * CHUNK));
	printf("# %-36s %8.0f us\n", "first touch of 2 MiB",
	       (now_ms() - ms) * 1e3 / 8);
	ASSERT_EQ(0, abort_slot(&a, acq.slot, acq.generation));
	ms = now_ms();
	ASSERT_EQ(0, request(a.fd, TENSORARENA_TRIM, &trim));
	printf("# %-36s %8.0f us\n", "freeing 2 MiB",
	       (now_ms() - ms) * 1e3 / 8);
	EXPECT_EQ(8 * CHUNK, trim.freed_bytes);
}

TEST_HARNESS_MAIN
