/* SPDX-License-Identifier: GPL-2.0-only */
/* Modules to load, and pins taken by the tests' own one; see pin.h. */
#ifndef MEMORY_PINNED_H
#define MEMORY_PINNED_H

#include "tests/pinmod/pin.h"
#include "tests/selftests/machine.h"

static inline int module_load(const char *name)
{
	char path[128];
	int fd, err;

	snprintf(path, sizeof(path), "/lib/modules/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	MUST(!close(fd));
	return err;
}

static inline int module_unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

/*
 * Balancing makes page table entries inaccessible from time to time, which
 * neither move_pages(2) nor, on 6.1, smaps can tell from absent ones.
 */
static inline void stop_numa_balancing(void)
{
	MUST(!write_to("/proc/sys/kernel/numa_balancing", "0"));
}

/* Runs this process on a processor of the node; the two have one each. */
static inline void run_on(int node)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(node, &set);
	MUST(!sched_setaffinity(0, sizeof(set), &set));
}

/* It stays: nothing depends on its leaving. */
static inline void pin_module_load(void)
{
	int err = module_load("tensorarena_pin");

	MUST(!err || err == -EEXIST);
}

/* A file that holds the pin, or a negative error number. */
static inline int pin(const void *address, size_t nbytes, bool write)
{
	struct tensorarena_pin args = {
		.address = (uintptr_t)address,
		.nbytes = nbytes,
		.flags = write ? TENSORARENA_PIN_WRITE : 0,
	};
	int fd = open("/dev/tensorarena-pin", O_RDWR | O_CLOEXEC);
	int err;

	MUST(fd >= 0);
	err = request(fd, TENSORARENA_PIN, &args);
	if (!err)
		return fd;
	MUST(!close(fd));
	return err;
}

/* Not from malloc(), which would keep it and spoil the count of free pages. */
static inline uint8_t *pages_get(size_t nbytes)
{
	uint8_t *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* What the device finds in the pages. */
static inline bool pin_matches(int fd, size_t nbytes, uint32_t seed)
{
	uint8_t *bytes = pages_get(nbytes);
	bool same;

	MUST(pread(fd, bytes, nbytes, 0) == (ssize_t)nbytes);
	same = pattern_matches(bytes, nbytes, seed);
	MUST(!munmap(bytes, nbytes));
	return same;
}

/* The device writes to the pages: 0 or a negative error number. */
static inline int pin_fill(int fd, size_t nbytes, uint32_t seed)
{
	uint8_t *bytes = pages_get(nbytes);
	ssize_t n;
	int err;

	pattern_fill(bytes, nbytes, seed);
	n = pwrite(fd, bytes, nbytes, 0);
	err = n < 0 ? -errno : 0;
	MUST(err || n == (ssize_t)nbytes);
	MUST(!munmap(bytes, nbytes));
	return err;
}

#endif /* MEMORY_PINNED_H */
