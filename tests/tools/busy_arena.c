// SPDX-License-Identifier: MIT
/*
 * An arena to look at: a writer that puts a tensor every few milliseconds, and
 * readers that release theirs, all but the last, which keeps its first for ever.
 *
 *	busy_arena ENGINE READERS MILLISECONDS
 *
 * Prints the handle, then "busy" once the last reader is stuck; ends with the
 * end of standard input.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tensorarena.h>

#define NBYTES (4 << 20)
#define MAX_READERS 64

static void run_reader(int handle, bool stuck)
{
	char text[TA_HANDLE_MAX];
	struct ta_reader *reader;
	struct ta_view *view;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, stuck ? "worker-stuck" : "worker");
	n = read(handle, text, sizeof(text) - 1);
	if (n <= 0)
		_exit(1);
	text[n] = '\0';
	if (ta_attach(text, &reader))
		_exit(1);
	if (stuck && ta_next(reader, -1, &view))
		_exit(1);
	while (!ta_next(reader, -1, &view))
		ta_release(view);
	_exit(0);
}

/* The readers are there before the writer has a thread to lose in a fork. */
static void start_readers(unsigned int nr, int *handle)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		int fds[2];

		if (pipe(fds))
			err(1, "pipe");
		switch (fork()) {
		case -1:
			err(1, "fork");
		case 0:
			close(fds[1]);
			run_reader(fds[0], i == nr - 1);
		}
		close(fds[0]);
		handle[i] = fds[1];
	}
}

static void await_readers(struct ta_writer *writer, unsigned int nr)
{
	struct ta_stats st;

	do {
		usleep(1000);
		if (ta_stats(writer, &st, NULL, 0))
			errx(1, "no figures");
	} while (st.attached < nr);
}

int main(int argc, char **argv)
{
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };
	static char tensor[NBYTES];
	int handle[MAX_READERS];
	struct ta_options options;
	struct ta_writer *writer;
	unsigned int nr, i;
	char why[256];
	int pause;

	if (argc != 4)
		errx(2, "usage: busy_arena ENGINE READERS MILLISECONDS");
	ta_options_init(&options);
	options.engine = strcmp(argv[1], "device") ? TA_ENGINE_EMBEDDED :
						     TA_ENGINE_DEVICE;
	options.slot_bytes = NBYTES;
	options.seats = nr = (unsigned int)atoi(argv[2]);
	pause = atoi(argv[3]);
	if (!nr || nr > MAX_READERS)
		errx(2, "1 to %d readers", MAX_READERS);
	start_readers(nr, handle);
	if (ta_create(&options, &writer, why, sizeof(why)))
		errx(1, "%s", why);
	for (i = 0; i < nr; i++)
		if (write(handle[i], ta_handle(writer),
			  strlen(ta_handle(writer))) < 0)
			err(1, "write");
	await_readers(writer, nr);
	puts(ta_handle(writer));
	for (i = 0; poll(&end, 1, pause) == 0; i++) {
		int put = ta_put(writer, tensor, NBYTES, NULL, NULL);

		if (put && !ta_is_decline(put))
			errx(1, "put: %s", ta_strerror(put));
		if (i == 1) {
			puts("busy");
			fflush(stdout);
		}
	}
	ta_writer_close(writer);
	while (wait(NULL) > 0)
		;
	return 0;
}
