// SPDX-License-Identifier: MIT
/*
 * Memory that whoever touches it sleeps on: userfaultfd(2) without anybody to
 * answer.  In the kernel that is a copy_from_user() or copy_to_user() that
 * does not come to its end, except by a signal that kills.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kill.h"

#define PAGE 4096

static void *sleeping(const void *content, size_t bytes, uint64_t mode)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = mode };
	struct uffdio_writeprotect protect = {
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p;

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd,
				  O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return NULL;
	if (mode == UFFDIO_REGISTER_MODE_WP)
		api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	if (ioctl(fd, UFFDIO_API, &api))
		return NULL;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	if (mode == UFFDIO_REGISTER_MODE_WP)
		memcpy(p, content, bytes);
	reg.range.start = protect.range.start = (uintptr_t)p;
	reg.range.len = protect.range.len = size;
	MUST(!ioctl(fd, UFFDIO_REGISTER, &reg));
	if (mode == UFFDIO_REGISTER_MODE_WP)
		MUST(!ioctl(fd, UFFDIO_WRITEPROTECT, &protect));
	return p;
}

void *sleeping_page(const void *content, size_t bytes)
{
	(void)content;
	return sleeping(NULL, bytes, UFFDIO_REGISTER_MODE_MISSING);
}

void *sleeping_page_to_write(const void *content, size_t bytes)
{
	return sleeping(content, bytes, UFFDIO_REGISTER_MODE_WP);
}
