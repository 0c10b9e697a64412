// SPDX-License-Identifier: MIT
/* Many rounds of the ordinary: nothing accumulates, in either process. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "fixture.h"

struct usage {
	uint32_t fds;
	size_t heap;
	uint64_t slots;
};

static struct usage measure(struct arena *arena)
{
	return (struct usage){
		.fds = count_fds(),
		.heap = mallinfo2().uordblks,
		.slots = stats(arena).allocated_bytes,
	};
}

static void assert_same(const struct usage *a, const struct usage *b)
{
	assert_int_equal(a->fds, b->fds);
	assert_int_equal(a->heap, b->heap);
	assert_int_equal(a->slots, b->slots);
}

static void ten_thousand_puts_take_no_more_than_one(void **state)
{
	struct usage before, after;
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	int i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &r);
	for (i = 0; i < 10000; i++) {
		put(&arena, 64, (uint8_t)i);
		assert_int_equal(next(&r, &b), 0);
		assert_true(sees(&r, &b, (uint8_t)i));
		assert_int_equal(release(&r, &b.ticket), 0);
		if (i)
			continue;
		settle(&r);
		before = measure(&arena);
	}
	settle(&r);
	after = measure(&arena);
	assert_same(&before, &after);
	assert_int_equal(stats(&arena).released, 10000);
	reader_close(&r);
	arena_close(&arena);
}

static void a_thousand_readers_leave_nothing(void **state)
{
	struct usage before, after;
	struct tensorarena_borrow b;
	struct reader r, resident;
	struct arena arena;
	int i;

	(void)state;
	arena_init(&arena, 1);
	arena_open(&arena);
	reader_open(&arena, &resident);
	for (i = 0; i < 1000; i++) {
		reader_open(&arena, &r);
		put(&arena, 64, 1);
		assert_int_equal(next(&r, &b), 0);
		assert_int_equal(next(&resident, &b), 0);
		assert_int_equal(release(&resident, &b.ticket), 0);
		reader_close(&r);
		if (i)
			continue;
		settle(&resident);
		before = measure(&arena);
	}
	settle(&resident);
	after = measure(&arena);
	assert_same(&before, &after);
	assert_int_equal(stats(&arena).detached, 1000);
	assert_int_equal(stats(&arena).free, 4);
	reader_close(&resident);
	arena_close(&arena);
}

static void hundreds_of_arenas_leave_nothing(void **state)
{
	struct arena arena;
	struct reader r;
	uint32_t fds = count_fds();
	size_t heap = 0;
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		arena_init(&arena, 1);
		arena_open(&arena);
		reader_open(&arena, &r);
		put(&arena, 64, 1);
		if (i % 2) {
			reader_close(&r);
			arena_close(&arena);
		} else {
			arena_close(&arena);
			reader_close(&r);
		}
		assert_int_equal(count_fds(), fds);
		/* By then the C library has its caches for threads. */
		if (i == 99)
			heap = mallinfo2().uordblks;
	}
	assert_int_equal(mallinfo2().uordblks, heap);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Handlers without SA_RESTART, so that whatever can be interrupted is. */
static void signals_all_the_time_change_nothing(void **state)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm }, old;
	struct tensorarena_trim trim = { 0 };
	struct tensorarena_borrow b;
	struct arena arena;
	struct reader r;
	int i;

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (i = 0; i < 50; i++) {
		arena_init(&arena, 1);
		arena_open(&arena);
		reader_open(&arena, &r);
		put(&arena, 3 * MIB, 1);
		assert_int_equal(next(&r, &b), 0);
		assert_true(sees(&r, &b, 1));
		assert_int_equal(release(&r, &b.ticket), 0);
		assert_int_equal(writer_call(&arena, TENSORARENA_TRIM, &trim),
				 0);
		assert_int_equal(trim.allocated_bytes, 0);
		reader_close(&r);
		arena_close(&arena);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
}

#define WRITERS 2
#define READERS 4
#define ROUNDS 2000
#define EVICTIONS 5

/**
 * struct bustle - everybody at once
 * @writing: writers not done yet
 * @evicted: readers thrown out so far
 * @late: readers that had not attached by TA_ATTACH_MS
 * @wrong: something was not as it should be
 */
struct bustle {
	struct arena arena;
	atomic_int writing;
	atomic_int evicted;
	atomic_int late;
	atomic_int wrong;
};

static bool fits(int err)
{
	return !err || err == -EAGAIN;
}

static void *write_much(void *arg)
{
	struct bustle *b = arg;
	struct tensorarena_acquire acq;
	struct tensorarena_slot_ref ref;
	struct tensorarena_ticket t;
	uint64_t nbytes;
	int i, err;

	for (i = 0; i < ROUNDS || b->evicted < EVICTIONS; i++) {
		nbytes = i % 64 ? 512 : 3 * MIB;
		err = acquire(&b->arena, nbytes, &acq);
		b->wrong += !fits(err);
		if (err)
			continue;
		/* What readers check the bytes against. */
		memset(writer_data(&b->arena, acq.slot), (int)acq.generation,
		       512);
		if (i % 7) {
			b->wrong += publish(&b->arena, &acq, 512, &t) < 0;
			continue;
		}
		ref = (struct tensorarena_slot_ref){
			.generation = acq.generation,
			.slot = acq.slot,
		};
		b->wrong += !!writer_call(&b->arena, TENSORARENA_ABORT, &ref);
	}
	b->writing--;
	return NULL;
}

/* One stay of a reader; ends by itself after a while, or when evicted. */
static void stay(struct bustle *b)
{
	struct tensorarena_borrow held[3];
	struct reader r;
	uint64_t start = ta_now_ns();
	int n = 0, left = 200, err;

	err = attach(&b->arena, -1, &r);
	/* Where one of the two gets no processor for so long it is in order. */
	if ((err == -ETIMEDOUT || err == -EPIPE) &&
	    ta_now_ns() - start >= TA_ATTACH_MS * 1000000ull)
		b->late++;
	else
		b->wrong += !!err;
	if (err)
		return;
	while (b->writing && left--) {
		if (n == 3) {
			n--;
			err = release(&r, &held[n].ticket);
			b->wrong += err && err != -EOWNERDEAD;
		}
		err = next(&r, &held[n]);
		b->wrong += !fits(err) && err != -EOWNERDEAD;
		if (err == -EOWNERDEAD)
			break;
		if (err)
			continue;
		/* Only the evicted may find other bytes. */
		if (!sees(&r, &held[n], (uint8_t)held[n].ticket.generation))
			b->wrong += release(&r, &held[n].ticket) != -EOWNERDEAD;
		n++;
	}
	reader_close(&r);
}

static void *read_much(void *arg)
{
	struct bustle *b = arg;

	while (b->writing)
		stay(b);
	return NULL;
}

static void evict_somebody(struct bustle *b)
{
	struct tensorarena_reader_stats row = { 0 };
	struct tensorarena_stats st = { .readers = (uintptr_t)&row,
					.row_bytes = sizeof(row),
					.nr_readers = 1 };
	struct tensorarena_evict evict = { 0 };

	b->wrong += !!writer_call(&b->arena, TENSORARENA_STATS, &st);
	evict.reader = row.reader;
	/* It may have left by itself meanwhile. */
	if (!writer_call(&b->arena, TENSORARENA_EVICT, &evict))
		b->evicted++;
}

static void *meddle(void *arg)
{
	struct bustle *b = arg;
	struct tensorarena_populate pop = { .nbytes = MIB, .slots = 3 };
	struct tensorarena_trim trim = { .keep_bytes = 2 * MIB };
	int fd;

	while (b->writing) {
		b->wrong +=
			!!writer_call(&b->arena, TENSORARENA_POPULATE, &pop);
		b->wrong += !!writer_call(&b->arena, TENSORARENA_TRIM, &trim);
		evict_somebody(b);
		fd = b->arena.port->ops->connect(b->arena.port);
		if (fd >= 0)
			close(fd);
		stats(&b->arena);
	}
	return NULL;
}

static void everybody_at_once(void **state)
{
	pthread_t thread[WRITERS + READERS + 1];
	struct bustle b = { .writing = WRITERS };
	struct tensorarena_stats st;
	struct reader r;
	uint32_t fds = count_fds();
	int i, n = 0;

	(void)state;
	arena_init(&b.arena, 0);
	arena_open(&b.arena);
	for (i = 0; i < WRITERS; i++)
		pthread_create(&thread[n++], NULL, write_much, &b);
	for (i = 0; i < READERS; i++)
		pthread_create(&thread[n++], NULL, read_much, &b);
	pthread_create(&thread[n++], NULL, meddle, &b);
	while (n)
		pthread_join(thread[--n], NULL);
	assert_int_equal(b.wrong, 0);
	reader_open(&b.arena, &r);
	settle(&r);
	reader_close(&r);
	st = stats(&b.arena);
	assert_int_equal(st.free, 4);
	assert_int_equal(st.nr_readers, 0);
	assert_in_range(st.reclaimed_dead_readers, 0, b.late);
	assert_int_equal(st.attached,
			 st.detached + st.evicted + st.reclaimed_dead_readers);
	assert_int_equal(st.evicted, b.evicted);
	arena_close(&b.arena);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_puts_take_no_more_than_one),
		cmocka_unit_test(a_thousand_readers_leave_nothing),
		cmocka_unit_test(hundreds_of_arenas_leave_nothing),
		cmocka_unit_test(signals_all_the_time_change_nothing),
		cmocka_unit_test(everybody_at_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("embedded long run", tests, NULL,
					   NULL);
}
