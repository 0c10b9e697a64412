// SPDX-License-Identifier: GPL-2.0-only
/* A role's view of the slots: mmap and faults. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "arena.h"
#include "compat.h"

static void ta_vma_close(struct vm_area_struct *vma)
{
	struct ta_role *role = vma->vm_file->private_data;

	/* munmap() is no death; a foreign mapping's end is not the owner's. */
	if (vma->vm_mm != READ_ONCE(role->owner) ||
	    atomic_read(&vma->vm_mm->mm_users))
		return;
	mutex_lock(&role->arena->lock);
	ta_role_end(role, TA_END_DIED_UNMAPPED);
	mutex_unlock(&role->arena->lock);
}

/*
 * Whether the page must not be mapped, nor its folio, which may be mapped whole.
 *
 * No barrier: another that fails a moment later is mapped, too.  Not so the page
 * itself, at which the kernel looks once more and, where it has failed meanwhile,
 * goes to the folio's mapping, which ours do not have.  That it is looked at
 * last makes the moment short; to take it away a fault would have to enter the
 * page itself, which modules cannot for huge ones.
 */
static bool is_poisoned(struct page *page)
{
	return ta_folio_is_poisoned(page_folio(page)) || PageHWPoison(page);
}

static vm_fault_t ta_vma_fault(struct vm_fault *vmf)
{
	struct ta_role *role = vmf->vma->vm_file->private_data;
	struct ta_pages *pages = &role->arena->pages;
	struct page *page = NULL;

	down_read(&pages->sem);
	/*
	 * Each is settled once, by enter() and by stop() in role.c.  The owner
	 * is checked because MADV_DOFORK can undo VM_DONTCOPY on kernels before
	 * 7.x.
	 */
	if (READ_ONCE(role->state) == TA_ROLE_LIVE &&
	    READ_ONCE(role->owner) == vmf->vma->vm_mm)
		page = ta_pages_lock_page(pages, vmf->pgoff);
	up_read(&pages->sem);

	if (!page)
		return VM_FAULT_SIGBUS;
	if (is_poisoned(page)) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_HWPOISON;
	}
	vmf->page = page;
	/* Locked, so that TRIM and EVICT can wait for it to be mapped. */
	return VM_FAULT_LOCKED;
}

static const struct vm_operations_struct ta_vm_ops = {
	.close	= ta_vma_close,
	.fault	= ta_vma_fault,
};

int ta_role_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ta_role *role = file->private_data;
	struct ta_arena *arena = role->arena;
	unsigned long pages = ta_arena_bytes(arena) >> PAGE_SHIFT;
	int err;

	/* A copy-on-write mapping would let DMA land in a private copy. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;

	err = ta_role_lock(role);
	if (err)
		return err;
	ta_role_unlock(role);

	/*
	 * do_mmap() has dropped VM_MAYWRITE, since a reader's file is O_RDONLY
	 * unless readers may write, and VM_MAYEXEC, since our mount is noexec.
	 */
	ta_vma_set_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &ta_vm_ops;
	return 0;
}
