/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only file that knows kernel versions.  Each helper here has one name
 * and one meaning on every kernel from 6.1 on.
 */
#ifndef TA_COMPAT_H
#define TA_COMPAT_H

#include <linux/device.h>
#include <linux/mm.h>
#include <linux/version.h>

/* 6.4 dropped the module argument. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define ta_class_create(name)	class_create(THIS_MODULE, name)
#else
#define ta_class_create(name)	class_create(name)
#endif

/* 6.2 made the device const. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define TA_DEVNODE_DEVICE	struct device
#else
#define TA_DEVNODE_DEVICE	const struct device
#endif

/* 6.3 made vm_flags read-only to drivers. */
static inline void ta_vma_mod_flags(struct vm_area_struct *vma,
				    unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

#endif /* TA_COMPAT_H */
