/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Failing one allocation, or one copy from or to user memory, of what this
 * thread does next: the kernel's fault injection, by /proc/thread-self/fail-nth.
 */
#ifndef TA_FAULTS_INJECT_H
#define TA_FAULTS_INJECT_H

#include "tests/selftests/machine.h"

#define FAULT_DIR "/sys/kernel/debug/"

/* Every kind of allocation, not only those that may not sleep; silently. */
static inline bool inject_setup(void)
{
	static const char *const on[] = { "failslab", "fail_page_alloc",
					  "fail_usercopy" };
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		snprintf(path, sizeof(path), FAULT_DIR "%s/verbose", on[i]);
		if (write_to(path, "0"))
			return false;
	}
	MUST(!write_to(FAULT_DIR "failslab/ignore-gfp-wait", "N"));
	MUST(!write_to(FAULT_DIR "fail_page_alloc/ignore-gfp-wait", "N"));
	MUST(!write_to(FAULT_DIR "fail_page_alloc/ignore-gfp-highmem", "N"));
	MUST(!write_to(FAULT_DIR "fail_page_alloc/min-order", "0"));
	return true;
}

static inline int inject_open(void)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

/* The @nth chance to fail from here on does. */
static inline void inject(int fd, unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	MUST(write(fd, text, (size_t)n) == n);
}

/*
 * Ends it; whether it has struck.  What it strikes only now, reading this very
 * file, counts as not.
 */
static inline bool injected(int fd)
{
	char text[16] = "";
	bool struck = pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	while (write(fd, "0", 1) != 1)
		MUST(errno == EFAULT || errno == ENOMEM);
	return struck;
}

/* Every @percent-th chance of this thread's, until it is 0 again. */
static inline void inject_often(unsigned int percent)
{
	static const char *const on[] = { "failslab", "fail_page_alloc",
					  "fail_usercopy" };
	char path[128];
	size_t i;

	for (i = 0; percent && i < sizeof(on) / sizeof(on[0]); i++) {
		snprintf(path, sizeof(path), FAULT_DIR "%s/task-filter", on[i]);
		MUST(!write_to(path, "Y"));
		snprintf(path, sizeof(path), FAULT_DIR "%s/times", on[i]);
		MUST(!write_to(path, "-1"));
		snprintf(path, sizeof(path), FAULT_DIR "%s/probability", on[i]);
		MUST(!write_figure(path, percent));
	}
	/* Ending it may be struck itself. */
	while (write_to("/proc/self/make-it-fail", percent ? "1" : "0"))
		MUST(errno == EFAULT || errno == ENOMEM);
}

#endif /* TA_FAULTS_INJECT_H */
