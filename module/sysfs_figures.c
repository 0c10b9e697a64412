// SPDX-License-Identifier: GPL-2.0-only
/* Figures in sysfs: of an arena, and the module's totals. */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "arena.h"
#include "figures.h"
#include "sysfs.h"

/**
 * struct ta_attribute - a file that shows one figure
 * @attr: the attribute
 * @offset: of the field in struct ta_figures
 * @size: of the field, bytes
 */
struct ta_attribute {
	struct device_attribute attr;
	size_t offset;
	size_t size;
};

static ssize_t figure_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	const struct ta_attribute *a =
		container_of(attr, struct ta_attribute, attr);
	struct ta_arena *arena = dev_get_drvdata(dev);
	struct ta_figures figures;
	const void *field = (void *)&figures + a->offset;

	if (arena)
		ta_figures_get(arena, &figures);
	else
		ta_arena_totals(&figures);
	return sysfs_emit(buf, "%llu\n", a->size == sizeof(u32) ?
			  (u64)*(const u32 *)field : *(const u64 *)field);
}

#define TA_FIGURE(file, field)						\
static struct ta_attribute figure_##file = {				\
	.attr	= __ATTR(file, 0444, figure_show, NULL),		\
	.offset	= offsetof(struct ta_figures, field),			\
	.size	= sizeof_field(struct ta_figures, field),		\
}

#define TA_STAT(field)	TA_FIGURE(field, st.field)

TA_STAT(slots);
TA_STAT(free);
TA_STAT(writing);
TA_STAT(published);
TA_FIGURE(readers, st.nr_readers);
TA_STAT(allocated_bytes);
TA_FIGURE(extents, extents);
TA_STAT(oldest_ns);
TA_FIGURE(oldest_reader, oldest_reader);
TA_FIGURE(oldest_reader_pid, oldest_reader_pid);
TA_STAT(puts);
TA_STAT(put_bytes);
TA_STAT(unaddressed);
TA_STAT(aborted);
TA_STAT(released);
TA_STAT(retracted);
TA_STAT(declined_no_slot);
TA_STAT(declined_oversize);
TA_STAT(declined_no_memory);
TA_STAT(attached);
TA_STAT(detached);
TA_STAT(evicted);
TA_STAT(reclaimed_dead_readers);
TA_FIGURE(reclaimed_bytes, reclaimed_bytes);
TA_FIGURE(writer_waits, writer_waits);
TA_FIGURE(reader_waits, reader_waits);
TA_FIGURE(arenas, arenas);
TA_FIGURE(total_bytes, total_bytes);

static struct attribute *figures_attrs[] = {
	&figure_slots.attr.attr,
	&figure_free.attr.attr,
	&figure_writing.attr.attr,
	&figure_published.attr.attr,
	&figure_readers.attr.attr,
	&figure_allocated_bytes.attr.attr,
	&figure_extents.attr.attr,
	&figure_oldest_ns.attr.attr,
	&figure_oldest_reader.attr.attr,
	&figure_oldest_reader_pid.attr.attr,
	&figure_puts.attr.attr,
	&figure_put_bytes.attr.attr,
	&figure_unaddressed.attr.attr,
	&figure_aborted.attr.attr,
	&figure_released.attr.attr,
	&figure_retracted.attr.attr,
	&figure_declined_no_slot.attr.attr,
	&figure_declined_oversize.attr.attr,
	&figure_declined_no_memory.attr.attr,
	&figure_attached.attr.attr,
	&figure_detached.attr.attr,
	&figure_evicted.attr.attr,
	&figure_reclaimed_dead_readers.attr.attr,
	&figure_reclaimed_bytes.attr.attr,
	&figure_writer_waits.attr.attr,
	&figure_reader_waits.attr.attr,
	NULL
};

const struct attribute_group ta_figures_group = {
	.attrs = figures_attrs,
};

static struct attribute *totals_attrs[] = {
	&figure_arenas.attr.attr,
	&figure_total_bytes.attr.attr,
	NULL
};

const struct attribute_group ta_totals_group = {
	.attrs = totals_attrs,
};
