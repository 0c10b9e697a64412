// SPDX-License-Identifier: GPL-2.0-only
/* Arenas: their birth, the limits on it, the list of them, their end. */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "arena.h"
#include "figures.h"
#include "trace.h"

static unsigned long max_arena_bytes;
module_param(max_arena_bytes, ulong, 0644);
MODULE_PARM_DESC(max_arena_bytes,
		 "largest slots * stride of an arena, bytes; 0: max_total_bytes");

static unsigned long max_total_bytes;
module_param(max_total_bytes, ulong, 0644);
MODULE_PARM_DESC(max_total_bytes,
		 "the same summed over all arenas; 0: three quarters of memory");

static unsigned int max_arenas = 64;
module_param(max_arenas, uint, 0644);
MODULE_PARM_DESC(max_arenas, "most arenas at one time");

static unsigned int max_arenas_per_uid = 16;
module_param(max_arenas_per_uid, uint, 0644);
MODULE_PARM_DESC(max_arenas_per_uid,
		 "most arenas of one user; CAP_SYS_RESOURCE exceeds it");

/* Protects the list and the figures derived from it. */
static DEFINE_MUTEX(ta_registry_lock);
static LIST_HEAD(ta_registry);
static struct ta_figures ta_past; /* counters of arenas that are gone */
static u64 ta_last_id;

static u64 total_limit(void)
{
	unsigned long limit = READ_ONCE(max_total_bytes);

	return limit ? limit : (u64)totalram_pages() * PAGE_SIZE / 4 * 3;
}

/*
 * What an arena counts as: nobody can make an orphan larger any more.  Read
 * without the arena's lock: writer_gone is set once, and bytes may lack what is
 * just being built, by which the limit is passed for a moment.
 */
u64 ta_arena_charged(const struct ta_arena *arena)
{
	if (READ_ONCE(arena->slots.writer_gone))
		return atomic64_read(&arena->pages.bytes);
	return ta_arena_bytes(arena);
}

static u64 arena_limit(void)
{
	unsigned long limit = READ_ONCE(max_arena_bytes);

	return limit ? limit : total_limit();
}

void ta_arena_info(struct tensorarena_info *info)
{
	struct ta_arena *arena;

	info->max_arena_bytes = arena_limit();
	info->max_total_bytes = total_limit();
	info->max_arenas = READ_ONCE(max_arenas);
	info->max_arenas_per_uid = READ_ONCE(max_arenas_per_uid);

	mutex_lock(&ta_registry_lock);
	list_for_each_entry(arena, &ta_registry, registered) {
		info->arenas++;
		info->total_bytes += ta_arena_charged(arena);
	}
	mutex_unlock(&ta_registry_lock);
}

/*
 * Whether @uid's user answers for an arena: who made it, and for an orphan who
 * keeps it.  That may be anybody who once read there, and the writer is not there
 * any more to throw him out.
 */
static bool is_of(struct ta_arena *arena, kuid_t uid)
{
	struct ta_role *role;
	bool keeps = false;

	if (!READ_ONCE(arena->slots.writer_gone))
		return uid_eq(arena->uid, uid);
	mutex_lock(&arena->lock);
	list_for_each_entry(role, &arena->files, files)
		keeps |= uid_eq(role->uid, uid);
	mutex_unlock(&arena->lock);
	return keeps;
}

/* Whether the arenas that exist leave room for this one. */
static int check_limits(const struct ta_arena *new)
{
	u64 total = ta_arena_bytes(new);
	unsigned int mine = 1, all = 1;
	struct ta_arena *arena;

	list_for_each_entry(arena, &ta_registry, registered) {
		total += ta_arena_charged(arena);
		mine += is_of(arena, new->uid);
		all++;
	}
	if (ta_arena_bytes(new) > arena_limit() || total > total_limit() ||
	    all > READ_ONCE(max_arenas))
		return -EDQUOT;
	if (mine > READ_ONCE(max_arenas_per_uid) && !capable(CAP_SYS_RESOURCE))
		return -EDQUOT;
	return 0;
}

static int register_arena(struct ta_arena *arena)
{
	int err;

	mutex_lock(&ta_registry_lock);
	err = check_limits(arena);
	if (!err) {
		arena->id = ++ta_last_id;
		list_add_tail(&arena->registered, &ta_registry);
	}
	mutex_unlock(&ta_registry_lock);
	return err;
}

static void unregister_arena(struct ta_arena *arena)
{
	struct ta_figures figures;

	mutex_lock(&ta_registry_lock);
	ta_figures_get(arena, &figures);
	/* In one step, so that the totals never go back. */
	ta_figures_add_counters(&ta_past, &figures);
	list_del(&arena->registered);
	mutex_unlock(&ta_registry_lock);
}

void ta_arena_for_each(void (*fn)(struct ta_arena *arena, void *arg), void *arg)
{
	struct ta_arena *arena;

	mutex_lock(&ta_registry_lock);
	list_for_each_entry(arena, &ta_registry, registered)
		fn(arena, arg);
	mutex_unlock(&ta_registry_lock);
}

void ta_arena_totals(struct ta_figures *sum)
{
	struct ta_arena *arena;
	struct ta_figures figures;

	mutex_lock(&ta_registry_lock);
	*sum = ta_past;
	list_for_each_entry(arena, &ta_registry, registered) {
		ta_figures_get(arena, &figures);
		ta_figures_add(sum, &figures);
	}
	mutex_unlock(&ta_registry_lock);
}

unsigned long ta_arena_sum(unsigned long (*fn)(struct ta_arena *arena,
					       struct shrink_control *sc),
			   struct shrink_control *sc)
{
	unsigned long sum = 0;
	struct ta_arena *arena;

	if (!mutex_trylock(&ta_registry_lock))
		return 0;
	/* One that is about to be freed is still whole: it leaves first. */
	list_for_each_entry(arena, &ta_registry, registered)
		sum += fn(arena, sc);
	mutex_unlock(&ta_registry_lock);
	return sum;
}

static int check_create(const struct tensorarena_create *args)
{
	const u32 either = TENSORARENA_CREATE_CONTIGUOUS |
			   TENSORARENA_CREATE_FALLBACK_SMALL;

	if (args->reserved || args->flags & ~TA_CREATE_FLAGS ||
	    (args->flags & either) == either)
		return -EINVAL;
	if (!args->slots || args->slots > TENSORARENA_MAX_SLOTS ||
	    args->seats > TENSORARENA_MAX_READERS)
		return -EINVAL;
	/* So that slots * stride stays below the control page's offset. */
	if (!args->slot_bytes ||
	    args->slot_bytes > TA_CTL_OFFSET / TENSORARENA_MAX_SLOTS)
		return -EINVAL;
	if (args->node != TENSORARENA_NODE_LOCAL &&
	    (args->node < 0 || args->node >= MAX_NUMNODES ||
	     !node_state(args->node, N_MEMORY)))
		return -EINVAL;
	if (args->flags & TENSORARENA_CREATE_CONTIGUOUS &&
	    !IS_ENABLED(CONFIG_CONTIG_ALLOC))
		return -EOPNOTSUPP;
	/* What is charged to nobody is not for everybody. */
	if (args->flags & TENSORARENA_CREATE_CONTIGUOUS &&
	    !capable(CAP_SYS_RESOURCE))
		return -EPERM;
	return 0;
}

static void choose_memory(struct ta_pages *pages,
			  const struct tensorarena_create *args)
{
	pages->node = args->node == TENSORARENA_NODE_LOCAL ? numa_mem_id() :
							     args->node;
	pages->strict = args->flags & TENSORARENA_CREATE_NODE_STRICT;
	if (args->flags & TENSORARENA_CREATE_CONTIGUOUS)
		pages->tier = TA_TIER_CONTIGUOUS;
	else if (args->flags & TENSORARENA_CREATE_FALLBACK_SMALL)
		pages->tier = TA_TIER_FALLBACK_SMALL;
}

struct ta_arena *ta_arena_create(const struct tensorarena_create *args)
{
	struct ta_arena *arena;
	struct ta_slot *slot;
	int err;

	err = check_create(args);
	if (err)
		return ERR_PTR(err);

	arena = kzalloc(sizeof(*arena), GFP_KERNEL_ACCOUNT);
	if (!arena)
		return ERR_PTR(-ENOMEM);
	slot = kvcalloc(args->slots, sizeof(*slot), GFP_KERNEL_ACCOUNT);
	err = -ENOMEM;
	if (!slot)
		goto free_arena;

	kref_init(&arena->ref);
	mutex_init(&arena->lock);
	INIT_LIST_HEAD(&arena->files);
	INIT_DELAYED_WORK(&arena->idle, ta_arena_idle_work);
	ta_slots_init(&arena->slots, slot, args->slots, args->slot_bytes,
		      args->seats);
	arena->stride = ALIGN(args->slot_bytes, TENSORARENA_STRIDE_ALIGN);
	arena->flags = args->flags;
	arena->uid = current_uid();
	get_random_bytes(arena->cookie, sizeof(arena->cookie));

	choose_memory(&arena->pages, args);
	err = ta_pages_init(&arena->pages, args->slots, arena->stride);
	if (err)
		goto free_slots;
	err = register_arena(arena);
	if (err)
		goto free_pages;
	err = ta_sysfs_add(arena);
	if (err)
		goto unregister;
	trace_ta_create(arena);
	return arena;

unregister:
	unregister_arena(arena);
free_pages:
	ta_pages_destroy(&arena->pages);
free_slots:
	kvfree(slot);
free_arena:
	kfree(arena);
	return ERR_PTR(err);
}

static void free_arena(struct kref *ref)
{
	struct ta_arena *arena = container_of(ref, struct ta_arena, ref);

	unregister_arena(arena);
	ta_sysfs_remove(arena);
	cancel_delayed_work_sync(&arena->idle);
	trace_ta_destroy(arena);
	ta_pages_destroy(&arena->pages);
	kvfree(arena->slots.slot);
	mutex_destroy(&arena->lock);
	kfree_sensitive(arena);
}

void ta_arena_put(struct ta_arena *arena)
{
	kref_put(&arena->ref, free_arena);
}

/*
 * Takes as long for a wrong cookie as for the right one: a guess must not
 * learn how wrong it is.  (crypto_memneq() is not in every kernel.)
 */
static bool is_same_cookie(const u8 *a, const u8 *b)
{
	u8 differs = 0;
	int i;

	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++) {
		differs |= a[i] ^ b[i];
		OPTIMIZER_HIDE_VAR(differs);
	}
	return !differs;
}

struct ta_arena *ta_arena_find(u64 id, const u8 *cookie)
{
	struct ta_arena *arena, *found = ERR_PTR(-EACCES);

	mutex_lock(&ta_registry_lock);
	list_for_each_entry(arena, &ta_registry, registered) {
		if (arena->id != id)
			continue;
		if (is_same_cookie(arena->cookie, cookie) &&
		    kref_get_unless_zero(&arena->ref))
			found = arena;
		break;
	}
	mutex_unlock(&ta_registry_lock);
	return found;
}

void ta_arena_stats(struct ta_arena *arena, u64 now,
		    struct tensorarena_stats *st)
{
	int oldest;

	ta_slots_stats(&arena->slots, st);
	st->nr_readers = ta_slots_open(&arena->slots);
	st->allocated_bytes = atomic64_read(&arena->pages.bytes);
	oldest = ta_slots_oldest(&arena->slots);
	if (oldest >= 0)
		st->oldest_ns = now - arena->slots.slot[oldest].stamp;
}
