// SPDX-License-Identifier: MIT
/*
 * tarena top: the arenas on a live screen.
 *
 * The terminal belongs to us between screen_open() and screen_close(); signals
 * that end the tool are read from a descriptor, so that there is no way out that
 * leaves it as it is.  ncurses itself sees to Ctrl-Z and to a new size.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arenas.h"
#include "clock.h"
#include "number.h"
#include "stop.h"
#include "tarena.h"
#include "top_lines.h"

static const char usage[] =
	"usage: tarena top [--interval SECONDS] [--handle HANDLE]...\n"
	"\n"
	"Shows the arenas of this machine on a live screen: throughput, "
	"slots,\n"
	"declines, and each reader with the age of the oldest tensor it "
	"keeps.\n"
	"\n"
	"  --interval SECONDS  look again so often (1)\n"
	"  --handle HANDLE     this arena, of either engine, instead of all "
	"of\n"
	"                      the kernel module\n"
	"\n"
	"Keys: up, down, page up, page down and home scroll; space looks now;\n"
	"q quits.\n"
	"\n"
	"HANDLE may be @FILE: the first line of that, of standard input for "
	"-.\n"
	"\n"
	"Exit codes: 0 done, 1 failed, 2 wrong usage.\n";

/* As pairs of ncurses; a terminal without colours has bold and reverse. */
enum colour {
	COLOUR_STUCK = 1,
	COLOUR_ARENA,
};

/**
 * struct view - what is on the screen
 * @arenas: which to show
 * @now: the last look at them, and when, ms
 * @before: the one before, and when
 * @first: the first line that is shown
 * @why: why the last look failed, empty when it did not
 */
struct view {
	struct arenas arenas;
	json_t *now;
	json_t *before;
	double now_ms;
	double before_ms;
	int first;
	struct reason why;
};

static void look(struct view *view)
{
	json_t *seen = arenas_read(&view->arenas, &view->why);

	if (!seen)
		return;
	view->why.text[0] = '\0';
	json_decref(view->before);
	view->before = view->now;
	view->before_ms = view->now_ms;
	view->now = seen;
	view->now_ms = clock_ms();
}

static bool screen_open(struct reason *why)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		reason_set(why, "top needs a terminal; tarena stat --watch "
				"does not");
		return false;
	}
	/* Not initscr(): that ends the process where it fails. */
	if (!newterm(NULL, stdout, stdin)) {
		reason_set(why, "no screen on a terminal of type '%.40s'",
			   term ? term : "");
		return false;
	}
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	if (has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(COLOUR_STUCK, COLOR_RED, -1);
		init_pair(COLOUR_ARENA, COLOR_GREEN, -1);
	}
	return true;
}

static void screen_close(void)
{
	SCREEN *screen = set_term(NULL);

	set_term(screen);
	endwin();
	delscreen(screen);
}

static chtype attribute(enum line_kind kind)
{
	switch (kind) {
	case LINE_HEADING:
		return A_UNDERLINE;
	case LINE_ARENA:
		return A_BOLD | COLOR_PAIR(COLOUR_ARENA);
	case LINE_STUCK:
	case LINE_ERROR:
		return A_BOLD | COLOR_PAIR(COLOUR_STUCK);
	default:
		return A_NORMAL;
	}
}

static void draw(struct view *view)
{
	double seconds = (view->now_ms - view->before_ms) / 1e3;
	/* The last column stays empty: writing there may scroll. */
	struct lines lines = { .columns = COLS > 1 ? COLS - 1 : 1 };
	int row, rows = LINES - 1, last;

	if (lines.columns > LINE_COLUMNS)
		lines.columns = LINE_COLUMNS;
	if (view->now)
		top_lines(&lines, view->now, view->before, seconds);
	last = (int)lines.nr - rows;
	if (view->first > last)
		view->first = last;
	if (view->first < 0)
		view->first = 0;
	erase();
	for (row = 0; row < rows && view->first + row < (int)lines.nr; row++) {
		const struct line *line = &lines.line[view->first + row];

		attrset(attribute(line->kind));
		mvaddstr(row, 0, line->text);
	}
	attrset(A_REVERSE);
	mvprintw(LINES - 1, 0, "%.*s", lines.columns,
		 view->why.text[0] ? view->why.text :
		 last > 0	   ? "q quit  up/down scroll" :
				     "q quit");
	attrset(A_NORMAL);
	refresh();
	lines_free(&lines);
}

/* Handles what was typed; false when that is to quit. */
static bool handle_keys(struct view *view)
{
	int key;

	while ((key = getch()) != ERR) {
		switch (key) {
		case 'q':
		case 'Q':
			return false;
		case ' ':
			look(view);
			break;
		case KEY_UP:
			view->first--;
			break;
		case KEY_DOWN:
			view->first++;
			break;
		case KEY_PPAGE:
			view->first -= LINES - 1;
			break;
		case KEY_NPAGE:
			view->first += LINES - 1;
			break;
		case KEY_HOME:
			view->first = 0;
			break;
		default:
			/* KEY_RESIZE, too, has done its work by now. */
			break;
		}
		if (view->first < 0)
			view->first = 0;
	}
	return true;
}

/* Returns when it is time to end. */
static void run(struct view *view, int stop, int interval_ms)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = stop, .events = POLLIN },
	};

	for (;;) {
		double left = interval_ms - (clock_ms() - view->now_ms);
		int n;

		draw(view);
		n = poll(fds, 2, left > 1 ? (int)left : 1);
		if (n < 0 && errno != EINTR)
			return;
		if (fds[1].revents || (n > 0 && fds[0].revents & ~POLLIN))
			return;
		if (!handle_keys(view))
			return;
		if (clock_ms() - view->now_ms >= interval_ms)
			look(view);
	}
}

static int show(struct view *view, uint32_t seconds)
{
	struct reason why;
	int stop;

	setlocale(LC_CTYPE, "");
	stop = stop_open();
	if (stop < 0) {
		complain("cannot wait for signals: %s", strerror(-stop));
		return EXIT_FAILED;
	}
	/* What cannot be read at all is better said without a screen. */
	look(view);
	if (!view->now) {
		complain("%s", view->why.text);
		return EXIT_FAILED;
	}
	if (!screen_open(&why)) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	run(view, stop, (int)seconds * 1000);
	screen_close();
	json_decref(view->now);
	json_decref(view->before);
	stop_obey(stop);
	return EXIT_OK;
}

int top_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "handle", required_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct view view = { .first = 0 };
	uint32_t seconds = 1;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'i':
			if (!number_u32(optarg, 1, 3600, &seconds))
				break;
			complain("--interval takes 1 to 3600 seconds, not '%s'",
				 optarg);
			return EXIT_USAGE;
		case 'H':
			if (arenas_option(&view.arenas, optarg))
				return EXIT_USAGE;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	if (complain_arguments(argc - optind, "top"))
		return EXIT_USAGE;
	return show(&view, seconds);
}
