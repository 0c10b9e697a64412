// SPDX-License-Identifier: GPL-2.0-only
/* A stand-in for a device driver that pins user memory; see pin.h. */
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "pin.h"

/**
 * struct pin - an open file
 * @lock: protects the rest
 * @page: the pinned pages
 * @nr: how many
 * @write: whether they are pinned for writing
 */
struct pin {
	struct mutex lock; /* of the rest */
	struct page **page;
	unsigned long nr;
	bool write;
};

/* 6.5 dropped the array of VMAs. */
static long pin_pages(unsigned long address, unsigned long nr,
		      unsigned int flags, struct page **page)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return pin_user_pages(address, nr, flags, page, NULL);
#else
	return pin_user_pages(address, nr, flags, page);
#endif
}

static long pin_all(unsigned long address, unsigned long nr, bool write,
		    struct page **page)
{
	unsigned int flags = FOLL_LONGTERM | (write ? FOLL_WRITE : 0);
	unsigned long done = 0;
	long got = 0;

	mmap_read_lock(current->mm);
	while (done < nr) {
		got = pin_pages(address + done * PAGE_SIZE, nr - done, flags,
				page + done);
		if (got <= 0)
			break;
		done += got;
	}
	mmap_read_unlock(current->mm);
	if (done == nr)
		return 0;
	unpin_user_pages(page, done);
	return got ? got : -EFAULT;
}

static long pin_locked(struct pin *pin, const struct tensorarena_pin *args)
{
	unsigned long nr = args->nbytes >> PAGE_SHIFT;
	struct page **page;
	long err;

	if (pin->page)
		return -EBUSY;
	page = kvmalloc_array(nr, sizeof(*page), GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	pin->write = args->flags & TENSORARENA_PIN_WRITE;
	err = pin_all(args->address, nr, pin->write, page);
	if (err) {
		kvfree(page);
		return err;
	}
	pin->page = page;
	pin->nr = nr;
	return 0;
}

static long pin_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pin *pin = file->private_data;
	struct tensorarena_pin args;
	long err;

	if (cmd != TENSORARENA_PIN)
		return -ENOTTY;
	if (copy_from_user(&args, (void __user *)arg, sizeof(args)))
		return -EFAULT;
	if (args.flags & ~TENSORARENA_PIN_WRITE || !args.nbytes ||
	    !PAGE_ALIGNED(args.address) || !PAGE_ALIGNED(args.nbytes))
		return -EINVAL;

	mutex_lock(&pin->lock);
	err = pin_locked(pin, &args);
	mutex_unlock(&pin->lock);
	return err;
}

/* Moves the bytes of one page; false where the caller's memory is not there. */
static bool move(struct page *page, size_t offset, char __user *user, size_t n,
		 bool to_pages)
{
	char *kernel = kmap_local_page(page);
	unsigned long left;

	if (to_pages)
		left = copy_from_user(kernel + offset, user, n);
	else
		left = copy_to_user(user, kernel + offset, n);
	kunmap_local(kernel);
	return !left;
}

static ssize_t transfer(struct pin *pin, char __user *user, size_t count,
			loff_t *pos, bool to_pages)
{
	u64 size = (u64)pin->nr << PAGE_SHIFT;
	size_t done = 0;

	if (to_pages && !pin->write)
		return -EPERM;
	if (*pos < 0 || *pos >= size)
		return 0;
	count = min_t(u64, count, size - *pos);
	while (done < count) {
		u64 at = *pos + done;
		size_t offset = offset_in_page(at);
		size_t n = min_t(size_t, count - done, PAGE_SIZE - offset);

		if (!move(pin->page[at >> PAGE_SHIFT], offset, user + done, n,
			  to_pages))
			return -EFAULT;
		done += n;
	}
	*pos += done;
	return done;
}

static ssize_t pin_read(struct file *file, char __user *user, size_t count,
			loff_t *pos)
{
	struct pin *pin = file->private_data;
	ssize_t n;

	mutex_lock(&pin->lock);
	n = transfer(pin, user, count, pos, false);
	mutex_unlock(&pin->lock);
	return n;
}

static ssize_t pin_write(struct file *file, const char __user *user,
			 size_t count, loff_t *pos)
{
	struct pin *pin = file->private_data;
	ssize_t n;

	mutex_lock(&pin->lock);
	n = transfer(pin, (char __user *)user, count, pos, true);
	mutex_unlock(&pin->lock);
	return n;
}

static int pin_open(struct inode *inode, struct file *file)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL);

	if (!pin)
		return -ENOMEM;
	mutex_init(&pin->lock);
	file->private_data = pin;
	return 0;
}

static int pin_release(struct inode *inode, struct file *file)
{
	struct pin *pin = file->private_data;

	/* As a driver does it, whose device may have written. */
	if (pin->page)
		unpin_user_pages_dirty_lock(pin->page, pin->nr, pin->write);
	kvfree(pin->page);
	kfree(pin);
	return 0;
}

static const struct file_operations pin_fops = {
	.owner = THIS_MODULE,
	.open = pin_open,
	.release = pin_release,
	.unlocked_ioctl = pin_ioctl,
	.read = pin_read,
	.write = pin_write,
	.llseek = default_llseek,
};

static struct miscdevice pin_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tensorarena-pin",
	.fops = &pin_fops,
	.mode = 0600,
};
module_misc_device(pin_device);

MODULE_DESCRIPTION("Pins user memory for tensorarena's tests");
MODULE_AUTHOR("The tensorarena authors");
MODULE_LICENSE("GPL");
