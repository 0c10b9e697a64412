/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The attributes under /sys/class/tensorarena, which
 * docs/ABI/testing/sysfs-class-tensorarena describes.
 */
#ifndef TA_SYSFS_H
#define TA_SYSFS_H

struct attribute_group;

/* Figures: of the arena that is the device's data, or of all together. */
extern const struct attribute_group ta_figures_group;
/* What only an arena has. */
extern const struct attribute_group ta_arena_group;
/* What only the module has. */
extern const struct attribute_group ta_totals_group;

#endif /* TA_SYSFS_H */
