// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files on inodes of their own.
 *
 * Each writer and reader file gets a private inode on a pseudo file system,
 * for three reasons: an address_space whose i_size covers the arena, without
 * which kernels from 6.5 on refuse to map a PMD; one that is not the device
 * node's, which lives on a file system with writeback and so fails long-term
 * pins; and one that belongs to one reader only, so that EVICT can zap exactly
 * that reader's mappings.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "arena.h"

#define TA_FS_MAGIC	0x74615f66	/* "ta_f" */

/* Mounted while a file is open, so that an idle module can be unloaded. */
static struct vfsmount *ta_mount;
static int ta_mount_users;

/* What /proc/PID/maps shows; built at the end of @buffer, as callers expect. */
static char *ta_dname(struct dentry *dentry, char *buffer, int buflen)
{
	char name[32];
	int len;

	len = scnprintf(name, sizeof(name), "tensorarena:[%pd]", dentry) + 1;
	if (len > buflen)
		return ERR_PTR(-ENAMETOOLONG);
	return memcpy(buffer + buflen - len, name, len);
}

static const struct dentry_operations ta_dentry_ops = {
	.d_dname	= ta_dname,
};

static int ta_fs_init_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, TA_FS_MAGIC);

	if (!ctx)
		return -ENOMEM;
	ctx->dops = &ta_dentry_ops;
	fc->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

static struct file_system_type ta_fs_type = {
	.owner			= THIS_MODULE,
	.name			= "tensorarena",
	.init_fs_context	= ta_fs_init_context,
	.kill_sb		= kill_anon_super,
};

struct file *ta_file_open(const char *name, const struct file_operations *fops,
			  void *private_data, int flags, u64 bytes)
{
	struct inode *inode;
	struct file *file;
	int err;

	err = simple_pin_fs(&ta_fs_type, &ta_mount, &ta_mount_users);
	if (err)
		return ERR_PTR(err);

	inode = alloc_anon_inode(ta_mount->mnt_sb);
	if (IS_ERR(inode)) {
		file = ERR_CAST(inode);
		goto unpin;
	}
	i_size_write(inode, bytes);

	/* The last fput() drops it; we run on behalf of the control node. */
	__module_get(fops->owner);
	file = alloc_file_pseudo(inode, ta_mount, name, flags, fops);
	if (IS_ERR(file))
		goto put_inode;
	file->private_data = private_data;
	return file;

put_inode:
	module_put(fops->owner);
	iput(inode);
unpin:
	simple_release_fs(&ta_mount, &ta_mount_users);
	return file;
}

void ta_file_closed(void)
{
	simple_release_fs(&ta_mount, &ta_mount_users);
}
