// SPDX-License-Identifier: MIT
/*
 * Releases without a message: a page that a reader writes to and the writer's
 * process reads.
 *
 * The server is asleep when a GPU's copy ends, and waking a thread on a
 * processor that is asleep as well can take longer than all the rest.  So the
 * reader writes down what it has released, and whoever finds no free slot looks
 * there.  It also tells the server, for the sake of those who wait in poll, but
 * nobody waits for that.
 *
 * A reader can write what it likes, which at worst releases what it holds.
 *
 * Barriers.  The page is the only memory in which processes tell each other
 * something here; a word of it is a generation, written by the reader, which is never
 * 0 and never again that of the slot.
 *
 *	writing the word	release -> acquire	reading it
 *		The reader's loads from the slot come before; the stores of
 *		whoever acquires the slot come after.
 *	the word, then the message	fence <-> fence	   messages, then the word
 *		The message is not sent when the socket has no room, since the
 *		server, which has messages to read then, will look at the words
 *		after those.  So either the reader finds room, or the server
 *		finds the word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "embedded.h"
#include "embedded_mapping.h"

static void *map(int fd, int prot)
{
	size_t size = sizeof(struct ta_wire_released);
	void *page;

	/* There from the start: a fault is longer than what it would save. */
	page = mmap(NULL, size, prot, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	/* A child of the reader's must not be able to release anything. */
	if (!madvise(page, size, MADV_DONTFORK))
		return page;
	munmap(page, size);
	return NULL;
}

int ta_released_make(const struct ta_wire_released **released)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd;

	fd = ta_memfd_make();
	if (fd < 0)
		return fd;
	*released = NULL;
	if (!ftruncate(fd, sizeof(**released)) &&
	    !fcntl(fd, F_ADD_SEALS, seals))
		*released = map(fd, PROT_READ);
	if (*released)
		return fd;
	close(fd);
	return -ENOMEM;
}

int ta_released_map(int fd, struct ta_wire_released **released)
{
	uint64_t bytes = 0;
	int err;

	err = ta_mapping_check(fd, &bytes);
	if (err)
		return err;
	if (bytes < sizeof(**released))
		return -EPROTO;
	*released = map(fd, PROT_READ | PROT_WRITE);
	return *released ? 0 : -ENOMEM;
}

void ta_released_unmap(const struct ta_wire_released *released)
{
	if (released)
		munmap((void *)released, sizeof(*released));
}

void ta_released_write(struct ta_wire_released *released, uint32_t slot,
		       uint64_t generation)
{
	/* What was read from the slot was read before: has_released(). */
	__atomic_store_n(&released->generation[slot], generation,
			 __ATOMIC_RELEASE);
	/* It is there before the socket is asked for room: ta_released_reap(). */
	atomic_thread_fence(memory_order_seq_cst);
}

static bool has_released(const struct ta_wire_released *released, uint32_t slot,
			 uint64_t generation)
{
	/* What the slot is overwritten with comes later: ta_released_write(). */
	return __atomic_load_n(&released->generation[slot], __ATOMIC_ACQUIRE) ==
	       generation;
}

/* A slot's readers among @seats; whether it is free now. */
static bool reap_slot(struct ta_embedded *e, uint32_t nr, uint64_t seats)
{
	const struct ta_slot *slot = &e->slots.slot[nr];
	uint64_t left = slot->pending & e->slots.claimed & seats;
	bool freed = false;

	for (; left; left &= left - 1) {
		uint32_t seat = (uint32_t)__builtin_ctzll(left);

		if (has_released(e->released[seat], nr, slot->generation))
			freed |= ta_slots_release(&e->slots, seat, nr,
						  slot->generation) > 0;
	}
	return freed;
}

void ta_released_reap(struct ta_embedded *e, uint64_t seats)
{
	bool freed = false;
	uint32_t i;

	/* After the messages that have been read: ta_released_write(). */
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < e->slots.nr; i++)
		freed |= reap_slot(e, i, seats);
	if (freed)
		ta_embedded_sync_free(e);
}
