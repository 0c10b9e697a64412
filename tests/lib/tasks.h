/* SPDX-License-Identifier: MIT */
/* The threads of this process, and its memory, as the kernel sees them. */
#ifndef TA_TEST_TASKS_H
#define TA_TEST_TASKS_H

#include <sched.h>
#include <stdint.h>

/* How many there are. */
uint32_t count_tasks(void);
/*
 * Fails unless there are, or soon will be, @nr copying threads: one that has
 * been joined can still be seen for a moment.
 */
void expect_copiers(uint32_t nr);

/**
 * struct copiers - what all copying threads have in common
 * @nr: how many there are
 * @asleep: how many are
 * @blocked: signals that every one of them blocks; bit 0 is signal 1
 * @ticks: processor time they have had, together
 * @cpus: processors that some of them may run on
 */
struct copiers {
	uint32_t nr;
	uint32_t asleep;
	uint64_t blocked;
	uint64_t ticks;
	cpu_set_t cpus;
};

void look_at_copiers(struct copiers *copiers);
/* Waits until there are @nr and all are asleep; fails when that never is. */
void await_sleep(uint32_t nr, struct copiers *copiers);

/* KiB of memory that belongs to this process alone and is no file's. */
uint64_t own_kib(void);

void nap_ms(long ms);

/*
 * From here to allow_threads() no thread can be started; false: that cannot be
 * brought about here.
 */
int forbid_threads(void);
void allow_threads(void);

#endif /* TA_TEST_TASKS_H */
