// SPDX-License-Identifier: MIT
/*
 * What top shows; see top_lines.h.
 */
#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arenas.h"
#include "top_lines.h"

/* A reader that keeps a tensor for longer is worth a look. */
#define STUCK_NS 1000000000ll
/* Of a bar between the brackets. */
#define BAR_MAX 16

static void add(struct lines *lines, enum line_kind kind, const char *format,
		...) __attribute__((format(printf, 3, 4)));

static void add(struct lines *lines, enum line_kind kind, const char *format,
		...)
{
	size_t columns = (size_t)lines->columns;
	struct line *line;
	va_list args;

	if (lines->nr == lines->room) {
		lines->room = lines->room ? 2 * lines->room : 64;
		lines->line = reallocarray(lines->line, lines->room,
					   sizeof(*lines->line));
		if (!lines->line)
			err(1, "top");
	}
	line = &lines->line[lines->nr++];
	line->kind = kind;
	va_start(args, format);
	vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
	if (columns < sizeof(line->text))
		line->text[columns] = '\0';
}

void lines_free(struct lines *lines)
{
	free(lines->line);
	*lines = (struct lines){ .columns = lines->columns };
}

/* "512", "3.2M", at most five characters: of 1024 each. */
static const char *short_size(double value, char *buf, size_t size)
{
	static const char unit[] = " KMGTPE";
	size_t i = 0;

	while (value >= 999.5 && i < sizeof(unit) - 2) {
		value /= 1024;
		i++;
	}
	if (!i)
		snprintf(buf, size, "%.0f", value);
	else if (value < 9.95)
		snprintf(buf, size, "%.1f%c", value, unit[i]);
	else
		snprintf(buf, size, "%.0f%c", value, unit[i]);
	return buf;
}

/* "250 ms", "12 s", "3 m", "5 h": at most six characters for 100 hours. */
static const char *short_age(long long ns, char *buf, size_t size)
{
	double s = (double)ns / 1e9;

	if (s < 1)
		snprintf(buf, size, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(buf, size, "%.0f s", s);
	else if (s < 7200)
		snprintf(buf, size, "%.0f m", s / 60);
	else
		snprintf(buf, size, "%.0f h", s / 3600);
	return buf;
}

static const json_t *find(const json_t *seen, const char *name)
{
	const json_t *arenas = json_object_get(seen, "arenas");
	size_t i;

	for (i = 0; i < json_array_size(arenas); i++) {
		const json_t *arena = json_array_get(arenas, i);

		if (!strcmp(arenas_name(arena), name))
			return arena;
	}
	return NULL;
}

/* How fast a counter grows; 0 for what was not there before. */
static double rate(const json_t *now, const json_t *before, const char *name,
		   double seconds)
{
	long long grown =
		arenas_figure(now, name) - arenas_figure(before, name);

	return before && seconds > 0 && grown > 0 ? (double)grown / seconds : 0;
}

static long long declines(const json_t *arena)
{
	return arenas_figure(arena, "declined_no_slot") +
	       arenas_figure(arena, "declined_oversize") +
	       arenas_figure(arena, "declined_no_memory");
}

static long long at_most(long long value, long long limit)
{
	return value < limit ? value : limit;
}

/* As many characters as there are slots, or fewer, in proportion. */
static void draw_bar(const json_t *arena, char *bar)
{
	/* No arena has as many, whatever somebody may claim. */
	long long slots = at_most(arenas_figure(arena, "slots"), 1 << 20);
	long long width = slots > 0 ? at_most(slots, BAR_MAX) : 0;
	long long published = at_most(arenas_figure(arena, "published"), slots);
	long long taken =
		published + at_most(arenas_figure(arena, "writing"), slots);
	long long i;

	for (i = 0; i < width; i++) {
		/* Of a part of a slot something is to be seen. */
		if (i * slots < published * width)
			bar[i] = '#';
		else if (i * slots < taken * width)
			bar[i] = '+';
		else
			bar[i] = '.';
	}
	bar[width] = '\0';
}

/* Ids of the embedded engine are long: their end tells them apart as well. */
static const char *short_name(const json_t *arena, char *buf, size_t size)
{
	const char *name = arenas_name(arena);
	size_t length = strlen(name);

	if (length <= 10)
		return name;
	snprintf(buf, size, "~%s", name + length - 9);
	return buf;
}

static void add_arena(struct lines *lines, const json_t *arena,
		      const json_t *before, double seconds)
{
	const json_t *error = json_object_get(arena, "error");
	char name[16], speed[16], memory[16], bar[BAR_MAX + 1];

	if (error) {
		add(lines, LINE_ERROR, "%-10s %s",
		    short_name(arena, name, sizeof(name)),
		    json_string_value(error));
		return;
	}
	draw_bar(arena, bar);
	add(lines, LINE_ARENA,
	    "%-10s %6s/s %7.0f/s %5s %3lld/%-3lld %7lld  [%s]",
	    short_name(arena, name, sizeof(name)),
	    short_size(rate(arena, before, "put_bytes", seconds), speed,
		       sizeof(speed)),
	    rate(arena, before, "puts", seconds),
	    short_size((double)arenas_figure(arena, "allocated_bytes"), memory,
		       sizeof(memory)),
	    arenas_figure(arena, "published"), arenas_figure(arena, "slots"),
	    declines(arena), bar);
}

/* The name of a process, or "-"; of another namespace it may be unknown. */
static void process_name(long long pid, char *name, size_t size)
{
	char path[64];
	FILE *file;
	char *c;

	snprintf(name, size, "-");
	if (pid <= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%lld/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, (int)size, file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	/* A process may call itself anything. */
	for (c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static void add_reader(struct lines *lines, const json_t *arena, size_t i)
{
	long long reader = arenas_figure_at(arena, "seat_readers", i);
	long long pid = arenas_figure_at(arena, "seat_pids", i);
	long long pending = arenas_figure_at(arena, "seat_pending", i);
	long long oldest = arenas_figure_at(arena, "seat_oldest_ns", i);
	enum line_kind kind = LINE_PLAIN;
	char name[64], age[32], id[32];

	if (oldest > STUCK_NS)
		kind = LINE_STUCK;
	if (!reader) {
		snprintf(name, sizeof(name), "(nobody yet)");
		snprintf(id, sizeof(id), "-");
	} else {
		process_name(pid, name, sizeof(name));
		snprintf(id, sizeof(id), "%lld", reader);
	}
	add(lines, kind, "%-10s %6lld %8s %8lld  %-16.16s %8lld %8s%s", "",
	    arenas_figure_at(arena, "seats", i), id, pid, name, pending,
	    pending ? short_age(oldest, age, sizeof(age)) : "-",
	    kind == LINE_STUCK ? "  <--" : "");
}

static void add_readers(struct lines *lines, const json_t *arena)
{
	size_t i, nr = json_array_size(json_object_get(arena, "seats"));

	if (!nr)
		return;
	add(lines, LINE_HEADING, "%-10s %6s %8s %8s  %-16s %8s %8s", "", "seat",
	    "reader", "pid", "process", "pending", "oldest");
	for (i = 0; i < nr; i++)
		add_reader(lines, arena, i);
}

static void add_totals(struct lines *lines, const json_t *now,
		       const json_t *before, double seconds)
{
	const json_t *arenas = json_object_get(now, "arenas");
	double speed = 0, puts = 0, memory = 0;
	char speed_text[16], memory_text[16];
	size_t i, nr = json_array_size(arenas);

	for (i = 0; i < nr; i++) {
		const json_t *arena = json_array_get(arenas, i);
		const json_t *old = find(before, arenas_name(arena));

		speed += rate(arena, old, "put_bytes", seconds);
		puts += rate(arena, old, "puts", seconds);
		memory += (double)arenas_figure(arena, "allocated_bytes");
	}
	add(lines, LINE_PLAIN,
	    "tensorarena: %zu arena%s, %s/s in %.0f tensors/s, %s of memory",
	    nr, nr == 1 ? "" : "s",
	    short_size(speed, speed_text, sizeof(speed_text)), puts,
	    short_size(memory, memory_text, sizeof(memory_text)));
	if (json_is_null(json_object_get(now, "module")))
		add(lines, LINE_ERROR,
		    "The kernel module is not loaded; see tarena doctor.");
}

void top_lines(struct lines *lines, const json_t *now, const json_t *before,
	       double seconds)
{
	const json_t *arenas = json_object_get(now, "arenas");
	size_t i;

	add_totals(lines, now, before, seconds);
	add(lines, LINE_PLAIN, "%s", "");
	if (!json_array_size(arenas))
		return;
	add(lines, LINE_HEADING, "%-10s %8s %9s %5s %7s %7s  %s", "arena",
	    "speed", "tensors", "mem", "slots", "decline",
	    "# held, + written, . free");
	for (i = 0; i < json_array_size(arenas); i++) {
		const json_t *arena = json_array_get(arenas, i);

		add_arena(lines, arena, find(before, arenas_name(arena)),
			  seconds);
		add_readers(lines, arena);
	}
}
