// SPDX-License-Identifier: MIT
/*
 * A writer is killed, and its arena with it; two readers live on, keep what
 * they hold, and learn that there will be no more.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uapi/tensorarena.h>

#include "kill.h"

#define SURVIVORS 2

static struct survivor survivor[SURVIVORS];
static bool started, joined;
static uint32_t fds;

static void on_handle(const char *handle)
{
	int i;

	for (i = 0; i < SURVIVORS; i++)
		survivor_attach(&survivor[i], handle);
	joined = true;
}

const char *module_is_empty(void)
{
	double end = now_seconds() + HANG_SECONDS;
	struct tensorarena_info info = { 0 };
	int fd;

	if (test_engine() != TA_ENGINE_DEVICE)
		return NULL;
	fd = open(TA_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	do {
		memset(&info, 0, sizeof(info));
		MUST(!ioctl(fd, TENSORARENA_INFO, &info));
		if (!info.arenas)
			break;
		usleep(300);
	} while (now_seconds() < end);
	close(fd);
	if (info.arenas || info.total_bytes)
		return wrong("%u arenas with %llu bytes are left", info.arenas,
			     (unsigned long long)info.total_bytes);
	return NULL;
}

static const char *check_survivor(uint32_t i, bool evicted)
{
	struct survivor_report r;

	if (!survivor_report(&survivor[i], true, &r))
		return wrong("survivor %u does not answer", i);
	/* The writer may have died before it was there. */
	if (r.attached == -EPIPE || r.attached == -EACCES ||
	    r.attached == -ECONNREFUSED)
		return NULL;
	if (r.attached)
		return wrong("survivor %u: attach: %s", i,
			     ta_strerror(r.attached));
	/* One of them, if the blow did not come first. */
	if (evicted && r.end == -EOWNERDEAD)
		return NULL;
	if (r.bad || r.errors || r.end != -EPIPE)
		return wrong("survivor %u: %lu bad, %lu errors, %s", i, r.bad,
			     r.errors, ta_strerror(r.end));
	return NULL;
}

static const char *audit(const struct usher *usher)
{
	const char *why = NULL;
	uint32_t i;

	for (i = 0; joined && i < SURVIVORS && !why; i++)
		why = check_survivor(i, usher->evicted);
	return why;
}

const char *writer_round(const struct blow *blow, uint64_t seed,
			 struct outcome *outcome)
{
	struct usher usher = { .on_handle = on_handle };
	const char *why;
	uint32_t i;

	if (!started) {
		for (i = 0; i < SURVIVORS; i++)
			survivor_start(&survivor[i]);
		started = true;
		fds = count_fds();
	}
	joined = false;
	usher_start(&usher, writer_role.name, blow, seed, "");
	strike(&usher, blow, &writer_role.op[blow->op], outcome);
	why = audit(&usher);
	sweep_up(usher.pid);
	/* The files of its children were the last of the arena's. */
	if (!why)
		why = module_is_empty();
	if (!why && count_fds() != fds)
		why = wrong("%u descriptors, not %u", count_fds(), fds);
	return why;
}

const char *writer_rounds_end(void)
{
	uint32_t i;

	for (i = 0; started && i < SURVIVORS; i++)
		survivor_stop(&survivor[i]);
	started = false;
	return NULL;
}
