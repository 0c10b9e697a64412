// SPDX-License-Identifier: MIT
/* The queue of the dead and the threads that empty it; see reaper.h. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>

#include <lib/thread.h>

#include "reaper.h"

/* Until what could not be buried is tried again. */
#define AGAIN_NS 1000000

/* Threads that wait for work; what is more, when a burial was long, ends. */
#define MAX_IDLE 2

TAILQ_HEAD(graves, grave);

/*
 * All of this process.  @queue is a stack that is taken whole, so nothing is
 * ever popped from it and no counter is needed against reuse.  @lock guards
 * @graves, which are those that are listed, what is in them, and @idle; it is
 * held for a few instructions, never across a burial, and no other is taken
 * under it.  @buried tells that a thread has left a grave.  @left: those of near
 * graves; atomic.
 *
 * Barriers.  Pushing is a release and pairs with the acquire of taking all: what
 * died is whole.  Both, and @running, are sequentially consistent besides: who
 * pushes and then finds no reaper to wake has pushed before the reaper, which is
 * started after @running is set, first takes all.
 */
static struct {
	struct dead *queue;
	pthread_mutex_t lock;
	pthread_cond_t buried;
	struct graves graves;
	unsigned int idle;
	unsigned int left;
	bool running;
	sem_t wake;
} reaper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.buried = PTHREAD_COND_INITIALIZER,
	.graves = TAILQ_HEAD_INITIALIZER(reaper.graves),
};

/* ---- graves ---- */

void grave_init(struct grave *grave, bool near)
{
	*grave = (struct grave){ .near = near };
	grave->tail = &grave->due;
}

void grave_close(struct grave *grave)
{
	pthread_mutex_lock(&reaper.lock);
	while (grave->burying)
		pthread_cond_wait(&reaper.buried, &reaper.lock);
	pthread_mutex_unlock(&reaper.lock);
}

/* Relaxed: a figure, and a guess; the reaper goes by more than this. */
unsigned int grave_left(const struct grave *grave)
{
	return __atomic_load_n(&grave->left, __ATOMIC_RELAXED);
}

static void count(struct grave *grave, unsigned int change)
{
	__atomic_add_fetch(&grave->left, change, __ATOMIC_RELAXED);
	if (grave->near)
		__atomic_add_fetch(&reaper.left, change, __ATOMIC_RELAXED);
}

static void make_due(struct grave *grave, struct dead *dead)
{
	dead->next = NULL;
	*grave->tail = dead;
	grave->tail = &dead->next;
}

/* What refused is due once more. */
static void try_again(struct grave *grave)
{
	struct dead *dead, *next;

	for (dead = grave->later; dead; dead = next) {
		next = dead->next;
		make_due(grave, dead);
	}
	grave->later = NULL;
}

/* ---- the queue ---- */

void reaper_push(struct dead *dead)
{
	struct dead *head = __atomic_load_n(&reaper.queue, __ATOMIC_RELAXED);

	if (!dead->last)
		count(dead->grave, 1);
	do
		dead->next = head;
	while (!__atomic_compare_exchange_n(&reaper.queue, &head, dead, true,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	/*
	 * Otherwise it has been woken by whoever found the queue empty.  It looks
	 * after that also when a caller has been quicker, and so finds what is
	 * left in graves.
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

/* Lays all of the queue into its graves; under the lock. */
static void sort(void)
{
	struct dead *dead, *next;

	for (dead = take_all(); dead; dead = next) {
		struct grave *grave = dead->grave;

		next = dead->next;
		if (dead->last)
			grave->owner = dead;
		else
			make_due(grave, dead);
		if (!grave->listed)
			TAILQ_INSERT_TAIL(&reaper.graves, grave, link);
		grave->listed = true;
	}
}

static void unlist(struct grave *grave)
{
	TAILQ_REMOVE(&reaper.graves, grave, link);
	grave->listed = false;
}

/* ---- burying: under the lock, which is let go of meanwhile ---- */

/* Returns what refused. */
static struct dead *bury_each(struct grave *grave, struct dead *dead)
{
	struct dead *refused = NULL, *next;

	for (; dead; dead = next) {
		next = dead->next;
		if (dead->bury(dead)) {
			count(grave, -1u);
		} else {
			dead->next = refused;
			refused = dead;
		}
	}
	return refused;
}

static void bury_due(struct grave *grave)
{
	struct dead *dead, *refused, *next;

	grave->burying = true;
	while ((dead = grave->due)) {
		grave->due = NULL;
		grave->tail = &grave->due;
		pthread_mutex_unlock(&reaper.lock);
		refused = bury_each(grave, dead);
		pthread_mutex_lock(&reaper.lock);
		for (; refused; refused = next) {
			next = refused->next;
			refused->next = grave->later;
			grave->later = refused;
		}
		/* A burial may have been the death of something else. */
		sort();
	}
	grave->burying = false;
	pthread_cond_broadcast(&reaper.buried);
	if (!grave->later && !grave->owner)
		unlist(grave);
}

/* The grave goes with it. */
static void bury_owner(struct grave *grave)
{
	struct dead *owner = grave->owner;

	unlist(grave);
	pthread_mutex_unlock(&reaper.lock);
	owner->bury(owner);
	pthread_mutex_lock(&reaper.lock);
}

static void bury(struct grave *grave)
{
	if (grave->due)
		bury_due(grave);
	else
		bury_owner(grave);
}

/* ---- callers ---- */

/* Without a reaper everything is: somebody has to. */
static bool is_ours(const struct grave *grave, const struct grave *own)
{
	return grave == own || grave->near || !reaper_is_running();
}

/* One with something that a caller is to bury, or is to wait for. */
static struct grave *next_of_ours(const struct grave *own, bool burying)
{
	struct grave *grave;

	TAILQ_FOREACH(grave, &reaper.graves, link)
		if (is_ours(grave, own) && grave->burying == burying &&
		    (burying || grave->due ||
		     (grave->owner && !reaper_is_running())))
			break;
	return grave;
}

void reaper_drain(struct grave *own)
{
	struct grave *grave;
	bool more = false;

	pthread_mutex_lock(&reaper.lock);
	sort();
	TAILQ_FOREACH(grave, &reaper.graves, link)
		if (is_ours(grave, own) && !grave->burying)
			try_again(grave);
	for (;;) {
		if ((grave = next_of_ours(own, false)))
			bury(grave);
		else if (next_of_ours(own, true))
			pthread_cond_wait(&reaper.buried, &reaper.lock);
		else
			break;
	}
	TAILQ_FOREACH(grave, &reaper.graves, link)
		more |= grave->later || grave->owner;
	pthread_mutex_unlock(&reaper.lock);
	/* The reaper has passed by what has just been in our hands. */
	if (more && reaper_is_running())
		sem_post(&reaper.wake);
}

bool reaper_is_busy(const struct grave *own)
{
	return grave_left(own) ||
	       __atomic_load_n(&reaper.left, __ATOMIC_RELAXED) ||
	       (!reaper_is_running() &&
		__atomic_load_n(&reaper.queue, __ATOMIC_RELAXED));
}

/* ---- the reaper ---- */

static struct grave *next_of_all(void)
{
	struct grave *grave;

	TAILQ_FOREACH(grave, &reaper.graves, link)
		if (!grave->burying && (grave->due || grave->owner))
			break;
	return grave;
}

static bool has_to_try_again(void)
{
	struct grave *grave;

	TAILQ_FOREACH(grave, &reaper.graves, link)
		if (grave->later)
			return true;
	return false;
}

/* Under the lock, and not while it sleeps. */
static void wait_for_work(void)
{
	bool again = has_to_try_again();
	struct timespec until;
	struct grave *grave;

	pthread_mutex_unlock(&reaper.lock);
	if (again) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += AGAIN_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		sem_clockwait(&reaper.wake, CLOCK_MONOTONIC, &until);
	} else {
		sem_wait(&reaper.wake);
	}
	pthread_mutex_lock(&reaper.lock);
	TAILQ_FOREACH(grave, &reaper.graves, link)
		if (!grave->burying)
			try_again(grave);
}

static void *reap(void *unused);

/* Under the lock: one more, which is idle until it has the lock. */
static bool start_thread(void)
{
	pthread_t thread;

	if (ta_thread_start(&thread, reap, NULL))
		return false;
	pthread_detach(thread);
	reaper.idle++;
	return true;
}

static void *reap(void *unused)
{
	struct grave *grave;

	(void)unused;
	prctl(PR_SET_NAME, "ta-reaper");
	pthread_mutex_lock(&reaper.lock);
	do {
		reaper.idle--;
		sort();
		while ((grave = next_of_all())) {
			/*
			 * This may take long.  There may be other graves, for
			 * which nobody has been woken, and others die meanwhile.
			 */
			if (reaper.idle)
				sem_post(&reaper.wake);
			else
				start_thread();
			bury(grave);
		}
		if (reaper.idle == MAX_IDLE)
			break;
		reaper.idle++;
		wait_for_work();
	} while (true);
	pthread_mutex_unlock(&reaper.lock);
	return NULL;
}

void reaper_start(void)
{
	if (reaper_is_running() || sem_init(&reaper.wake, 0, 0))
		return;
	/* Whoever finds the queue empty from here on wakes it: reaper_push(). */
	__atomic_store_n(&reaper.running, true, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&reaper.lock);
	if (!start_thread())
		__atomic_store_n(&reaper.running, false, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&reaper.lock);
}

bool reaper_is_running(void)
{
	return __atomic_load_n(&reaper.running, __ATOMIC_SEQ_CST);
}

void reaper_forget(void)
{
	reaper.queue = NULL;
	TAILQ_INIT(&reaper.graves);
	reaper.idle = 0;
	reaper.left = 0;
	reaper.running = false;
	pthread_mutex_init(&reaper.lock, NULL);
	pthread_cond_init(&reaper.buried, NULL);
}
