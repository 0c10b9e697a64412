/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: one for each thing that can happen to an arena, its slots and
 * its roles.
 *
 * All are emitted under the arena's lock, unless noted, so that their order is
 * the order in which things happened.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tensorarena

#if !defined(TA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TA_TRACE_H

#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/tracepoint.h>

#include "arena.h"

#ifndef TA_TRACE_HELPERS
#define TA_TRACE_HELPERS
/* As the initial pid namespace sees it; 0: the file has not been used yet. */
static inline pid_t ta_trace_pid(const struct ta_role *role)
{
	return pid_nr(role->owner_tgid);
}
#endif

/* Numbers that user space cannot know by itself. */
TRACE_DEFINE_ENUM(TA_END_DIED_UNMAPPED);
TRACE_DEFINE_ENUM(TA_END_DIED_EXITED);
TRACE_DEFINE_ENUM(TA_END_DIED_FOUND);
TRACE_DEFINE_ENUM(TA_END_DIED_CLOSED);
TRACE_DEFINE_ENUM(TA_END_DIED_DUMPING);
TRACE_DEFINE_ENUM(TA_TRIM_WRITER);
TRACE_DEFINE_ENUM(TA_TRIM_ORPHAN);
TRACE_DEFINE_ENUM(TA_TRIM_RECLAIM);

#define show_death(end)							\
	__print_symbolic(end,						\
			 { TA_END_DIED_UNMAPPED,	"unmapped" },	\
			 { TA_END_DIED_EXITED,		"exited" },	\
			 { TA_END_DIED_FOUND,		"found" },	\
			 { TA_END_DIED_CLOSED,		"closed" },	\
			 { TA_END_DIED_DUMPING,		"dumping" })

#define show_trim(why)							\
	__print_symbolic(why,						\
			 { TA_TRIM_WRITER,	"writer" },		\
			 { TA_TRIM_ORPHAN,	"orphan" },		\
			 { TA_TRIM_RECLAIM,	"reclaim" })

#define show_decline(err)						\
	__print_symbolic(err,						\
			 { -EAGAIN,	"no_slot" },			\
			 { -EMSGSIZE,	"oversize" },			\
			 { -ENOMEM,	"no_memory" },			\
			 { -EINTR,	"interrupted" },		\
			 { -ESHUTDOWN,	"detached" })

/* ---- arenas: without a lock, nobody else knows them ---- */

TRACE_EVENT(ta_create,

	TP_PROTO(const struct ta_arena *arena),

	TP_ARGS(arena),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, slot_bytes)
		__field(u32, slots)
		__field(u32, seats)
		__field(u32, flags)
		__field(int, node)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->slot_bytes = arena->slots.slot_bytes;
		__entry->slots = arena->slots.nr;
		__entry->seats = ta_slots_open(&arena->slots);
		__entry->flags = arena->flags;
		__entry->node = arena->pages.node;
	),

	TP_printk("arena=%llu slots=%u slot_bytes=%llu seats=%u flags=%#x node=%d",
		  __entry->arena, __entry->slots, __entry->slot_bytes,
		  __entry->seats, __entry->flags, __entry->node)
);

TRACE_EVENT(ta_destroy,

	TP_PROTO(const struct ta_arena *arena),

	TP_ARGS(arena),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, allocated_bytes)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->allocated_bytes = atomic64_read(&arena->pages.bytes);
	),

	TP_printk("arena=%llu allocated_bytes=%llu", __entry->arena,
		  __entry->allocated_bytes)
);

/* ---- readers and writers ---- */

TRACE_EVENT(ta_attach,

	TP_PROTO(const struct ta_role *role),

	TP_ARGS(role),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, reader)
		__field(u32, seat)
	),

	TP_fast_assign(
		__entry->arena = role->arena->id;
		__entry->reader = role->reader;
		__entry->seat = role->seat;
	),

	TP_printk("arena=%llu reader=%llu seat=%u", __entry->arena,
		  __entry->reader, __entry->seat)
);

/* reader and seat are 0 for the writer. */
DECLARE_EVENT_CLASS(ta_end,

	TP_PROTO(const struct ta_role *role, int freed),

	TP_ARGS(role, freed),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, reader)
		__field(u32, seat)
		__field(bool, writer)
		__field(pid_t, pid)
		__field(int, freed)
	),

	TP_fast_assign(
		__entry->arena = role->arena->id;
		__entry->reader = role->reader;
		__entry->seat = role->seat;
		__entry->writer = role->is_writer;
		__entry->pid = ta_trace_pid(role);
		__entry->freed = freed;
	),

	TP_printk("arena=%llu %s reader=%llu seat=%u pid=%d freed=%d",
		  __entry->arena, __entry->writer ? "writer" : "reader",
		  __entry->reader, __entry->seat, __entry->pid, __entry->freed)
);

DEFINE_EVENT(ta_end, ta_detach,

	TP_PROTO(const struct ta_role *role, int freed),

	TP_ARGS(role, freed)
);

DEFINE_EVENT(ta_end, ta_evict,

	TP_PROTO(const struct ta_role *role, int freed),

	TP_ARGS(role, freed)
);

/* cause: by what the death was seen, see role.c. */
TRACE_EVENT(ta_death,

	TP_PROTO(const struct ta_role *role, int cause, int freed),

	TP_ARGS(role, cause, freed),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, reader)
		__field(u32, seat)
		__field(bool, writer)
		__field(pid_t, pid)
		__field(int, cause)
		__field(int, freed)
	),

	TP_fast_assign(
		__entry->arena = role->arena->id;
		__entry->reader = role->reader;
		__entry->seat = role->seat;
		__entry->writer = role->is_writer;
		__entry->pid = ta_trace_pid(role);
		__entry->cause = cause;
		__entry->freed = freed;
	),

	TP_printk("arena=%llu %s reader=%llu seat=%u pid=%d cause=%s freed=%d",
		  __entry->arena, __entry->writer ? "writer" : "reader",
		  __entry->reader, __entry->seat, __entry->pid,
		  show_death(__entry->cause), __entry->freed)
);

/* An unclaimed seat is closed. */
TRACE_EVENT(ta_close_seat,

	TP_PROTO(const struct ta_arena *arena, u32 seat, int freed),

	TP_ARGS(arena, seat, freed),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u32, seat)
		__field(int, freed)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->seat = seat;
		__entry->freed = freed;
	),

	TP_printk("arena=%llu seat=%u freed=%d", __entry->arena, __entry->seat,
		  __entry->freed)
);

/* ---- slots ---- */

/* Without the lock: the slot is the caller's. */
TRACE_EVENT(ta_acquire,

	TP_PROTO(const struct ta_arena *arena,
		 const struct tensorarena_acquire *args, bool built),

	TP_ARGS(arena, args, built),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u64, nbytes)
		__field(u32, slot)
		__field(u32, open)
		__field(bool, built)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->generation = args->generation;
		__entry->nbytes = args->nbytes;
		__entry->slot = args->slot;
		__entry->open = args->open;
		__entry->built = built;
	),

	TP_printk("arena=%llu slot=%u generation=%llu nbytes=%llu open=%u built=%d",
		  __entry->arena, __entry->slot, __entry->generation,
		  __entry->nbytes, __entry->open, __entry->built)
);

TRACE_EVENT(ta_decline,

	TP_PROTO(const struct ta_arena *arena, u64 nbytes, int err),

	TP_ARGS(arena, nbytes, err),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, nbytes)
		__field(int, err)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->nbytes = nbytes;
		__entry->err = err;
	),

	TP_printk("arena=%llu nbytes=%llu reason=%s", __entry->arena,
		  __entry->nbytes, show_decline(__entry->err))
);

/* addressed: seats; when there are none, the slot is free again. */
TRACE_EVENT(ta_publish,

	TP_PROTO(const struct ta_arena *arena,
		 const struct tensorarena_publish *args, u64 addressed),

	TP_ARGS(arena, args, addressed),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u64, nbytes)
		__field(u64, addressed)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->generation = args->generation;
		__entry->nbytes = args->nbytes;
		__entry->addressed = addressed;
		__entry->slot = args->slot;
	),

	TP_printk("arena=%llu slot=%u generation=%llu nbytes=%llu addressed=%#llx",
		  __entry->arena, __entry->slot, __entry->generation,
		  __entry->nbytes, __entry->addressed)
);

TRACE_EVENT(ta_abort,

	TP_PROTO(const struct ta_arena *arena, u32 slot, u64 generation),

	TP_ARGS(arena, slot, generation),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->generation = generation;
		__entry->slot = slot;
	),

	TP_printk("arena=%llu slot=%u generation=%llu", __entry->arena,
		  __entry->slot, __entry->generation)
);

/* pending: readers that have seen it; when there are none, the slot is free. */
TRACE_EVENT(ta_retract,

	TP_PROTO(const struct ta_arena *arena,
		 const struct tensorarena_retract *args),

	TP_ARGS(arena, args),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u32, slot)
		__field(u32, retracted)
		__field(u32, pending)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->generation = args->generation;
		__entry->slot = args->slot;
		__entry->retracted = args->retracted;
		__entry->pending = args->pending;
	),

	TP_printk("arena=%llu slot=%u generation=%llu retracted=%u pending=%u",
		  __entry->arena, __entry->slot, __entry->generation,
		  __entry->retracted, __entry->pending)
);

/* age_ns: since the publication. */
DECLARE_EVENT_CLASS(ta_hold,

	TP_PROTO(const struct ta_role *role, u32 nr),

	TP_ARGS(role, nr),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u64, nbytes)
		__field(u64, reader)
		__field(u64, age_ns)
		__field(u32, slot)
		__field(u32, seat)
	),

	TP_fast_assign(
		const struct ta_slot *slot = &role->arena->slots.slot[nr];

		__entry->arena = role->arena->id;
		__entry->generation = slot->generation;
		__entry->nbytes = slot->nbytes;
		__entry->reader = role->reader;
		__entry->age_ns = ktime_get_ns() - slot->stamp;
		__entry->slot = nr;
		__entry->seat = role->seat;
	),

	TP_printk("arena=%llu slot=%u generation=%llu nbytes=%llu reader=%llu seat=%u age_ns=%llu",
		  __entry->arena, __entry->slot, __entry->generation,
		  __entry->nbytes, __entry->reader, __entry->seat,
		  __entry->age_ns)
);

DEFINE_EVENT(ta_hold, ta_next,

	TP_PROTO(const struct ta_role *role, u32 nr),

	TP_ARGS(role, nr)
);

DEFINE_EVENT(ta_hold, ta_borrow,

	TP_PROTO(const struct ta_role *role, u32 nr),

	TP_ARGS(role, nr)
);

/* freed: this was the last reader to release it. */
TRACE_EVENT(ta_release,

	TP_PROTO(const struct ta_role *role, u32 nr, bool freed),

	TP_ARGS(role, nr, freed),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, generation)
		__field(u64, reader)
		__field(u64, age_ns)
		__field(u32, slot)
		__field(u32, seat)
		__field(bool, freed)
	),

	TP_fast_assign(
		const struct ta_slot *slot = &role->arena->slots.slot[nr];

		__entry->arena = role->arena->id;
		__entry->generation = slot->generation;
		__entry->reader = role->reader;
		__entry->age_ns = ktime_get_ns() - slot->stamp;
		__entry->slot = nr;
		__entry->seat = role->seat;
		__entry->freed = freed;
	),

	TP_printk("arena=%llu slot=%u generation=%llu reader=%llu seat=%u age_ns=%llu freed=%d",
		  __entry->arena, __entry->slot, __entry->generation,
		  __entry->reader, __entry->seat, __entry->age_ns,
		  __entry->freed)
);

/* ---- memory ---- */

TRACE_EVENT(ta_populate,

	TP_PROTO(const struct ta_arena *arena, u32 slot, u64 capacity, int err),

	TP_ARGS(arena, slot, capacity, err),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, capacity)
		__field(u32, slot)
		__field(int, err)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->capacity = capacity;
		__entry->slot = slot;
		__entry->err = err;
	),

	TP_printk("arena=%llu slot=%u capacity=%llu err=%d", __entry->arena,
		  __entry->slot, __entry->capacity, __entry->err)
);

/* err: -EBUSY when the slot is pinned and stays as it is. */
TRACE_EVENT(ta_trim,

	TP_PROTO(const struct ta_arena *arena, u32 slot, u64 nbytes, int why,
		 int err),

	TP_ARGS(arena, slot, nbytes, why, err),

	TP_STRUCT__entry(
		__field(u64, arena)
		__field(u64, nbytes)
		__field(u32, slot)
		__field(int, why)
		__field(int, err)
	),

	TP_fast_assign(
		__entry->arena = arena->id;
		__entry->nbytes = nbytes;
		__entry->slot = slot;
		__entry->why = why;
		__entry->err = err;
	),

	TP_printk("arena=%llu slot=%u nbytes=%llu why=%s err=%d",
		  __entry->arena, __entry->slot, __entry->nbytes,
		  show_trim(__entry->why), __entry->err)
);

#endif /* TA_TRACE_H */

/* Looked for in the directories of the module's build. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH module
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
