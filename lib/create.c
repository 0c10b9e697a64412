// SPDX-License-Identifier: MIT
/* Creating an arena: options, whether it fits, which engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_check.h"
#include "why.h"
#include "writer.h"

#define ENGINE_FLAGS                                                           \
	(TA_WRITABLE_READERS | TA_CONTIGUOUS | TA_FALLBACK_SMALL |             \
	 TA_NODE_STRICT)
#define LIBRARY_FLAGS (TA_NO_MEMORY_CHECK | TA_ANY_UID)

_Static_assert(TA_WRITABLE_READERS == TENSORARENA_CREATE_WRITABLE_READERS &&
		       TA_CONTIGUOUS == TENSORARENA_CREATE_CONTIGUOUS &&
		       TA_FALLBACK_SMALL == TENSORARENA_CREATE_FALLBACK_SMALL &&
		       TA_NODE_STRICT == TENSORARENA_CREATE_NODE_STRICT &&
		       TA_NODE_LOCAL == TENSORARENA_NODE_LOCAL,
	       "options go to the engine as they are");

struct why {
	char *text;
	size_t size;
};

void ta_options_init(struct ta_options *options)
{
	*options = (struct ta_options){
		.slot_bytes = 256ULL << 20,
		.slots = 8,
		.engine = TA_ENGINE_AUTO,
		.node = TA_NODE_LOCAL,
	};
}

/* Bytes of all slots, each rounded up to a stride. */
static bool arena_bytes(const struct ta_options *o, uint64_t *bytes)
{
	uint64_t stride;

	if (__builtin_add_overflow(o->slot_bytes, TENSORARENA_STRIDE_ALIGN - 1,
				   &stride))
		return false;
	stride -= stride % TENSORARENA_STRIDE_ALIGN;
	return !__builtin_mul_overflow(stride, (uint64_t)o->slots, bytes) &&
	       *bytes <= INT64_MAX;
}

static int check_options(const struct ta_options *o, uint64_t *bytes,
			 const struct why *why)
{
	if (o->slots < 1 || o->slots > TENSORARENA_MAX_SLOTS)
		ta_why(why->text, why->size,
		       "%u slots asked for, 1 to %u are possible", o->slots,
		       TENSORARENA_MAX_SLOTS);
	else if (o->seats > TENSORARENA_MAX_READERS)
		ta_why(why->text, why->size,
		       "%u seats asked for, 0 to %u are possible", o->seats,
		       TENSORARENA_MAX_READERS);
	else if (!o->slot_bytes || !arena_bytes(o, bytes))
		ta_why(why->text, why->size,
		       "%u slots of %llu bytes cannot be addressed", o->slots,
		       (unsigned long long)o->slot_bytes);
	else if (o->flags & ~(ENGINE_FLAGS | LIBRARY_FLAGS))
		ta_why(why->text, why->size,
		       "flags 0x%x: not all of them are known here", o->flags);
	else if (o->copy_threads > TA_COPY_MAX_THREADS)
		ta_why(why->text, why->size,
		       "%u copying threads asked for, at most %u are possible",
		       o->copy_threads, TA_COPY_MAX_THREADS);
	else if (o->engine > TA_ENGINE_EMBEDDED)
		ta_why(why->text, why->size, "there is no engine number %u",
		       o->engine);
	else if (o->node < TA_NODE_LOCAL)
		ta_why(why->text, why->size, "there is no NUMA node %d",
		       o->node);
	else if (o->socket_path &&
		 (o->socket_path[0] != '/' || !ta_socket_valid(o->socket_path)))
		ta_why(why->text, why->size,
		       "socket_path must be absolute, printable and at most "
		       "%zu bytes long",
		       TA_SOCKET_NAME_MAX);
	else
		return 0;
	return -EINVAL;
}

static int check_memory(const struct ta_options *o, uint64_t bytes,
			const struct why *why)
{
	char limit[512];
	char slot_text[TA_SIZE_TEXT], all_text[TA_SIZE_TEXT];
	uint64_t headroom;
	int err;

	err = ta_memory_headroom(&headroom, limit, sizeof(limit));
	if (err) {
		ta_why(why->text, why->size,
		       "cannot find out how much memory there is: %s",
		       strerror(-err));
		return err;
	}
	if (headroom >= bytes)
		return 0;
	ta_why(why->text, why->size,
	       "%u slots of %s (%s of memory when all are full) do not fit: %s",
	       o->slots, ta_size(o->slot_bytes, slot_text),
	       ta_size(bytes, all_text), limit);
	return -ENOMEM;
}

static int create_on(const struct ta_engine *engine, const struct ta_options *o,
		     struct ta_writer *writer, const struct why *why)
{
	struct tensorarena_create args = {
		.slot_bytes = o->slot_bytes,
		.slots = o->slots,
		.seats = o->seats,
		.flags = o->flags & ENGINE_FLAGS,
		.node = o->node,
	};
	struct ta_handle handle;
	int err;

	err = engine->create(o, &args, &handle, &writer->port);
	if (!err) {
		writer->engine = engine->kind;
		writer->arena = handle.arena;
		ta_writer_init(writer, args.stride, args.slots);
		ta_handle_format(&handle, writer->handle);
	} else if (engine->explain) {
		engine->explain(&args, err, why->text, why->size);
	} else {
		ta_why(why->text, why->size, "%s engine: %s", engine->name,
		       ta_strerror(err));
	}
	return err;
}

/* Whether the device engine failed because it is not here, or not for us. */
static bool no_device(int err)
{
	switch (err) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENODEV:
	case -ENXIO:
	case -EACCES:
	case -EPERM:
		return true;
	default:
		return false;
	}
}

static int choose(const struct ta_options *o, struct ta_writer *writer,
		  const struct why *why)
{
	int err;

	if (o->engine != TA_ENGINE_EMBEDDED) {
		err = create_on(&ta_engine_device, o, writer, why);
		if (o->engine == TA_ENGINE_DEVICE || !no_device(err))
			return err;
	}
	return create_on(&ta_engine_embedded, o, writer, why);
}

int ta_create(const struct ta_options *options, struct ta_writer **writer,
	      char *why_text, size_t why_size)
{
	const struct why why = { why_text, why_size };
	struct ta_writer *w;
	uint64_t bytes;
	int err;

	ta_why(why.text, why.size, "%s", "");
	err = check_options(options, &bytes, &why);
	if (!err && !(options->flags & TA_NO_MEMORY_CHECK))
		err = check_memory(options, bytes, &why);
	if (err)
		return err;

	w = calloc(1, sizeof(*w));
	if (!w) {
		ta_why(why.text, why.size, "%s", ta_strerror(-ENOMEM));
		return -ENOMEM;
	}
	err = ta_alive_init(&w->alive);
	if (err) {
		ta_why(why.text, why.size,
		       "this system cannot tell a forked child from its "
		       "parent: %s",
		       strerror(-err));
		goto free_writer;
	}
	err = choose(options, w, &why);
	if (err)
		goto destroy_alive;
	ta_copier_init(&w->copier, options->copy_threads, options->node);
	pthread_mutex_init(&w->lock, NULL);
	LIST_INIT(&w->loans);
	*writer = w;
	return 0;

destroy_alive:
	ta_alive_destroy(&w->alive);
free_writer:
	free(w);
	return err;
}
