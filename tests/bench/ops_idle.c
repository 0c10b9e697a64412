// SPDX-License-Identifier: MIT
/* What an arena costs that never carries anything; see ops.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops.h"

struct state {
	int threads;
	int kib;
	int fds;
};

static int value_of(const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	char line[256];
	int value = 0;

	if (!file)
		ops_must(path, -errno);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), ": %d", &value) == 1)
			break;
	fclose(file);
	return value;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	if (!dir)
		ops_must("/proc/self/fd", -errno);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static struct state look(void)
{
	static const char status[] = "/proc/self/status";

	return (struct state){
		.threads = value_of(status, "Threads"),
		/* What is not also some other process's. */
		.kib = value_of("/proc/self/smaps_rollup", "Private_Dirty") +
		       value_of(status, "VmPTE"),
		.fds = count_fds(),
	};
}

static struct state grown(struct state before)
{
	struct state now = look();

	return (struct state){
		.threads = now.threads - before.threads,
		.kib = now.kib - before.kib,
		.fds = now.fds - before.fds,
	};
}

static void be_reader(const char *handle, int result)
{
	struct ta_reader *reader;
	struct state state;

	/* What looking itself needs is there the second time. */
	look();
	state = look();
	ops_must("ta_attach", ta_attach(handle, &reader));
	state = grown(state);
	if (write(result, &state, sizeof(state)) != (ssize_t)sizeof(state))
		exit(1);
	ta_reader_close(reader);
}

static struct state reader_cost(const char *handle)
{
	struct state state = { 0 };
	int result[2], status;
	pid_t pid;

	ops_must("pipe", pipe(result) ? -errno : 0);
	pid = fork();
	if (!pid) {
		be_reader(handle, result[1]);
		_exit(0);
	}
	close(result[1]);
	if (read(result[0], &state, sizeof(state)) != (ssize_t)sizeof(state) ||
	    waitpid(pid, &status, 0) != pid || status)
		ops_must("a reader", -ECHILD);
	close(result[0]);
	return state;
}

void ops_idle(enum ta_engine_kind engine, struct op_idle *idle)
{
	struct ta_options options;
	struct ta_writer *writer;
	struct state state, reader;

	ta_options_init(&options);
	options.seats = 1;
	options.engine = engine;
	options.flags = TA_NO_MEMORY_CHECK;
	look();
	state = look();
	ops_must("ta_create", ta_create(&options, &writer, NULL, 0));
	reader = reader_cost(ta_handle(writer));
	state = grown(state);
	ta_writer_close(writer);
	*idle = (struct op_idle){
		.writer_threads = state.threads,
		.reader_threads = reader.threads,
		.writer_kib = state.kib,
		.reader_kib = reader.kib,
		.writer_fds = state.fds,
		.reader_fds = reader.fds,
	};
}
