// SPDX-License-Identifier: MIT
/* The threads of this process; see tasks.h. */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"
#include "test.h"

#define NAME "ta-copy"
#define HANG_MS 30000
#define NOBODY 65534

static FILE *open_task(const char *tid, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
	/* A thread may end at any time. */
	return fopen(path, "re");
}

static bool is_copier(const char *tid)
{
	FILE *file = open_task(tid, "comm");
	char name[32] = "";

	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strcmp(name, NAME "\n");
}

/* Calls @look for each thread. */
static uint32_t each_task(void (*look)(const char *tid, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	uint32_t nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		nr++;
		if (look)
			look(entry->d_name, arg);
	}
	closedir(dir);
	return nr;
}

uint32_t count_tasks(void)
{
	return each_task(NULL, NULL);
}

static void count_one(const char *tid, void *arg)
{
	uint32_t *nr = arg;

	*nr += is_copier(tid);
}

static uint32_t count_copiers(void)
{
	uint32_t nr = 0;

	each_task(count_one, &nr);
	return nr;
}

void expect_copiers(uint32_t nr)
{
	int waited;

	for (waited = 0; count_copiers() != nr; waited++) {
		if (waited == HANG_MS)
			fail_msg("%u copying threads, not %u", count_copiers(),
				 nr);
		nap_ms(1);
	}
}

static void look_at_one(const char *tid, void *arg)
{
	struct copiers *c = arg;
	uint64_t blocked = 0, user = 0, system = 0;
	char state = '?', line[512];
	cpu_set_t cpus, all = c->cpus;
	FILE *file;

	if (!is_copier(tid))
		return;
	c->nr++;
	file = open_task(tid, "stat");
	/* state is the third field, times are the 14th and 15th */
	if (file && fscanf(file,
			   "%*d (" NAME ") %c %*d %*d %*d %*d %*d %*d %*d %*d "
			   "%*d %*d %" SCNu64 " %" SCNu64,
			   &state, &user, &system) == 3)
		c->asleep += state == 'S';
	if (file)
		fclose(file);
	c->ticks += user + system;
	file = open_task(tid, "status");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "SigBlk: %" SCNx64, &blocked);
	if (file)
		fclose(file);
	c->blocked &= blocked;
	if (!sched_getaffinity(atoi(tid), sizeof(cpus), &cpus))
		CPU_OR(&c->cpus, &all, &cpus);
}

void look_at_copiers(struct copiers *copiers)
{
	*copiers = (struct copiers){ .blocked = UINT64_MAX };
	each_task(look_at_one, copiers);
}

uint64_t own_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	uint64_t kib = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) &&
	       sscanf(line, "Anonymous: %" SCNu64, &kib) != 1)
		;
	fclose(file);
	assert_true(kib > 0);
	return kib;
}

void nap_ms(long ms)
{
	const struct timespec nap = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&nap, NULL);
}

void await_sleep(uint32_t nr, struct copiers *copiers)
{
	int waited;

	for (waited = 0; waited < HANG_MS; waited++) {
		look_at_copiers(copiers);
		if (copiers->nr == nr && copiers->asleep == nr)
			return;
		nap_ms(1);
	}
	fail_msg("%u copying threads, %u of them asleep, not %u", copiers->nr,
		 copiers->asleep, nr);
}

static struct rlimit limit_before;

/* The limit does not count for root, and a user's does not go below zero. */
int forbid_threads(void)
{
	struct rlimit none;

	if (getrlimit(RLIMIT_NPROC, &limit_before))
		return 0;
	none = limit_before;
	none.rlim_cur = 0;
	if (setrlimit(RLIMIT_NPROC, &none))
		return 0;
	if (!geteuid() && setresuid(NOBODY, NOBODY, 0)) {
		setrlimit(RLIMIT_NPROC, &limit_before);
		return 0;
	}
	return 1;
}

void allow_threads(void)
{
	uid_t real, effective, saved;

	assert_int_equal(getresuid(&real, &effective, &saved), 0);
	if (!saved)
		assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NPROC, &limit_before), 0);
}
