/* SPDX-License-Identifier: MIT */
/* What top shows, as lines of text; top.c puts them on the screen. */
#ifndef TARENA_TOP_LINES_H
#define TARENA_TOP_LINES_H

#include <stddef.h>

#include <jansson.h>

/* Wider terminals get no more than this in a line. */
#define LINE_COLUMNS 512

enum line_kind {
	LINE_PLAIN,
	LINE_HEADING, /* of a table */
	LINE_ARENA,
	LINE_STUCK, /* a reader that keeps something for long */
	LINE_ERROR,
};

struct line {
	enum line_kind kind;
	char text[LINE_COLUMNS + 1];
};

/**
 * struct lines - a growing list of them
 * @columns: width to make use of
 */
struct lines {
	struct line *line;
	size_t nr;
	size_t room;
	int columns;
};

/*
 * Lines for @now, with rates over the @seconds since @before, which may be NULL.
 * Each is at most lines->columns wide.
 */
void top_lines(struct lines *lines, const json_t *now, const json_t *before,
	       double seconds);
void lines_free(struct lines *lines);

#endif /* TARENA_TOP_LINES_H */
