// SPDX-License-Identifier: MIT
/*
 * The arenas of this machine; see arenas.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <tensorarena.h>

#include "arenas.h"
#include "arenas_parts.h"

/* The first line of a file, "-" being standard input. */
static int read_handle(const char *path, char *handle, struct reason *why)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	bool good;

	if (!file)
		return reason_set(why, "cannot open %s: %s", path,
				  strerror(errno));
	good = fgets(handle, TA_HANDLE_MAX, file);
	if (file != stdin)
		fclose(file);
	if (!good)
		return reason_set(why, "there is no handle in %s", path);
	handle[strcspn(handle, "\n")] = '\0';
	return 0;
}

int arenas_add(struct arenas *arenas, const char *handle, struct reason *why)
{
	char *own;

	if (arenas->handles == MAX_HANDLES)
		return reason_set(why, "more than %d handles", MAX_HANDLES);
	own = arenas->handle[arenas->handles];
	if (*handle == '@') {
		if (read_handle(handle + 1, own, why))
			return -1;
	} else if (strlen(handle) < TA_HANDLE_MAX) {
		strcpy(own, handle);
	} else {
		return reason_set(why, "a handle is not as long");
	}
	arenas->handles++;
	return 0;
}

static json_t *list_of(const struct ta_reader_stats *rows, uint32_t nr,
		       long long (*figure)(const struct ta_reader_stats *row))
{
	json_t *list = json_array();
	uint32_t i;

	for (i = 0; i < nr; i++)
		json_array_append_new(list, json_integer(figure(&rows[i])));
	return list;
}

static long long row_seat(const struct ta_reader_stats *row)
{
	return row->seat;
}

static long long row_reader(const struct ta_reader_stats *row)
{
	return (long long)row->reader;
}

static long long row_pid(const struct ta_reader_stats *row)
{
	return row->pid;
}

static long long row_pending(const struct ta_reader_stats *row)
{
	return row->pending;
}

static long long row_oldest_ns(const struct ta_reader_stats *row)
{
	return (long long)row->oldest_ns;
}

static void add_seats(json_t *arena, const struct ta_reader_stats *rows,
		      uint32_t nr)
{
	json_object_set_new(arena, "seats", list_of(rows, nr, row_seat));
	json_object_set_new(arena, "seat_readers",
			    list_of(rows, nr, row_reader));
	json_object_set_new(arena, "seat_pids", list_of(rows, nr, row_pid));
	json_object_set_new(arena, "seat_pending",
			    list_of(rows, nr, row_pending));
	json_object_set_new(arena, "seat_oldest_ns",
			    list_of(rows, nr, row_oldest_ns));
}

static void add(json_t *arena, const char *name, uint64_t value)
{
	json_object_set_new(arena, name, json_integer((json_int_t)value));
}

static void add_stats(json_t *arena, const struct ta_stats *st)
{
	add(arena, "slots", st->slots);
	add(arena, "free", st->free);
	add(arena, "writing", st->writing);
	add(arena, "published", st->published);
	add(arena, "readers", st->readers);
	add(arena, "allocated_bytes", st->allocated_bytes);
	add(arena, "oldest_ns", st->oldest_ns);
	add(arena, "puts", st->puts);
	add(arena, "put_bytes", st->put_bytes);
	add(arena, "unaddressed", st->unaddressed);
	add(arena, "aborted", st->aborted);
	add(arena, "released", st->released);
	add(arena, "declined_no_slot", st->declined_no_slot);
	add(arena, "declined_oversize", st->declined_oversize);
	add(arena, "declined_no_memory", st->declined_no_memory);
	add(arena, "attached", st->attached);
	add(arena, "detached", st->detached);
	add(arena, "evicted", st->evicted);
	add(arena, "reclaimed_dead_readers", st->reclaimed_dead_readers);
	add(arena, "retracted", st->retracted);
}

static json_t *embedded_arena(const struct ta_observation *seen,
			      const struct ta_reader_stats *rows)
{
	char name[32];
	json_t *arena;

	snprintf(name, sizeof(name), "arena%llu",
		 (unsigned long long)seen->arena);
	arena = json_pack("{s:s, s:s}", "arena", name, "engine", "embedded");
	add(arena, "slot_bytes", seen->slot_bytes);
	add(arena, "stride", seen->stride);
	add(arena, "writer_pid", (uint64_t)seen->writer_pid);
	add_stats(arena, &seen->stats);
	add_seats(arena, rows, seen->stats.readers);
	return arena;
}

static json_t *failed_arena(const struct ta_observation *seen, const char *why)
{
	char name[32];

	snprintf(name, sizeof(name), "arena%llu",
		 (unsigned long long)seen->arena);
	return json_pack("{s:s, s:s, s:s}", "arena", name, "engine",
			 seen->engine == TA_ENGINE_DEVICE ? "device" :
							    "embedded",
			 "error", why);
}

/* Rows come after a count of them that is a moment older. */
static json_t *observe(const char *handle, struct reason *why)
{
	struct ta_reader_stats rows[64];
	struct ta_observation seen;
	json_t *arena;
	int err;

	err = ta_observe(handle, &seen, rows, 64);
	if (!err)
		return embedded_arena(&seen, rows);
	if (err == -EINVAL) {
		reason_set(why, "'%.80s' is no handle", handle);
		return NULL;
	}
	if (err == -EOPNOTSUPP) {
		arena = sysfs_arena(seen.arena);
		return arena ? arena : failed_arena(&seen, "gone");
	}
	return failed_arena(&seen, ta_strerror(err));
}

static json_t *observe_all(const struct arenas *arenas, struct reason *why)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < arenas->handles; i++) {
		json_t *arena = observe(arenas->handle[i], why);

		if (!arena) {
			json_decref(list);
			return NULL;
		}
		json_array_append_new(list, arena);
	}
	return json_pack("{s:o}", "arenas", list);
}

json_t *arenas_read(const struct arenas *arenas, struct reason *why)
{
	return arenas->handles ? observe_all(arenas, why) : sysfs_read(why);
}
