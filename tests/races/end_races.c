// SPDX-License-Identifier: GPL-2.0-only
/* Races about the end: polls, figures and forks against teardown. */
#include <kselftest_harness.h>
#include <dirent.h>

#include "race.h"

#define SLOTS 2

struct ending {
	struct arena a;
	struct reader r;
	short writer_events, reader_events;
	int forked;
};

static void ending_open(struct ending *e)
{
	arena_create(&e->a, SLOTS, CHUNK, 0);
	reader_attach(&e->a, &e->r);
	/* Settles who owns the files. */
	stats_get(&e->a);
	MUST(next(&e->r, &(struct tensorarena_borrow){ 0 }) == -EAGAIN);
}

static bool all_gone(void)
{
	return RACE_AWAIT(!info_get().arenas);
}

/* ---- poll against teardown ---- */

static void side_poll_reader(void *arg)
{
	struct ending *e = arg;

	e->reader_events = poll_for(e->r.fd, POLLIN, HANG_MS);
}

static void side_poll_writer(void *arg)
{
	struct ending *e = arg;

	e->writer_events = poll_for(e->a.fd, 0, HANG_MS);
}

static void side_detach_both(void *arg)
{
	struct tensorarena_detach args = { 0 };
	struct ending *e = arg;

	MUST(!request(e->a.fd, TENSORARENA_DETACH, &args));
	MUST(detach(&e->r) >= 0);
}

TEST(poll_against_detach)
{
	const unsigned int rounds = race_rounds(200);
	struct ending e;
	struct race race = { .nr = 3,
			     .side = { side_poll_reader, side_poll_writer,
				       side_detach_both },
			     .arg = &e };
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		ending_open(&e);
		race_run(&race, i);
		/* Of the writer's end first, or of its own. */
		ASSERT_TRUE(e.reader_events & POLLHUP);
		ASSERT_EQ(POLLERR | POLLHUP, e.writer_events);
		MUST(!close(e.r.fd));
		MUST(!close(e.a.fd));
		ASSERT_TRUE(all_gone());
	}
	race_fact("poll against detach", rounds);
}

static void side_close_both(void *arg)
{
	struct ending *e = arg;

	MUST(!close(e->a.fd));
	MUST(!close(e->r.fd));
}

/* A poll in flight keeps its file, so it must come to its end by itself. */
static void side_poll_now(void *arg)
{
	struct ending *e = arg;
	struct pollfd pfd[2] = { { .fd = e->a.fd, .events = POLLOUT },
				 { .fd = e->r.fd, .events = POLLIN } };
	int i;

	for (i = 0; i < 20; i++)
		MUST(poll(pfd, 2, 0) >= 0);
}

TEST(poll_against_close)
{
	const unsigned int rounds = race_rounds(200);
	struct ending e;
	struct race race = { .nr = 3,
			     .side = { side_poll_now, side_poll_now,
				       side_close_both },
			     .arg = &e };
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		ending_open(&e);
		race_run(&race, i);
		ASSERT_TRUE(all_gone());
	}
	race_fact("poll against close", rounds);
}

/* ---- figures against the end of their arena ---- */

static void read_all(const char *dir)
{
	char path[512], text[4096];
	struct dirent *entry;
	DIR *d = opendir(dir);
	int fd;

	if (!d)
		return;
	while ((entry = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* Gone meanwhile is an answer as well. */
		(void)!read(fd, text, sizeof(text));
		close(fd);
	}
	closedir(d);
}

static void side_read_sysfs(void *arg)
{
	struct ending *e = arg;
	char dir[128];

	arena_dir(dir, sizeof(dir), e->a.made.arena);
	read_all(dir);
}

TEST(figures_against_the_end_of_their_arena)
{
	const unsigned int rounds = race_rounds(60);
	struct ending e;
	struct race race = { .nr = 3,
			     .side = { side_read_sysfs, side_read_sysfs,
				       side_close_both },
			     .arg = &e };
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		ending_open(&e);
		race_run(&race, i);
		ASSERT_TRUE(all_gone());
	}
	race_fact("sysfs against close", rounds);
}

/* ---- fork against the end ---- */

static void side_fork(void *arg)
{
	struct ending *e = arg;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		_exit(0);
	e->forked = pid;
}

TEST(fork_against_close)
{
	const unsigned int rounds = race_rounds(100);
	struct ending e;
	struct race race = { .nr = 2,
			     .side = { side_fork, side_close_both },
			     .arg = &e };
	unsigned int i;
	void *p;

	for (i = 0; i < rounds; i++) {
		ending_open(&e);
		p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, e.r.fd, 0);
		MUST(p != MAP_FAILED);
		race_run(&race, i);
		MUST(waitpid(e.forked, NULL, 0) == e.forked);
		MUST(!munmap(p, CHUNK));
		ASSERT_TRUE(all_gone());
	}
	race_fact("fork against close", rounds);
}

TEST_HARNESS_MAIN
