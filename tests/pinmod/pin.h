/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/tensorarena-pin, for tests only: pins a range of the caller's memory the
 * way a GPU's driver does.
 *
 * One open file pins one range.  pread(2) and pwrite(2) then move bytes from
 * and to the pinned pages, whatever has become of the mapping; a pin that was
 * not for writing refuses pwrite(2) with -EPERM.  Closing the file unpins.
 */
#ifndef TENSORARENA_PIN_H
#define TENSORARENA_PIN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Without it the pin is for reading only. */
#define TENSORARENA_PIN_WRITE 0x1ULL

/**
 * struct tensorarena_pin - what to pin (TENSORARENA_PIN)
 * @address: page-aligned
 * @nbytes: whole pages
 * @flags: TENSORARENA_PIN_*
 *
 * All of it is pinned or nothing.  -EBUSY: the file has a pin already.
 */
struct tensorarena_pin {
	__u64 address;
	__u64 nbytes;
	__u64 flags;
};

#define TENSORARENA_PIN _IOW(0xF7, 0x70, struct tensorarena_pin)

#endif /* TENSORARENA_PIN_H */
