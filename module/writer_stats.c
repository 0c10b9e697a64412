// SPDX-License-Identifier: GPL-2.0-only
/* The writer's STATS: figures of its arena, and a row for each reader. */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "arena.h"
#include "writer.h"

/* Of the first version of struct tensorarena_reader_stats. */
#define TA_ROW_MIN_BYTES	32

static void fill_row(const struct ta_arena *arena, u32 seat, u64 now,
		     struct tensorarena_reader_stats *row)
{
	const struct ta_role *role = arena->seat[seat];
	u64 oldest = 0;

	row->seat = seat;
	row->pending = ta_slots_pending(&arena->slots, seat, &oldest);
	if (row->pending)
		row->oldest_ns = now - oldest;
	if (!role)
		return;
	row->reader = role->reader;
	row->pid = pid_vnr(role->owner_tgid);
}

/* Fills rows for at most @nr open seats; under the lock. */
static u32 fill_rows(const struct ta_arena *arena, u64 now,
		     struct tensorarena_reader_stats *rows, u32 nr)
{
	u64 left = arena->slots.open;
	u32 i;

	for (i = 0; i < nr && left; i++, left &= left - 1)
		fill_row(arena, __ffs64(left), now, &rows[i]);
	return i;
}

/* Rows are as large as the caller thinks; what we do not know is zero. */
static int copy_rows(u64 readers, u32 row_bytes,
		     const struct tensorarena_reader_stats *rows, u32 nr)
{
	size_t known = min_t(size_t, row_bytes, sizeof(*rows));
	u32 i;

	for (i = 0; i < nr; i++) {
		void __user *row = u64_to_user_ptr(readers) +
				   (size_t)i * row_bytes;

		if (copy_to_user(row, &rows[i], known) ||
		    clear_user(row + known, row_bytes - known))
			return -EFAULT;
	}
	return 0;
}

static int check_stats(const struct tensorarena_stats *args)
{
	if (args->flags || args->reserved)
		return -EINVAL;
	if (args->nr_readers && (args->row_bytes < TA_ROW_MIN_BYTES ||
				 args->row_bytes > PAGE_SIZE))
		return -EINVAL;
	return 0;
}

long ta_writer_stats(void *self, const struct ta_user *user)
{
	struct ta_role *role = self;
	struct tensorarena_reader_stats *rows = NULL;
	struct tensorarena_stats args, st = {};
	u32 room, filled;
	u64 now;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	err = check_stats(&args);
	if (err)
		return err;
	room = min_t(u32, args.nr_readers, TENSORARENA_MAX_READERS);
	if (room) {
		rows = kcalloc(room, sizeof(*rows), GFP_KERNEL_ACCOUNT);
		if (!rows)
			return -ENOMEM;
	}

	err = ta_role_lock(role);
	if (err)
		goto out;
	ta_arena_sweep(role->arena);
	/* Under the lock, so that no publication is younger than now. */
	now = ktime_get_ns();
	ta_arena_stats(role->arena, now, &st);
	filled = fill_rows(role->arena, now, rows, room);
	ta_role_unlock(role);

	st.readers = args.readers;
	st.row_bytes = args.row_bytes;
	err = copy_rows(args.readers, args.row_bytes, rows, filled) ?:
	      ta_copy_out(user, &st, sizeof(st));
out:
	kfree(rows);
	return err;
}
