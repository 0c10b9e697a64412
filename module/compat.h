/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only file that knows what kernels differ in.  Each helper here has one
 * name and one meaning on every kernel from 6.1 on.  TA_HAVE_* are from
 * features.sh, which asked the compiler: distributions carry new features to
 * old versions.
 */
#ifndef TA_COMPAT_H
#define TA_COMPAT_H

#include <linux/device.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "features.h"

/* 6.4 dropped the module argument. */
#ifdef TA_HAVE_CLASS_CREATE_BY_NAME
#define ta_class_create(name)	class_create(name)
#else
#define ta_class_create(name)	class_create(THIS_MODULE, name)
#endif

/* 6.2 made the device const. */
#ifdef TA_HAVE_CONST_DEVNODE
#define TA_DEVNODE_DEVICE	const struct device
#else
#define TA_DEVNODE_DEVICE	struct device
#endif

/* 6.3 made vm_flags read-only to drivers. */
static inline void ta_vma_set_flags(struct vm_area_struct *vma,
				    unsigned long flags)
{
#ifdef TA_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

#ifdef CONFIG_CONTIG_ALLOC
/*
 * Takes @nr pages from @pfn on, wherever they have to be migrated to: 0 or
 * -errno.  From 6.12 to before 7.0 they are made a folio, on other kernels they
 * are single pages; none charges them, and before 6.12 none zeroes them.
 */
static inline int ta_alloc_contig(unsigned long pfn, unsigned long nr)
{
	/* NORETRY is refused; this, too, leaves the OOM killer out of it. */
	gfp_t gfp = GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;

#if defined(TA_HAVE_FOLIO_ALLOC_GIGANTIC) && \
	!defined(TA_HAVE_ALLOC_CONTIG_FROZEN_RANGE)
	gfp |= __GFP_COMP;
#endif
#ifdef TA_HAVE_ACR_FLAGS
	return alloc_contig_range(pfn, pfn + nr, ACR_FLAGS_NONE, gfp);
#else
	return alloc_contig_range(pfn, pfn + nr, MIGRATE_MOVABLE, gfp);
#endif
}
#endif /* CONFIG_CONTIG_ALLOC */

typedef unsigned long ta_shrink_fn(struct shrinker *shrinker,
				   struct shrink_control *sc);

/* 6.7 took the allocation of shrinkers away from their users. */
static inline struct shrinker *ta_shrinker_register(ta_shrink_fn *count,
						    ta_shrink_fn *scan)
{
	struct shrinker *s;
#ifdef TA_HAVE_SHRINKER_ALLOC
	s = shrinker_alloc(SHRINKER_NUMA_AWARE, "tensorarena");
#else
	int err;

	s = kzalloc(sizeof(*s), GFP_KERNEL);
#endif
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->count_objects = count;
	s->scan_objects = scan;
	/* Building a slot anew takes a while: others first, when in doubt. */
	s->seeks = DEFAULT_SEEKS * 8;
#ifdef TA_HAVE_SHRINKER_ALLOC
	shrinker_register(s);
#else
	s->flags = SHRINKER_NUMA_AWARE;
	err = register_shrinker(s, "tensorarena");
	if (err) {
		kfree(s);
		return ERR_PTR(err);
	}
#endif
	return s;
}

static inline void ta_shrinker_unregister(struct shrinker *s)
{
#ifdef TA_HAVE_SHRINKER_ALLOC
	shrinker_free(s);
#else
	unregister_shrinker(s);
	kfree(s);
#endif
}

/* 6.5 gave what is freed beside the LRU lists a name of its own. */
static inline void ta_account_reclaimed(unsigned long pages)
{
#ifdef TA_HAVE_MM_ACCOUNT_RECLAIMED_PAGES
	mm_account_reclaimed_pages(pages);
#else
	if (current->reclaim_state)
		current->reclaim_state->reclaimed_slab += pages;
#endif
}

#endif /* TA_COMPAT_H */
