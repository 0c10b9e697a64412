// SPDX-License-Identifier: MIT
/* Which parts of the module this thread's system calls have executed. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define KCOV_INIT_TRACE _IOR('c', 1, unsigned long)
#define KCOV_ENABLE _IO('c', 100)
#define KCOV_DISABLE _IO('c', 101)
#define KCOV_TRACE_PC 0

#define BUFFER_WORDS (256UL << 10)
/* Places are told apart by a hash; the module has a few thousand. */
#define SEEN_BITS 18

static int fd = -1;
static unsigned long *buffer;
static uint8_t seen[1 << SEEN_BITS];
static uint32_t total;

bool kcov_open(void)
{
	fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	MUST(!ioctl(fd, KCOV_INIT_TRACE, BUFFER_WORDS));
	buffer = mmap(NULL, BUFFER_WORDS * sizeof(*buffer),
		      PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(buffer != MAP_FAILED);
	return true;
}

void kcov_start(void)
{
	if (fd < 0)
		return;
	MUST(!ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC));
	__atomic_store_n(&buffer[0], 0, __ATOMIC_RELAXED);
}

uint32_t kcov_stop(void)
{
	uint32_t new = 0;
	unsigned long i, nr;

	if (fd < 0)
		return 0;
	nr = __atomic_load_n(&buffer[0], __ATOMIC_RELAXED);
	MUST(!ioctl(fd, KCOV_DISABLE, 0));
	for (i = 0; i < nr && i + 1 < BUFFER_WORDS; i++) {
		uint64_t hash = buffer[i + 1] * 0x9e3779b97f4a7c15ULL;

		hash >>= 64 - SEEN_BITS;
		new += !seen[hash];
		seen[hash] = 1;
	}
	total += new;
	return new;
}

uint32_t kcov_total(void)
{
	return total;
}
