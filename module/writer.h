/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands of the writer's file that are not in writer.c. */
#ifndef TA_WRITER_H
#define TA_WRITER_H

struct ta_user;

/* writer_memory.c */
long ta_writer_populate(void *self, const struct ta_user *user);
long ta_writer_trim(void *self, const struct ta_user *user);

/* writer_stats.c */
long ta_writer_stats(void *self, const struct ta_user *user);

#endif /* TA_WRITER_H */
