// SPDX-License-Identifier: MIT
/* A reader's mapping; see embedded_mapping.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "embedded.h"
#include "embedded_mapping.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

int ta_mapping_init(struct ta_mapping *map, const struct ta_port *port,
		    uint32_t slots, uint64_t stride, int prot)
{
	memset(map, 0, sizeof(*map));
	map->port = port;
	map->stride = stride;
	map->slots = slots;
	map->prot = prot;
	return ta_range_reserve((size_t)(slots * stride), prot, &map->base,
				&map->hole);
}

void ta_mapping_destroy(struct ta_mapping *map)
{
	munmap(map->base, (size_t)(map->slots * map->stride));
	close(map->hole);
}

static uint8_t *address(const struct ta_mapping *map, uint32_t slot)
{
	return map->base + slot * map->stride;
}

int ta_mapping_check(int fd, uint64_t *bytes)
{
	struct statfs fs;
	struct stat st;
	int seals;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fs.f_type != TMPFS_MAGIC ||
	    !S_ISREG(st.st_mode))
		return -EPROTO;
	*bytes = (uint64_t)st.st_size;
	return 0;
}

/* The first look at each page costs a fault: better all of them at once. */
static int prefault(uint8_t *addr, uint64_t nbytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)(nbytes + page - 1) / page * page;

	if (!bytes || !madvise(addr, bytes, MADV_POPULATE_READ))
		return 0;
	/* EINVAL: Linux before 5.14, where they come one by one. */
	return errno == EINVAL ? 0 : -errno;
}

static int map_memory(struct ta_mapping *map, uint32_t slot, uint64_t nbytes,
		      int fd)
{
	uint64_t bytes = 0;
	int err;

	err = ta_mapping_check(fd, &bytes);
	if (err)
		return err;
	if (bytes > map->stride)
		bytes = map->stride;
	if (bytes < nbytes)
		return -EPROTO;
	map->slot[slot].bytes = 0;
	ta_port_unmapping(map->port, slot);
	err = ta_range_map(address(map, slot), map->stride, map->prot, fd);
	if (!err)
		err = prefault(address(map, slot), nbytes);
	if (err) {
		ta_mapping_drop(map, slot);
		return err;
	}
	map->slot[slot].bytes = bytes;
	return 0;
}

int ta_mapping_hold(struct ta_mapping *map, uint32_t slot, uint64_t generation,
		    uint64_t nbytes, int fd)
{
	uint64_t held = map->slot[slot].generation;
	int err;

	if (!generation || (held && held != generation))
		return -EPROTO;
	if (fd >= 0 && !held) {
		err = map_memory(map, slot, nbytes, fd);
		if (err)
			return err;
	}
	if (nbytes > map->slot[slot].bytes)
		return -EPROTO;
	map->slot[slot].generation = generation;
	return 0;
}

int ta_mapping_prepare(struct ta_mapping *map, uint32_t slot, int fd)
{
	return map->slot[slot].generation ? 0 : map_memory(map, slot, 0, fd);
}

void ta_mapping_release(struct ta_mapping *map, uint32_t slot,
			uint64_t generation)
{
	if (map->slot[slot].generation == generation)
		map->slot[slot].generation = 0;
}

void ta_mapping_drop(struct ta_mapping *map, uint32_t slot)
{
	if (map->slot[slot].generation)
		return;
	map->slot[slot].bytes = 0;
	ta_port_unmapping(map->port, slot);
	/* If this fails the memory stays mapped, which harms nobody's bytes. */
	ta_range_map(address(map, slot), map->stride, map->prot, map->hole);
}

void ta_mapping_revoke(struct ta_mapping *map)
{
	uint32_t i;

	for (i = 0; i < map->slots; i++)
		ta_port_unmapping(map->port, i);
	/* If this fails the mapping lasts until the close. */
	ta_range_map(map->base, (size_t)(map->slots * map->stride), map->prot,
		     map->hole);
}
