// SPDX-License-Identifier: GPL-2.0-only
/*
 * What to ask the compiler about the kernel at hand; never part of the module.
 * features.sh takes an error under the name of a feature for a no.
 */
#include <linux/device.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/swap.h>

/* Before, a class belonged to a module. */
#line 1 "CLASS_CREATE_BY_NAME"
struct class *ta_class_create_by_name(void)
{
	return class_create("name");
}

#line 1 "CONST_DEVNODE"
static char *ta_devnode(const struct device *dev, umode_t *mode)
{
	return NULL;
}

struct class ta_const_devnode = { .devnode = ta_devnode };

/* Where it is there, vm_flags is read-only. */
#line 1 "VM_FLAGS_SET"
void ta_vm_flags_set(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
}

/* Before, alloc_contig_range() took a migrate type. */
#line 1 "ACR_FLAGS"
acr_flags_t ta_acr_flags = ACR_FLAGS_NONE;

/* Came with alloc_contig_range() heeding __GFP_COMP. */
#line 1 "FOLIO_ALLOC_GIGANTIC"
struct folio *ta_folio_alloc_gigantic(void)
{
	return folio_alloc_gigantic(0, GFP_KERNEL, 0, NULL);
}

/* Came with alloc_contig_range() refusing __GFP_COMP. */
#line 1 "ALLOC_CONTIG_FROZEN_RANGE"
int ta_alloc_contig_frozen_range(void)
{
	return alloc_contig_frozen_range(0, 0, ACR_FLAGS_NONE, GFP_KERNEL);
}

/* Before, shrinkers were part of their users' memory. */
#line 1 "SHRINKER_ALLOC"
struct shrinker *ta_shrinker_alloc(void)
{
	return shrinker_alloc(0, "name");
}

#line 1 "MM_ACCOUNT_RECLAIMED_PAGES"
void ta_mm_account_reclaimed_pages(void)
{
	mm_account_reclaimed_pages(1);
}
