/* SPDX-License-Identifier: MIT */
/*
 * The module's commands themselves, killed while they read their arguments
 * from, or write their answers to, memory that does not come.
 */
#ifndef TA_KILL_RAW_H
#define TA_KILL_RAW_H

#include "kill.h"

#define RAW_FUNCTION(name) void name##_in(struct victim *v)
#define RAW_FUNCTIONS(name)                                                    \
	void name##_in(struct victim *v);                                      \
	void name##_out(struct victim *v)

RAW_FUNCTIONS(raw_create);
RAW_FUNCTIONS(raw_attach);
RAW_FUNCTIONS(raw_acquire);
RAW_FUNCTIONS(raw_publish);
RAW_FUNCTION(raw_abort);
RAW_FUNCTIONS(raw_retract);
RAW_FUNCTIONS(raw_populate);
RAW_FUNCTIONS(raw_trim);
RAW_FUNCTIONS(raw_evict);
RAW_FUNCTIONS(raw_stats);
RAW_FUNCTIONS(raw_writer_detach);
RAW_FUNCTIONS(raw_next);
RAW_FUNCTIONS(raw_borrow);
RAW_FUNCTION(raw_release);
RAW_FUNCTIONS(raw_reader_detach);

/* Rows of a role's table; some commands only read. */
#define RAW_OP_READING(text, name)                                             \
	{                                                                      \
		text " reading", name##_in, ON_DEVICE, OP_SLEEPS, true         \
	}
#define RAW_OP(text, name)                                                     \
	RAW_OP_READING(text, name),                                            \
	{                                                                      \
		text " writing", name##_out, ON_DEVICE,                        \
			OP_SLEEPS | OP_ANSWERS, true                           \
	}

#endif /* TA_KILL_RAW_H */
