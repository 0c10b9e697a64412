// SPDX-License-Identifier: MIT
/* The queue of the dead and the thread that empties it; see reaper.h. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>

#include <lib/thread.h>

#include "reaper.h"

/* Until what could not be buried is tried again. */
#define AGAIN_NS 1000000

/*
 * All of this process.  @queue is a stack that is taken whole, so nothing is
 * ever popped from it and no counter is needed against reuse.  @lock: one
 * buries at a time; it guards @later.
 *
 * Barriers.  Pushing is a release and pairs with the acquire of taking all: what
 * died is whole.  Both, and @running, are sequentially consistent besides: who
 * pushes and then finds no reaper to wake has pushed before the reaper, which is
 * started after @running is set, first takes all.
 */
static struct {
	struct dead *queue;
	struct dead *later;
	pthread_mutex_t lock;
	bool burying;
	bool running;
	sem_t wake;
} reaper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

void reaper_push(struct dead *dead)
{
	struct dead *head = __atomic_load_n(&reaper.queue, __ATOMIC_RELAXED);

	do
		dead->next = head;
	while (!__atomic_compare_exchange_n(&reaper.queue, &head, dead, true,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	/*
	 * Otherwise it has been woken by whoever found the queue empty.  It looks
	 * after that also when a caller has been quicker, and so finds @later.
	 */
	if (!head && reaper_is_running())
		sem_post(&reaper.wake);
}

/* All of the queue, oldest first.  Pairs with reaper_push(). */
static struct dead *take_all(void)
{
	struct dead *dead =
		__atomic_exchange_n(&reaper.queue, NULL, __ATOMIC_SEQ_CST);
	struct dead *oldest = NULL;

	while (dead) {
		struct dead *next = dead->next;

		dead->next = oldest;
		oldest = dead;
		dead = next;
	}
	return oldest;
}

/* Buries a list; what must come last is put into @last. */
static void bury(struct dead *dead, struct dead **last)
{
	struct dead *next;

	for (; dead; dead = next) {
		next = dead->next;
		if (dead->last) {
			dead->next = *last;
			*last = dead;
		} else if (!dead->bury(dead)) {
			dead->next = reaper.later;
			__atomic_store_n(&reaper.later, dead, __ATOMIC_RELAXED);
		}
	}
}

void reaper_drain(void)
{
	struct dead *again, *dead, *next;
	struct dead *last = NULL;

	pthread_mutex_lock(&reaper.lock);
	__atomic_store_n(&reaper.burying, true, __ATOMIC_RELAXED);
	again = reaper.later;
	__atomic_store_n(&reaper.later, NULL, __ATOMIC_RELAXED);
	bury(again, &last);
	/* A burial may have been the death of something else. */
	while ((dead = take_all()))
		bury(dead, &last);
	__atomic_store_n(&reaper.burying, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&reaper.lock);

	for (dead = last; dead; dead = next) {
		next = dead->next;
		dead->bury(dead);
	}
}

/* Relaxed: a guess, made before every call; the reaper goes by more than this. */
bool reaper_is_busy(void)
{
	return __atomic_load_n(&reaper.queue, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&reaper.later, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&reaper.burying, __ATOMIC_RELAXED);
}

/* Under the lock: what a caller is just trying is on no list meanwhile. */
static bool has_to_try_again(void)
{
	bool again;

	pthread_mutex_lock(&reaper.lock);
	again = reaper.later;
	pthread_mutex_unlock(&reaper.lock);
	return again;
}

static void wait_for_work(void)
{
	struct timespec until;

	if (!has_to_try_again()) {
		sem_wait(&reaper.wake);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += AGAIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	sem_clockwait(&reaper.wake, CLOCK_MONOTONIC, &until);
}

static void *reap(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "ta-reaper");
	for (;;) {
		wait_for_work();
		reaper_drain();
	}
	return NULL;
}

void reaper_start(void)
{
	pthread_t thread;

	if (reaper_is_running() || sem_init(&reaper.wake, 0, 0))
		return;
	/* Whoever finds the queue empty from here on wakes it: reaper_push(). */
	__atomic_store_n(&reaper.running, true, __ATOMIC_SEQ_CST);
	if (!ta_thread_start(&thread, reap, NULL)) {
		pthread_detach(thread);
		sem_post(&reaper.wake);
	} else {
		__atomic_store_n(&reaper.running, false, __ATOMIC_SEQ_CST);
	}
}

bool reaper_is_running(void)
{
	return __atomic_load_n(&reaper.running, __ATOMIC_SEQ_CST);
}

void reaper_forget(void)
{
	reaper.queue = NULL;
	reaper.later = NULL;
	reaper.burying = false;
	reaper.running = false;
	pthread_mutex_init(&reaper.lock, NULL);
}
