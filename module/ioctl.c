// SPDX-License-Identifier: GPL-2.0-only
/* Dispatch of size-extensible ioctls. */
#include <linux/ioctl.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "ioctl.h"

/* Commands are the same when all but their size is. */
static bool same_command(unsigned int a, unsigned int b)
{
	return !((a ^ b) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT));
}

long ta_ioctl_dispatch(const struct ta_ioctl *table, size_t nr, void *self,
		       unsigned int cmd, unsigned long arg)
{
	const struct ta_user user = {
		.ptr = (void __user *)arg,
		.size = _IOC_SIZE(cmd),
	};
	size_t i;

	for (i = 0; i < nr; i++) {
		if (!same_command(table[i].cmd, cmd))
			continue;
		if (user.size < table[i].min_size)
			return -EINVAL;
		return table[i].run(self, &user);
	}
	return -ENOTTY;
}

int ta_copy_in(const struct ta_user *user, void *dst, size_t size)
{
	return copy_struct_from_user(dst, size, user->ptr, user->size);
}

int ta_copy_out(const struct ta_user *user, const void *src, size_t size)
{
	size = min(size, user->size);
	return copy_to_user(user->ptr, src, size) ? -EFAULT : 0;
}
