// SPDX-License-Identifier: GPL-2.0-only
/* What sysfs says of an arena alone: its shape, its memory, its seats. */
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sysfs.h>

#include "arena.h"
#include "sysfs.h"

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

static ssize_t flags_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%#x\n", arena->flags);
}
static DEVICE_ATTR_RO(flags);

static ssize_t uid_show(struct device *dev, struct device_attribute *attr,
			char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u\n",
			  from_kuid_munged(current_user_ns(), arena->uid));
}
static DEVICE_ATTR_RO(uid);

static ssize_t writer_pid_show(struct device *dev,
			       struct device_attribute *attr, char *buf)
{
	struct ta_arena *arena = dev_get_drvdata(dev);
	pid_t pid = 0;

	mutex_lock(&arena->lock);
	if (arena->writer)
		pid = pid_vnr(arena->writer->owner_tgid);
	mutex_unlock(&arena->lock);
	return sysfs_emit(buf, "%d\n", pid);
}
static DEVICE_ATTR_RO(writer_pid);

/* One figure an open seat, in the order of seats. */
static ssize_t show_seats(struct device *dev, char *buf,
			  u64 (*figure)(const struct ta_arena *arena, u32 seat))
{
	struct ta_arena *arena = dev_get_drvdata(dev);
	int len = 0;
	u64 left;

	mutex_lock(&arena->lock);
	for (left = arena->slots.open; left; left &= left - 1)
		len += sysfs_emit_at(buf, len, "%s%llu", len ? " " : "",
				     figure(arena, __ffs64(left)));
	mutex_unlock(&arena->lock);
	return len + sysfs_emit_at(buf, len, "\n");
}

static u64 seat_number(const struct ta_arena *arena, u32 seat)
{
	return seat;
}

static u64 seat_reader(const struct ta_arena *arena, u32 seat)
{
	return arena->slots.reader[seat];
}

static u64 seat_pid(const struct ta_arena *arena, u32 seat)
{
	const struct ta_role *role = arena->seat[seat];

	return role ? pid_vnr(role->owner_tgid) : 0;
}

static u64 seat_pending(const struct ta_arena *arena, u32 seat)
{
	u64 oldest;

	return ta_slots_pending(&arena->slots, seat, &oldest);
}

static u64 seat_oldest_ns(const struct ta_arena *arena, u32 seat)
{
	u64 oldest;

	if (!ta_slots_pending(&arena->slots, seat, &oldest))
		return 0;
	return ktime_get_ns() - oldest;
}

#define TA_SEATS(file, figure)						\
static ssize_t file##_show(struct device *dev,				\
			   struct device_attribute *attr, char *buf)	\
{									\
	return show_seats(dev, buf, figure);				\
}									\
static DEVICE_ATTR_RO(file)

TA_SEATS(seats, seat_number);
TA_SEATS(seat_readers, seat_reader);
TA_SEATS(seat_pids, seat_pid);
TA_SEATS(seat_pending, seat_pending);
TA_SEATS(seat_oldest_ns, seat_oldest_ns);

static struct attribute *arena_attrs[] = {
	&dev_attr_slot_bytes.attr,
	&dev_attr_stride.attr,
	&dev_attr_flags.attr,
	&dev_attr_uid.attr,
	&dev_attr_writer_pid.attr,
	&dev_attr_tier.attr,
	&dev_attr_node.attr,
	&dev_attr_slot_extents.attr,
	&dev_attr_slot_largest_extent_bytes.attr,
	&dev_attr_slot_huge_bytes.attr,
	&dev_attr_seats.attr,
	&dev_attr_seat_readers.attr,
	&dev_attr_seat_pids.attr,
	&dev_attr_seat_pending.attr,
	&dev_attr_seat_oldest_ns.attr,
	NULL
};

const struct attribute_group ta_arena_group = {
	.attrs = arena_attrs,
};
