// SPDX-License-Identifier: GPL-2.0-only
/* /sys/class/tensorarena: the control node and a directory for each arena. */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "arena.h"
#include "compat.h"

static struct class *ta_class;
static struct cdev ta_cdev;
static dev_t ta_devt;

/**
 * struct ta_attribute - a file that shows one field of the arena's stats
 * @attr: the attribute
 * @offset: of the field in struct tensorarena_stats
 * @size: of the field, bytes
 */
struct ta_attribute {
	struct device_attribute attr;
	size_t offset;
	size_t size;
};

static ssize_t stat_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	const struct ta_attribute *a =
		container_of(attr, struct ta_attribute, attr);
	struct ta_arena *arena = dev_get_drvdata(dev);
	struct tensorarena_stats st = {};
	const void *field = (void *)&st + a->offset;

	mutex_lock(&arena->lock);
	ta_arena_stats(arena, ktime_get_ns(), &st);
	mutex_unlock(&arena->lock);
	return sysfs_emit(buf, "%llu\n", a->size == sizeof(u32) ?
			  (u64)*(const u32 *)field : *(const u64 *)field);
}

#define TA_STAT_FIELD(file, field)					\
static struct ta_attribute stat_attr_##file = {				\
	.attr	= __ATTR(file, 0444, stat_show, NULL),			\
	.offset	= offsetof(struct tensorarena_stats, field),		\
	.size	= sizeof_field(struct tensorarena_stats, field),	\
}

#define TA_STAT(field)	TA_STAT_FIELD(field, field)

TA_STAT(slots);
TA_STAT(free);
TA_STAT(writing);
TA_STAT(published);
TA_STAT_FIELD(readers, nr_readers);
TA_STAT(allocated_bytes);
TA_STAT(oldest_ns);
TA_STAT(puts);
TA_STAT(put_bytes);
TA_STAT(unaddressed);
TA_STAT(aborted);
TA_STAT(released);
TA_STAT(declined_no_slot);
TA_STAT(declined_oversize);
TA_STAT(declined_no_memory);
TA_STAT(attached);
TA_STAT(detached);
TA_STAT(evicted);
TA_STAT(reclaimed_dead_readers);

static ssize_t slot_bytes_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%llu\n", arena->slots.slot_bytes);
}
static DEVICE_ATTR_RO(slot_bytes);

static ssize_t stride_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%llu\n", arena->stride);
}
static DEVICE_ATTR_RO(stride);

/* One figure a slot, in slot order. */
static ssize_t show_extents(struct device *dev, char *buf,
			    u64 (*figure)(const struct ta_extents *extents))
{
	struct ta_arena *arena = dev_get_drvdata(dev);
	struct ta_extents extents;
	int len = 0;
	u32 i;

	for (i = 0; i < arena->slots.nr; i++) {
		ta_pages_extents(&arena->pages, i, &extents);
		len += sysfs_emit_at(buf, len, "%s%llu", i ? " " : "",
				     figure(&extents));
	}
	return len + sysfs_emit_at(buf, len, "\n");
}

static u64 extent_count(const struct ta_extents *extents)
{
	return extents->count;
}

static u64 extent_largest(const struct ta_extents *extents)
{
	return extents->largest;
}

static u64 extent_huge(const struct ta_extents *extents)
{
	return extents->huge;
}

static ssize_t slot_extents_show(struct device *dev,
				 struct device_attribute *attr, char *buf)
{
	return show_extents(dev, buf, extent_count);
}
static DEVICE_ATTR_RO(slot_extents);

static ssize_t slot_largest_extent_bytes_show(struct device *dev,
					      struct device_attribute *attr,
					      char *buf)
{
	return show_extents(dev, buf, extent_largest);
}
static DEVICE_ATTR_RO(slot_largest_extent_bytes);

static ssize_t slot_huge_bytes_show(struct device *dev,
				    struct device_attribute *attr, char *buf)
{
	return show_extents(dev, buf, extent_huge);
}
static DEVICE_ATTR_RO(slot_huge_bytes);

static ssize_t tier_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	static const char * const name[] = {
		[TA_TIER_HUGE]			= "huge",
		[TA_TIER_FALLBACK_SMALL]	= "fallback_small",
		[TA_TIER_CONTIGUOUS]		= "contiguous",
	};
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", name[arena->pages.tier]);
}
static DEVICE_ATTR_RO(tier);

static ssize_t node_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", arena->pages.node);
}
static DEVICE_ATTR_RO(node);

static struct attribute *ta_arena_attrs[] = {
	&dev_attr_slot_bytes.attr,
	&dev_attr_stride.attr,
	&dev_attr_tier.attr,
	&dev_attr_node.attr,
	&dev_attr_slot_extents.attr,
	&dev_attr_slot_largest_extent_bytes.attr,
	&dev_attr_slot_huge_bytes.attr,
	&stat_attr_slots.attr.attr,
	&stat_attr_free.attr.attr,
	&stat_attr_writing.attr.attr,
	&stat_attr_published.attr.attr,
	&stat_attr_readers.attr.attr,
	&stat_attr_allocated_bytes.attr.attr,
	&stat_attr_oldest_ns.attr.attr,
	&stat_attr_puts.attr.attr,
	&stat_attr_put_bytes.attr.attr,
	&stat_attr_unaddressed.attr.attr,
	&stat_attr_aborted.attr.attr,
	&stat_attr_released.attr.attr,
	&stat_attr_declined_no_slot.attr.attr,
	&stat_attr_declined_oversize.attr.attr,
	&stat_attr_declined_no_memory.attr.attr,
	&stat_attr_attached.attr.attr,
	&stat_attr_detached.attr.attr,
	&stat_attr_evicted.attr.attr,
	&stat_attr_reclaimed_dead_readers.attr.attr,
	NULL
};
ATTRIBUTE_GROUPS(ta_arena);

int ta_sysfs_add(struct ta_arena *arena)
{
	arena->dev = device_create_with_groups(ta_class, NULL, MKDEV(0, 0),
					       arena, ta_arena_groups,
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
	dev = device_create(ta_class, NULL, ta_devt, NULL, "tensorarena");
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
