// SPDX-License-Identifier: GPL-2.0-only
/* The control node: INFO, CREATE, ATTACH; module load and unload. */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>

#include "arena.h"

static long control_info(void *self, const struct ta_user *user)
{
	struct tensorarena_info args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;

	memset(&args, 0, sizeof(args));
	args.features = TENSORARENA_FEATURE_REVOKE | TENSORARENA_FEATURE_HUGE;
	if (IS_ENABLED(CONFIG_CONTIG_ALLOC))
		args.features |= TENSORARENA_FEATURE_CONTIGUOUS;
	args.ctl_offset = TA_CTL_OFFSET;
	args.max_slots = TENSORARENA_MAX_SLOTS;
	args.max_readers = TENSORARENA_MAX_READERS;
	ta_arena_info(&args);
	return ta_copy_out(user, &args, sizeof(args));
}

/*
 * Hands a new file to the caller under a descriptor reserved before, so that
 * nothing but the caller's own bad memory can undo what the file stands for.
 */
static long install(struct file *file, s32 fd, const struct ta_user *user,
		    const void *args, size_t size)
{
	int err;

	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	err = ta_copy_out(user, args, size);
	if (err) {
		put_unused_fd(fd);
		fput(file);
		return err;
	}
	fd_install(fd, file);
	return 0;
}

static struct file *create(struct tensorarena_create *args)
{
	struct ta_arena *arena;
	struct file *file;

	arena = ta_arena_create(args);
	if (IS_ERR(arena))
		return ERR_CAST(arena);
	args->stride = arena->stride;
	args->arena = arena->id;
	memcpy(args->cookie, arena->cookie, sizeof(args->cookie));

	file = ta_writer_open(arena);
	/* From here on the file keeps the arena. */
	ta_arena_put(arena);
	return file;
}

static long control_create(void *self, const struct ta_user *user)
{
	struct tensorarena_create args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	args.fd = get_unused_fd_flags(O_CLOEXEC);
	if (args.fd < 0)
		return args.fd;
	return install(create(&args), args.fd, user, &args, sizeof(args));
}

static struct file *attach(struct tensorarena_attach *args)
{
	struct ta_arena *arena;
	struct file *file;

	if (args->flags || args->reserved)
		return ERR_PTR(-EINVAL);
	arena = ta_arena_find(args->arena, args->cookie);
	if (IS_ERR(arena))
		return ERR_CAST(arena);
	file = ta_reader_open(arena, args);
	ta_arena_put(arena);
	return file;
}

static long control_attach(void *self, const struct ta_user *user)
{
	struct tensorarena_attach args;
	int err;

	err = ta_copy_in(user, &args, sizeof(args));
	if (err)
		return err;
	args.fd = get_unused_fd_flags(O_CLOEXEC);
	if (args.fd < 0)
		return args.fd;
	return install(attach(&args), args.fd, user, &args, sizeof(args));
}

static const struct ta_ioctl control_ioctls[] = {
	{ TENSORARENA_INFO, 80, control_info },
	{ TENSORARENA_CREATE, 64, control_create },
	{ TENSORARENA_ATTACH, 72, control_attach },
};

static long control_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	return ta_ioctl_dispatch(control_ioctls, ARRAY_SIZE(control_ioctls),
				 NULL, cmd, arg);
}

static const struct file_operations control_fops = {
	.owner		= THIS_MODULE,
	.llseek		= noop_llseek,
	.unlocked_ioctl	= control_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static int __init ta_init(void)
{
	int err;

	err = ta_idle_init();
	if (err)
		return err;
	err = ta_shrinker_init();
	if (err)
		goto exit_idle;
	err = ta_sysfs_init(&control_fops);
	if (err)
		goto exit_shrinker;
	ta_debugfs_init();
	return 0;

exit_shrinker:
	ta_shrinker_exit();
exit_idle:
	ta_idle_exit();
	return err;
}

static void __exit ta_exit(void)
{
	ta_debugfs_exit();
	ta_sysfs_exit();
	ta_shrinker_exit();
	ta_idle_exit();
}

module_init(ta_init);
module_exit(ta_exit);

MODULE_DESCRIPTION("Large tensors from one process to many GPU workers");
MODULE_AUTHOR("The tensorarena authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
