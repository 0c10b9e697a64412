// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/tensorarena: the control node and a directory for each arena, for
 * which a misc device has no place.  The driver core tells udev when one comes
 * or goes.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "arena.h"
#include "compat.h"
#include "sysfs.h"

static struct class *ta_class;
static struct cdev ta_cdev;
static dev_t ta_devt;

static const struct attribute_group *arena_groups[] = {
	&ta_arena_group,
	&ta_figures_group,
	NULL
};

static const struct attribute_group *control_groups[] = {
	&ta_totals_group,
	&ta_figures_group,
	NULL
};

int ta_sysfs_add(struct ta_arena *arena)
{
	arena->dev = device_create_with_groups(ta_class, NULL, MKDEV(0, 0),
					       arena, arena_groups,
					       "arena%llu", arena->id);
	return PTR_ERR_OR_ZERO(arena->dev);
}

void ta_sysfs_remove(struct ta_arena *arena)
{
	/* Waits for readers of the attributes. */
	device_unregister(arena->dev);
}

/* Not for everybody: udev gives it to a group where there is one. */
static char *ta_devnode(TA_DEVNODE_DEVICE *dev, umode_t *mode)
{
	if (mode && dev->devt)
		*mode = 0660;
	return NULL;
}

int ta_sysfs_init(const struct file_operations *control_fops)
{
	struct device *dev;
	int err;

	ta_class = ta_class_create("tensorarena");
	if (IS_ERR(ta_class))
		return PTR_ERR(ta_class);
	ta_class->devnode = ta_devnode;

	err = alloc_chrdev_region(&ta_devt, 0, 1, "tensorarena");
	if (err)
		goto destroy_class;
	cdev_init(&ta_cdev, control_fops);
	ta_cdev.owner = THIS_MODULE;
	err = cdev_add(&ta_cdev, ta_devt, 1);
	if (err)
		goto unregister_region;
	dev = device_create_with_groups(ta_class, NULL, ta_devt, NULL,
					control_groups, "tensorarena");
	err = PTR_ERR_OR_ZERO(dev);
	if (err)
		goto del_cdev;
	return 0;

del_cdev:
	cdev_del(&ta_cdev);
unregister_region:
	unregister_chrdev_region(ta_devt, 1);
destroy_class:
	class_destroy(ta_class);
	return err;
}

void ta_sysfs_exit(void)
{
	device_destroy(ta_class, ta_devt);
	cdev_del(&ta_cdev);
	unregister_chrdev_region(ta_devt, 1);
	class_destroy(ta_class);
}
