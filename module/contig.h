/* SPDX-License-Identifier: GPL-2.0-only */
/* One physical extent of many chunks. */
#ifndef TA_CONTIG_H
#define TA_CONTIG_H

#include "chunk.h"

/*
 * Fills @chunk[0..nr) with physically adjacent memory of @node: 0, -ENOMEM or
 * -EINTR.  Migrates whatever is in the way, and begins no further attempt after
 * a quarter of a second.  The memory is zeroed, and is not charged to any memory cgroup:
 * no kernel offers that to a module.  @hint: 0 at first, then ours.
 */
#ifdef CONFIG_CONTIG_ALLOC
int ta_contig_alloc(struct ta_chunk *chunk, unsigned long nr, int node,
		    unsigned long *hint);
#else
static inline int ta_contig_alloc(struct ta_chunk *chunk, unsigned long nr,
				  int node, unsigned long *hint)
{
	return -ENOMEM;
}
#endif

#endif /* TA_CONTIG_H */
