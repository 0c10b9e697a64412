/* SPDX-License-Identifier: MIT */
/* Between arenas.c and arenas_sysfs.c. */
#ifndef TARENA_ARENAS_PARTS_H
#define TARENA_ARENAS_PARTS_H

#include <stdint.h>

#include <jansson.h>

#include "complain.h"

/* As arenas_read() without handles. */
json_t *sysfs_read(struct reason *why);
/* One arena of the device engine, NULL when there is none of this id. */
json_t *sysfs_arena(uint64_t id);

#endif /* TARENA_ARENAS_PARTS_H */
