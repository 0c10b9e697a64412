# SPDX-License-Identifier: MIT
#
# The README's commands on a bare Debian 12.  Not part of `make check`, which it
# runs.

#: make check-chroot make demo and make check in a fresh, bare Debian 12
check-chroot: | deps-chroot
	@tests/chroot/run

.PHONY: check-chroot
