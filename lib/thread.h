/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#ifndef TA_THREAD_H
#define TA_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts one that takes no signals: those are for the program's. 0 or -errno. */
static inline int ta_thread_start(pthread_t *thread, void *(*fn)(void *arg),
				  void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (err)
		return -err;
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

#endif /* TA_THREAD_H */
