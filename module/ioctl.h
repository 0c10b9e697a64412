/* SPDX-License-Identifier: GPL-2.0-only */
/* Dispatch of size-extensible ioctls. */
#ifndef TA_IOCTL_H
#define TA_IOCTL_H

#include <linux/types.h>

/**
 * struct ta_user - the caller's structure
 * @ptr: where it is
 * @size: how large the caller thinks it is
 */
struct ta_user {
	void __user *ptr;
	size_t size;
};

/**
 * struct ta_ioctl - one command of one kind of file
 * @cmd: command number
 * @min_size: of its structure's first version, below which nobody can be
 * @run: does it; @self is what the file's private_data points to
 */
struct ta_ioctl {
	unsigned int cmd;
	size_t min_size;
	long (*run)(void *self, const struct ta_user *user);
};

long ta_ioctl_dispatch(const struct ta_ioctl *table, size_t nr, void *self,
		       unsigned int cmd, unsigned long arg);

/* What an older caller does not have is zero; -E2BIG: more than we know. */
int ta_copy_in(const struct ta_user *user, void *dst, size_t size);
/* As much as the caller knows. */
int ta_copy_out(const struct ta_user *user, const void *src, size_t size);

#endif /* TA_IOCTL_H */
