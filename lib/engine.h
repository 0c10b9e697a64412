/* SPDX-License-Identifier: MIT */
/*
 * What an engine is to the rest of the library: something that answers the
 * uAPI's commands.
 *
 * A port is one end of an arena: a writer file or reader file of the device
 * engine, or its equivalent in the embedded one.  Everything above this
 * interface (writer.c, reader.c) is the same for both engines; everything
 * below speaks struct tensorarena_*.
 */
#ifndef TA_ENGINE_H
#define TA_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

#include "handle.h"

struct ta_port;

/**
 * struct ta_port_ops - one end of an arena
 * @call: answers a uAPI command of this kind of end; 0 or -errno.  @arg is the
 *	command's structure.  Thread-safe.  After a successful ACQUIRE, NEXT or
 *	BORROW the slot's bytes are accessible at base + offset.
 * @done: optional, of a reader's end.  A RELEASE of what is held, for those who
 *	do not ask how it went: quicker, where the command is a round trip.
 * @map: optional, of a reader's end.  Makes the memory that a slot has now
 *	accessible though nothing is published there; 0 also when it has none.
 * @poll_fd: descriptor and events that report writer "a slot is free", reader
 *	"something to NEXT, or never again"
 * @gone: optional, of a reader's end.  Whether its writer is, as far as can be
 *	told without a round trip; without it, that is POLLHUP of @poll_fd.
 * @connect: see ta_writer_connect()
 * @close: gives up this end and frees the port.  @forked: this is a child of
 *	the process that opened it: close descriptors and free memory, touch
 *	neither mappings nor the peer.
 */
struct ta_port_ops {
	int (*call)(struct ta_port *port, unsigned int cmd, void *arg);
	void (*done)(struct ta_port *port, uint32_t slot, uint64_t generation);
	int (*map)(struct ta_port *port, uint32_t slot);
	int (*poll_fd)(struct ta_port *port, short *events);
	bool (*gone)(struct ta_port *port);
	int (*connect)(struct ta_port *port);
	void (*close)(struct ta_port *port, bool forked);
};

/**
 * struct ta_port - common part of both engines' ports
 * @base: where slot 0 is mapped
 * @bytes: slots * stride
 * @unmapping: set by the layer above, or NULL: the memory of a slot is about to
 *	be unmapped or replaced.  Called inside @call, in the caller's thread.
 * @above: for @unmapping
 */
struct ta_port {
	const struct ta_port_ops *ops;
	uint8_t *base;
	size_t bytes;
	void (*unmapping)(void *above, uint32_t slot);
	void *above;
};

/*
 * What engines build a slot to for a tensor: 2 MiB times a power of two, which
 * keeps the number of growths small, at most the stride.
 */
static inline uint64_t ta_slot_capacity(uint64_t nbytes, uint64_t stride)
{
	uint64_t capacity = TENSORARENA_STRIDE_ALIGN;

	while (capacity < nbytes && capacity < stride)
		capacity *= 2;
	return capacity < stride ? capacity : stride;
}

static inline void ta_port_unmapping(const struct ta_port *port, uint32_t slot)
{
	if (port->unmapping)
		port->unmapping(port->above, slot);
}

/**
 * struct ta_engine - a way to make ports
 * @create: makes an arena.  @create_args holds the in fields on entry and the
 *	out fields (except fd) on success.  Fills @handle.
 * @attach: joins one.  @fd: connection from ta_writer_connect(), or -1; the
 *	port's on success, still the caller's on failure.
 * @explain: optional.  Says, with figures, why @create failed with @err.
 */
struct ta_engine {
	const char *name;
	enum ta_engine_kind kind;
	int (*create)(const struct ta_options *options,
		      struct tensorarena_create *create_args,
		      struct ta_handle *handle, struct ta_port **port);
	int (*attach)(const struct ta_handle *handle, int fd,
		      struct tensorarena_attach *attach_args,
		      struct ta_port **port);
	void (*explain)(const struct tensorarena_create *create_args, int err,
			char *why, size_t why_size);
};

extern const struct ta_engine ta_engine_device;
extern const struct ta_engine ta_engine_embedded;

#endif /* TA_ENGINE_H */
