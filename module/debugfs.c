// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/tensorarena/arenas: everything about every arena, for
 * people; programs read sysfs.
 */
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "arena.h"

static struct dentry *ta_debugfs;

static const char *state_name(u32 state)
{
	static const char * const name[] = {
		[TA_SLOT_FREE]		= "free",
		[TA_SLOT_WRITING]	= "writing",
		[TA_SLOT_PUBLISHED]	= "published",
	};

	return name[state];
}

static u64 age_ms(u64 now, u64 stamp)
{
	return div_u64(now - stamp, NSEC_PER_MSEC);
}

static void show_slot(struct seq_file *m, const struct ta_slot *slot, u32 nr,
		      u64 now)
{
	seq_printf(m, "  slot %-3u %-9s generation %llu, %llu KiB of memory",
		   nr, state_name(slot->state), slot->generation,
		   slot->capacity / SZ_1K);
	if (slot->state == TA_SLOT_PUBLISHED)
		seq_printf(m, ", %llu bytes, pending %#llx, unseen %#llx, %llu ms old",
			   slot->nbytes, slot->pending, slot->unseen,
			   age_ms(now, slot->stamp));
	seq_putc(m, '\n');
}

static void show_seat(struct seq_file *m, const struct ta_arena *arena,
		      u32 seat, u64 now)
{
	const struct ta_role *role = arena->seat[seat];
	u64 oldest = 0;
	u32 pending = ta_slots_pending(&arena->slots, seat, &oldest);

	seq_printf(m, "  seat %-3u ", seat);
	if (role)
		seq_printf(m, "reader %llu, pid %d", role->reader,
			   pid_vnr(role->owner_tgid));
	else
		seq_puts(m, "unclaimed");
	seq_printf(m, ", pending %u", pending);
	if (pending)
		seq_printf(m, ", the oldest for %llu ms", age_ms(now, oldest));
	seq_putc(m, '\n');
}

static void show_arena(struct ta_arena *arena, void *arg)
{
	struct seq_file *m = arg;
	u64 left, now;
	u32 i;

	mutex_lock(&arena->lock);
	now = ktime_get_ns();
	seq_printf(m, "arena %llu: %u slots of %llu bytes, node %d, ",
		   arena->id, arena->slots.nr, arena->slots.slot_bytes,
		   arena->pages.node);
	if (arena->writer)
		seq_printf(m, "writer pid %d\n",
			   pid_vnr(arena->writer->owner_tgid));
	else
		seq_puts(m, "writer gone\n");
	for (i = 0; i < arena->slots.nr; i++)
		show_slot(m, &arena->slots.slot[i], i, now);
	for (left = arena->slots.open; left; left &= left - 1)
		show_seat(m, arena, __ffs64(left), now);
	mutex_unlock(&arena->lock);
}

static int arenas_show(struct seq_file *m, void *unused)
{
	ta_arena_for_each(show_arena, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(arenas);

void ta_debugfs_init(void)
{
	/* Nobody depends on it, so nobody minds when it cannot be had. */
	ta_debugfs = debugfs_create_dir("tensorarena", NULL);
	debugfs_create_file("arenas", 0400, ta_debugfs, NULL, &arenas_fops);
}

void ta_debugfs_exit(void)
{
	debugfs_remove_recursive(ta_debugfs);
}
