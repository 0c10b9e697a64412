/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel says about the machine's memory, for tests. */
#ifndef SELFTEST_MACHINE_H
#define SELFTEST_MACHINE_H

#include <inttypes.h>
#include <stdarg.h>

#include "arena.h"
#include "proc.h"
#include "text.h"

#define PAGE 4096UL

/* Noise of a machine in peace, far below the sizes that tests look for. */
#define NOISE MIB

/* A line for docs/kernels.md, which tests/memory/kernels-table looks for. */
static inline void __attribute__((format(printf, 2, 3)))
kernel_fact(const char *key, const char *format, ...)
{
	va_list args;

	printf("# kernels.md: %s=", key);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	MUST(!fflush(stdout));
}

/* Whether this kernel can map 2 MiB by one entry. */
static inline bool maps_huge_pages(void)
{
	return !access("/sys/kernel/mm/transparent_hugepage", F_OK);
}

/* 0 or -errno. */
static inline int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = -errno;
	MUST(!close(fd));
	return err;
}

static inline int write_figure(const char *path, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return write_to(path, text);
}

/*
 * The number behind @key in a file like /proc/meminfo or /proc/vmstat; with an
 * empty key the file's first number.
 */
static inline uint64_t figure_in(const char *path, const char *key)
{
	const size_t length = strlen(key);
	uint64_t value = 0;
	bool found = false;
	char line[256];
	FILE *f = fopen(path, "re");

	MUST(f);
	while (!found && fgets(line, sizeof(line), f)) {
		const char *p = line + length;

		found = !strncmp(line, key, length) &&
			sscanf(p + strspn(p, ": "), "%" SCNu64, &value) == 1;
	}
	MUST(!fclose(f));
	MUST(found);
	return value;
}

static inline uint64_t oom_kills(void)
{
	return figure_in("/proc/vmstat", "oom_kill ");
}

#define ALL_NODES (-1)

/*
 * Free memory of a node, or of all, with what waits on per-cpu lists, which
 * MemFree leaves out.
 */
static inline uint64_t node_free_bytes(int node)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	uint64_t pages = 0, value;
	char line[256];
	int of = -1;

	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Node %d, zone", &of);
		if ((node == ALL_NODES || of == node) &&
		    (sscanf(line, " pages free %" SCNu64, &value) == 1 ||
		     sscanf(line, " count: %" SCNu64, &value) == 1))
			pages += value;
	}
	MUST(!fclose(f));
	MUST(pages);
	return pages * PAGE;
}

static inline uint64_t free_bytes(void)
{
	return node_free_bytes(ALL_NODES);
}

/* The same, once nothing is being freed or taken in the background. */
static inline uint64_t free_in_peace(void)
{
	const double end = now_ms() + HANG_MS;
	uint64_t before, now = free_bytes();

	do {
		before = now;
		usleep(50000);
		now = free_bytes();
	} while (now_ms() < end &&
		 (now + NOISE / 4 < before || before + NOISE / 4 < now));
	return now;
}

/*
 * Whether as much is free as was once before, when @less of it is meant to be
 * in use, and indeed is; what ends in the background is waited for.
 */
static inline bool free_again(uint64_t before, uint64_t less)
{
	const double end = now_ms() + HANG_MS;
	uint64_t now;

	do {
		now = free_bytes();
		if (now + less + NOISE >= before &&
		    (!less || now + less <= before + NOISE))
			return true;
		usleep(10000);
	} while (now_ms() < end);
	printf("# free: %" PRIu64 " KiB, now %" PRIu64 " KiB with %" PRIu64
	       " KiB meant to be in use\n",
	       before >> 10, now >> 10, less >> 10);
	return false;
}

/* The figure of one slot in a file of sysfs that has one for each. */
static inline uint64_t slot_figure(const struct arena *a, const char *name,
				   uint32_t slot)
{
	char path[128], line[8192], *p = line;
	size_t used;
	uint32_t i;
	FILE *f;

	arena_dir(path, sizeof(path), a->made.arena);
	used = strlen(path);
	snprintf(path + used, sizeof(path) - used, "/%s", name);
	f = fopen(path, "re");
	MUST(f && fgets(line, sizeof(line), f));
	MUST(!fclose(f));
	for (i = 0; i < slot; i++) {
		p = strchr(p, ' ');
		MUST(p);
		p++;
	}
	return strtoull(p, NULL, 10);
}

static inline bool arena_text_is(const struct arena *a, const char *name,
				 const char *expected)
{
	char path[128], line[128] = "";
	size_t used;
	FILE *f;

	arena_dir(path, sizeof(path), a->made.arena);
	used = strlen(path);
	snprintf(path + used, sizeof(path) - used, "/%s", name);
	f = fopen(path, "re");
	MUST(f && fgets(line, sizeof(line), f));
	MUST(!fclose(f));
	line[strcspn(line, "\n")] = '\0';
	return !strcmp(line, expected);
}

/* Frame numbers of @nr pages that this process has mapped and touched. */
static inline void frames_of(const void *address, uint64_t *frame, size_t nr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	off_t at = (off_t)((uintptr_t)address / PAGE * sizeof(*frame));
	size_t i, bytes = nr * sizeof(*frame);

	MUST(fd >= 0);
	MUST(pread(fd, frame, bytes, at) == (ssize_t)bytes);
	MUST(!close(fd));
	for (i = 0; i < nr; i++) {
		MUST(frame[i] >> 63); /* present */
		frame[i] &= (1ULL << 55) - 1;
		MUST(frame[i]); /* 0: we may not know */
	}
}

struct extents {
	uint64_t count;
	uint64_t largest;
};

/* How contiguous mapped memory is, by the page tables. */
static inline struct extents extents_of(const uint8_t *p, size_t nbytes)
{
	const size_t nr = nbytes / PAGE;
	struct extents e = { 0 };
	uint64_t *frame = malloc(nr * sizeof(*frame));
	uint64_t run = 0;
	size_t i;

	MUST(frame);
	for (i = 0; i < nr; i++)
		MUST(!touch_read(p + i * PAGE));
	frames_of(p, frame, nr);
	for (i = 0; i < nr; i++) {
		if (!i || frame[i] != frame[i - 1] + 1) {
			e.count++;
			run = 0;
		}
		run += PAGE;
		if (run > e.largest)
			e.largest = run;
	}
	free(frame);
	return e;
}

static inline int trim(const struct arena *a, uint64_t keep_bytes)
{
	struct tensorarena_trim args = { .keep_bytes = keep_bytes };

	return request(a->fd, TENSORARENA_TRIM, &args);
}

#endif /* SELFTEST_MACHINE_H */
