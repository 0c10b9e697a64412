// SPDX-License-Identifier: MIT
/*
 * The layout of every structure of the uAPI, written down once more.
 *
 * Compiled, never run, for 64-bit and for 32-bit callers: both must find the
 * same sizes and offsets, and no padding the header does not name.  A number
 * here that has been released must not change; structures grow at their end.
 */
#include <stddef.h>

#include "uapi/tensorarena.h"

#define SIZE(type, size)                                                       \
	_Static_assert(sizeof(struct tensorarena_##type) == (size),            \
		       "size of tensorarena_" #type);                          \
	/* Keeps the type in the object, for pahole to look at. */             \
	struct tensorarena_##type layout_##type

#define FIELD(type, field, offset, size)                                       \
	_Static_assert(offsetof(struct tensorarena_##type, field) == (offset), \
		       "offset of tensorarena_" #type "." #field);             \
	_Static_assert(sizeof(layout_##type.field) == (size),                  \
		       "size of tensorarena_" #type "." #field)

SIZE(ticket, 32);
FIELD(ticket, arena, 0, 8);
FIELD(ticket, generation, 8, 8);
FIELD(ticket, nbytes, 16, 8);
FIELD(ticket, slot, 24, 4);
FIELD(ticket, reserved, 28, 4);

SIZE(info, 80);
FIELD(info, flags, 0, 8);
FIELD(info, features, 8, 8);
FIELD(info, ctl_offset, 16, 8);
FIELD(info, ctl_bytes, 24, 8);
FIELD(info, max_arena_bytes, 32, 8);
FIELD(info, max_total_bytes, 40, 8);
FIELD(info, total_bytes, 48, 8);
FIELD(info, max_slots, 56, 4);
FIELD(info, max_readers, 60, 4);
FIELD(info, max_arenas, 64, 4);
FIELD(info, max_arenas_per_uid, 68, 4);
FIELD(info, arenas, 72, 4);
FIELD(info, reserved, 76, 4);

SIZE(create, 64);
FIELD(create, slot_bytes, 0, 8);
FIELD(create, slots, 8, 4);
FIELD(create, seats, 12, 4);
FIELD(create, flags, 16, 4);
FIELD(create, node, 20, 4);
FIELD(create, stride, 24, 8);
FIELD(create, arena, 32, 8);
FIELD(create, cookie, 40, 16);
FIELD(create, fd, 56, 4);
FIELD(create, reserved, 60, 4);

SIZE(attach, 72);
FIELD(attach, arena, 0, 8);
FIELD(attach, cookie, 8, 16);
FIELD(attach, flags, 24, 4);
FIELD(attach, arena_flags, 28, 4);
FIELD(attach, slot_bytes, 32, 8);
FIELD(attach, stride, 40, 8);
FIELD(attach, reader, 48, 8);
FIELD(attach, slots, 56, 4);
FIELD(attach, seat, 60, 4);
FIELD(attach, fd, 64, 4);
FIELD(attach, reserved, 68, 4);

SIZE(acquire, 40);
FIELD(acquire, nbytes, 0, 8);
FIELD(acquire, flags, 8, 4);
FIELD(acquire, slot, 12, 4);
FIELD(acquire, generation, 16, 8);
FIELD(acquire, offset, 24, 8);
FIELD(acquire, open, 32, 4);
FIELD(acquire, reserved, 36, 4);

SIZE(publish, 304);
FIELD(publish, generation, 0, 8);
FIELD(publish, nbytes, 8, 8);
FIELD(publish, readers, 16, 8);
FIELD(publish, nr_readers, 24, 4);
FIELD(publish, slot, 28, 4);
FIELD(publish, flags, 32, 4);
FIELD(publish, meta_bytes, 36, 4);
FIELD(publish, addressed, 40, 4);
FIELD(publish, reserved, 44, 4);
FIELD(publish, meta, 48, 256);

SIZE(slot_ref, 16);
FIELD(slot_ref, generation, 0, 8);
FIELD(slot_ref, slot, 8, 4);
FIELD(slot_ref, flags, 12, 4);

SIZE(populate, 24);
FIELD(populate, nbytes, 0, 8);
FIELD(populate, slots, 8, 4);
FIELD(populate, flags, 12, 4);
FIELD(populate, ready, 16, 4);
FIELD(populate, reserved, 20, 4);

SIZE(trim, 32);
FIELD(trim, keep_bytes, 0, 8);
FIELD(trim, flags, 8, 4);
FIELD(trim, busy, 12, 4);
FIELD(trim, freed_bytes, 16, 8);
FIELD(trim, allocated_bytes, 24, 8);

SIZE(evict, 16);
FIELD(evict, reader, 0, 8);
FIELD(evict, flags, 8, 4);
FIELD(evict, freed, 12, 4);

SIZE(reader_stats, 32);
FIELD(reader_stats, reader, 0, 8);
FIELD(reader_stats, oldest_ns, 8, 8);
FIELD(reader_stats, seat, 16, 4);
FIELD(reader_stats, pid, 20, 4);
FIELD(reader_stats, pending, 24, 4);
FIELD(reader_stats, reserved, 28, 4);

SIZE(stats, 160);
FIELD(stats, readers, 0, 8);
FIELD(stats, nr_readers, 8, 4);
FIELD(stats, row_bytes, 12, 4);
FIELD(stats, flags, 16, 4);
FIELD(stats, reserved, 20, 4);
FIELD(stats, slots, 24, 4);
FIELD(stats, free, 28, 4);
FIELD(stats, writing, 32, 4);
FIELD(stats, published, 36, 4);
FIELD(stats, allocated_bytes, 40, 8);
FIELD(stats, oldest_ns, 48, 8);
FIELD(stats, puts, 56, 8);
FIELD(stats, put_bytes, 64, 8);
FIELD(stats, unaddressed, 72, 8);
FIELD(stats, aborted, 80, 8);
FIELD(stats, released, 88, 8);
FIELD(stats, declined_no_slot, 96, 8);
FIELD(stats, declined_oversize, 104, 8);
FIELD(stats, declined_no_memory, 112, 8);
FIELD(stats, attached, 120, 8);
FIELD(stats, detached, 128, 8);
FIELD(stats, evicted, 136, 8);
FIELD(stats, reclaimed_dead_readers, 144, 8);
FIELD(stats, retracted, 152, 8);

SIZE(retract, 24);
FIELD(retract, generation, 0, 8);
FIELD(retract, slot, 8, 4);
FIELD(retract, flags, 12, 4);
FIELD(retract, retracted, 16, 4);
FIELD(retract, pending, 20, 4);

SIZE(borrow, 312);
FIELD(borrow, ticket, 0, 32);
FIELD(borrow, offset, 32, 8);
FIELD(borrow, flags, 40, 4);
FIELD(borrow, meta_bytes, 44, 4);
FIELD(borrow, wanted, 48, 4);
FIELD(borrow, reserved, 52, 4);
FIELD(borrow, meta, 56, 256);

SIZE(detach, 8);
FIELD(detach, flags, 0, 4);
FIELD(detach, freed, 4, 4);

/* Type, number and size; the direction bits differ between architectures. */
#define COMMAND(name, number, type)                                            \
	_Static_assert(_IOC_TYPE(TENSORARENA_##name) == 0xf7 &&                \
			       _IOC_NR(TENSORARENA_##name) == (number) &&      \
			       _IOC_SIZE(TENSORARENA_##name) ==                \
				       sizeof(struct tensorarena_##type),      \
		       "command number of " #name)

COMMAND(INFO, 0x00, info);
COMMAND(CREATE, 0x01, create);
COMMAND(ATTACH, 0x02, attach);
COMMAND(ACQUIRE, 0x10, acquire);
COMMAND(PUBLISH, 0x11, publish);
COMMAND(ABORT, 0x12, slot_ref);
COMMAND(POPULATE, 0x13, populate);
COMMAND(TRIM, 0x14, trim);
COMMAND(EVICT, 0x15, evict);
COMMAND(STATS, 0x16, stats);
COMMAND(RETRACT, 0x17, retract);
COMMAND(NEXT, 0x20, borrow);
COMMAND(BORROW, 0x21, borrow);
COMMAND(RELEASE, 0x22, slot_ref);
COMMAND(DETACH, 0x08, detach);
