// SPDX-License-Identifier: MIT
/* Fork detection; see alive.h. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alive.h"

int ta_alive_init(struct ta_alive *alive)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int *word;
	int err;

	word = mmap(NULL, page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		return -errno;
	if (madvise(word, page, MADV_WIPEONFORK)) {
		err = -errno;
		munmap(word, page);
		return err;
	}
	__atomic_store_n(word, 1, __ATOMIC_RELAXED);
	alive->word = word;
	return 0;
}

void ta_alive_destroy(struct ta_alive *alive)
{
	munmap(alive->word, (size_t)sysconf(_SC_PAGESIZE));
	alive->word = NULL;
}
