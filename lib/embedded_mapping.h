/* SPDX-License-Identifier: MIT */
/*
 * What a reader of the embedded engine has mapped: the slots' memory, each at
 * its place in one range, and nothing (SIGBUS) where it was given none.
 *
 * The server's word is not taken for it: a slot's memory is mapped only when
 * touching the bytes it is said to hold cannot fault, and stays mapped while
 * the reader holds a publication in it, whatever the server says.
 */
#ifndef TA_EMBEDDED_MAPPING_H
#define TA_EMBEDDED_MAPPING_H

#include <stddef.h>
#include <stdint.h>

#include <uapi/tensorarena.h>

#include "engine.h"

/**
 * struct ta_mapping - a reader's mapping
 * @port: told before memory is unmapped
 * @base: where slot 0 is
 * @stride: distance of slots
 * @slots: how many
 * @prot: PROT_READ, and PROT_WRITE in an arena with writable readers
 * @hole: empty file, mapped where there is no memory
 * @slot: of each slot, @bytes that may be touched, and the @generation held
 *	there, 0: none
 */
struct ta_mapping {
	const struct ta_port *port;
	uint8_t *base;
	uint64_t stride;
	uint32_t slots;
	int prot;
	int hole;
	struct {
		uint64_t bytes;
		uint64_t generation;
	} slot[TENSORARENA_MAX_SLOTS];
};

/*
 * Bytes of a file that can be touched for good: it must be shared memory,
 * which has a page for every byte or makes one, and never get shorter.  -EPROTO.
 */
int ta_mapping_check(int fd, uint64_t *bytes);

/* Reserves the range. */
int ta_mapping_init(struct ta_mapping *map, const struct ta_port *port,
		    uint32_t slots, uint64_t stride, int prot);
void ta_mapping_destroy(struct ta_mapping *map);
/*
 * Takes hold of @nbytes of a slot, which the memory that came along, @fd, has
 * room for; -1: none did.  -EPROTO: it has not.  Otherwise there are no means
 * to map it now.
 */
int ta_mapping_hold(struct ta_mapping *map, uint32_t slot, uint64_t generation,
		    uint64_t nbytes, int fd);
/* Maps a slot's memory, if it is not held. */
int ta_mapping_prepare(struct ta_mapping *map, uint32_t slot, int fd);
/* Ends a hold; what is mapped stays for the next. */
void ta_mapping_release(struct ta_mapping *map, uint32_t slot,
			uint64_t generation);
/* Unmaps everything, held or not, for good. */
void ta_mapping_revoke(struct ta_mapping *map);
/* Unmaps the memory of a slot that is not held. */
void ta_mapping_drop(struct ta_mapping *map, uint32_t slot);

#endif /* TA_EMBEDDED_MAPPING_H */
