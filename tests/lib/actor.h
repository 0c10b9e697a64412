/* SPDX-License-Identifier: MIT */
/* What a test says to an actor, and what the actor answers. */
#ifndef TA_TEST_ACTOR_H
#define TA_TEST_ACTOR_H

#include <stdint.h>

#include <tensorarena.h>

enum actor_op {
	ACTOR_ATTACH,
	ACTOR_READER_ID,
	ACTOR_NEXT,
	ACTOR_VIEW,
	ACTOR_DESCRIBE,
	ACTOR_CHECK,
	ACTOR_RELEASE,
	ACTOR_CLOSE_READER,
	ACTOR_DRAIN,
	ACTOR_CREATE,
	ACTOR_PUT,
	ACTOR_LOAN,
	ACTOR_CLOSE_WRITER,
	ACTOR_FORK,
	ACTOR_EXEC,
};

struct actor_request {
	enum actor_op op;
	int view;
	int timeout_ms;
	uint32_t count;
	uint64_t nbytes;
	uint64_t seed;
	struct ta_ticket ticket;
	struct ta_options options;
	char handle[TA_HANDLE_MAX];
};

struct actor_answer {
	int err;
	int64_t number;
	struct ta_ticket ticket;
	struct ta_tensor tensor;
	char handle[TA_HANDLE_MAX];
};

#endif /* TA_TEST_ACTOR_H */
