// SPDX-License-Identifier: MIT
/*
 * Slots' memory: one memfd each, mapped at the slot's place in the range.
 *
 * Once the writer has its own mapping the file is sealed: nobody can map it to
 * write, write(2) to it or punch holes into it any more, nor make it shorter,
 * so neither side can make the other fault.  It may grow, and does when a
 * larger tensor comes.  A reader can make it grow, too, at its own expense.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "embedded.h"
#include "memory_check.h"

/* Known to kernels, but not to all C libraries we build with. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define ALIGN TENSORARENA_STRIDE_ALIGN

int ta_memfd_make(void)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	fd = memfd_create("tensorarena", flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("tensorarena", flags);
	return fd < 0 ? -errno : fd;
}

static int add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) ? -errno : 0;
}

int ta_range_map(uint8_t *addr, size_t bytes, int prot, int fd)
{
	if (mmap(addr, bytes, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		 0) == MAP_FAILED)
		return -errno;
	/* A child must not keep the memory, or see it change. */
	if (madvise(addr, bytes, MADV_DONTFORK))
		return -errno;
	/* Not worth failing for: smaller dumps, larger pages. */
	madvise(addr, bytes, MADV_DONTDUMP);
	madvise(addr, bytes, MADV_HUGEPAGE);
	return 0;
}

static int make_hole(void)
{
	int fd, err;

	fd = ta_memfd_make();
	if (fd < 0)
		return fd;
	err = add_seals(fd, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int ta_range_reserve(size_t bytes, int prot, uint8_t **base, int *hole)
{
	uint8_t *all, *start;
	size_t before;
	int err;

	if (bytes > SIZE_MAX - ALIGN)
		return -ENOMEM;
	all = mmap(NULL, bytes + ALIGN, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return -errno;
	before = -(uintptr_t)all % ALIGN;
	start = all + before;
	if (before)
		munmap(all, before);
	munmap(start + bytes, ALIGN - before);

	*hole = make_hole();
	err = *hole < 0 ? *hole : ta_range_map(start, bytes, prot, *hole);
	if (!err) {
		*base = start;
		return 0;
	}
	if (*hole >= 0)
		close(*hole);
	munmap(start, bytes);
	return err;
}

static uint8_t *slot_address(const struct ta_embedded *e, uint32_t slot)
{
	return e->port.base + slot * e->stride;
}

/*
 * Whether this much more can be taken without somebody being killed for it,
 * and the file may be so long without a signal.
 */
static int check_room(uint64_t more, uint64_t length)
{
	struct rlimit limit;
	uint64_t headroom;
	int err;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		return -errno;
	if (limit.rlim_cur != RLIM_INFINITY && length > limit.rlim_cur)
		return -ENOMEM;
	err = ta_memory_headroom(&headroom, NULL, 0);
	if (err)
		return err;
	return headroom < more ? -ENOMEM : 0;
}

/* Makes an empty memfd and maps it where the slot is. */
static int conceive(const struct ta_embedded *e, uint32_t slot)
{
	bool writable = e->flags & TENSORARENA_CREATE_WRITABLE_READERS;
	uint8_t *addr = slot_address(e, slot);
	int fd, err;

	fd = ta_memfd_make();
	if (fd < 0)
		return fd;
	err = ta_range_map(addr, e->stride, PROT_READ | PROT_WRITE, fd);
	if (!err)
		err = add_seals(fd,
				F_SEAL_SHRINK | F_SEAL_SEAL |
					(writable ? 0 : F_SEAL_FUTURE_WRITE));
	if (!err)
		return fd;
	ta_range_map(addr, e->stride, PROT_READ | PROT_WRITE, e->hole);
	close(fd);
	return err;
}

/*
 * Makes a file at least so long.  Readers can open theirs anew to write, and
 * make it longer than we did; asking for less is refused then.
 */
static int lengthen(int fd, off_t bytes)
{
	struct stat st;
	int err;

	if (!ftruncate(fd, bytes))
		return 0;
	err = -errno;
	return err == -EPERM && !fstat(fd, &st) && st.st_size >= bytes ? 0 :
									 err;
}

/* Lengthens a slot's file and backs the new part with memory. */
static int extend(const struct ta_embedded *e, uint32_t slot, int fd,
		  uint64_t have, uint64_t want)
{
	uint8_t *part = slot_address(e, slot) + have;
	int err;

	err = lengthen(fd, (off_t)want);
	if (err)
		return err;
	/* Through the mapping, so that its advice on huge pages counts. */
	err = ta_memory_make(part, (size_t)(want - have));
	if (err != -EINVAL)
		return err;
	/* Linux before 5.14. */
	while (fallocate(fd, 0, (off_t)have, (off_t)(want - have)))
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* What memory there is now; with none, there is no capacity either. */
static void set_memory(struct ta_embedded *e, uint32_t slot, int fd)
{
	struct ta_memory *memory = &e->memory[slot];

	pthread_mutex_lock(&e->lock);
	memory->epoch = ++e->last_epoch;
	if (memory->fd != fd)
		memory->born = memory->epoch;
	if (fd < 0) {
		e->last_drop = memory->epoch;
		e->slots.slot[slot].capacity = 0;
	}
	memory->fd = fd;
	pthread_mutex_unlock(&e->lock);
}

static int grow(struct ta_embedded *e, uint32_t slot, uint64_t have,
		uint64_t want)
{
	int fd = e->memory[slot].fd;
	int err;

	err = check_room(want - have, want);
	if (err)
		return err;
	if (fd < 0)
		fd = conceive(e, slot);
	if (fd < 0)
		return fd;
	err = extend(e, slot, fd, have, want);
	if (!err) {
		set_memory(e, slot, fd);
		return 0;
	}
	/*
	 * The seals that protect readers also forbid giving back a part, so
	 * what there was goes as well.
	 */
	if (e->memory[slot].fd >= 0)
		ta_memory_drop(e, slot);
	else if (!ta_range_map(slot_address(e, slot), e->stride,
			       PROT_READ | PROT_WRITE, e->hole))
		close(fd);
	else
		set_memory(e, slot, fd);
	return err;
}

/* Whether the writer has detached, and with that given up its mapping. */
static bool revoked(struct ta_embedded *e)
{
	bool gone;

	pthread_mutex_lock(&e->lock);
	gone = e->slots.writer_gone;
	pthread_mutex_unlock(&e->lock);
	return gone;
}

void ta_memory_revoke(struct ta_embedded *e)
{
	uint32_t i;

	for (i = 0; i < e->slots.nr; i++)
		ta_port_unmapping(&e->port, i);
	/* A growing slot is mapped first, one that comes later not at all. */
	pthread_mutex_lock(&e->grow_lock);
	/* If it fails, the mapping lasts until the close: no harm but that. */
	ta_range_map(e->port.base, e->port.bytes, PROT_READ | PROT_WRITE,
		     e->hole);
	pthread_mutex_unlock(&e->grow_lock);
}

int ta_memory_grow(struct ta_embedded *e, uint32_t slot, uint64_t nbytes,
		   uint64_t *capacity)
{
	/*
	 * Ours to read without @lock while the slot is WRITING: whoever changed
	 * it had @lock before us, and nobody else does until we give it back.
	 * The same goes for the slot's descriptor.
	 */
	uint64_t have = e->slots.slot[slot].capacity;
	int err;

	*capacity = ta_slot_capacity(nbytes, e->stride);
	pthread_mutex_lock(&e->grow_lock);
	err = revoked(e) ? -ENOMEM : grow(e, slot, have, *capacity);
	pthread_mutex_unlock(&e->grow_lock);
	/* Whatever it was, the slot has no memory: a decline. */
	return err ? -ENOMEM : 0;
}

int ta_memory_drop(struct ta_embedded *e, uint32_t slot)
{
	int fd = e->memory[slot].fd;
	int err;

	ta_port_unmapping(&e->port, slot);
	err = ta_range_map(slot_address(e, slot), e->stride,
			   PROT_READ | PROT_WRITE, e->hole);
	if (err)
		return err;
	set_memory(e, slot, -1);
	close(fd);
	return 0;
}

/*
 * Opened anew, read-only, so that it shares neither access mode nor flags with
 * ours.  Without /proc a duplicate must do; the seals protect us there, too.
 */
int ta_memory_for_reader(const struct ta_embedded *e, uint32_t slot)
{
	bool writable = e->flags & TENSORARENA_CREATE_WRITABLE_READERS;
	int memfd = e->memory[slot].fd;
	char path[sizeof("/proc/self/fd/") + 10];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		fd = fcntl(memfd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

uint64_t ta_memory_allocated(const struct ta_embedded *e)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < e->slots.nr; i++)
		bytes += e->slots.slot[i].capacity;
	return bytes;
}
