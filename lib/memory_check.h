/* SPDX-License-Identifier: MIT */
/*
 * How much memory this process may still take before somebody is killed for
 * it: the machine's available memory and the headroom of every memory cgroup
 * above us, whichever is least.
 *
 * Shared memory is charged when it is touched, and a charge that does not fit
 * ends in the OOM killer rather than in an error.  So the library asks first:
 * once for the whole arena when it is created, and in the embedded engine again
 * before a slot grows.
 */
#ifndef TA_MEMORY_CHECK_H
#define TA_MEMORY_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* What limits nothing; also the answer where limits cannot be read. */
#define TA_MEMORY_UNLIMITED UINT64_MAX

/*
 * Bytes that may still be taken.
 *
 * @why: when not NULL, receives a clause that says what the limit is, with its
 * figures: "memory cgroup /sys/fs/cgroup/job has 12 MiB left (...)".
 *
 * Returns 0; or -ENOMEM, -EMFILE or -ENFILE when it could not look.
 */
int ta_memory_headroom(uint64_t *bytes, char *why, size_t why_size);

/* The same with @root in front of every path: for tests on made-up trees. */
int ta_memory_headroom_at(const char *root, uint64_t *bytes, char *why,
			  size_t why_size);

#endif /* TA_MEMORY_CHECK_H */
