# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
#
# What tests/vm/make-image puts into a 64-bit Arm machine, and where.

packages=$("$top/tests/vm/fetch-arm64")
cross=/usr/aarch64-linux-gnu/lib
busybox=$packages/bin/busybox
poweroff=$top/build/arm64/guest/vm/poweroff
libs=lib/aarch64-linux-gnu
loader=lib/ld-linux-aarch64.so.1
loader_from=$cross/ld-linux-aarch64.so.1
console=ttyAMA0
report=ttyS0

# As ldd says it.
libraries() {
	qemu-aarch64-static "$loader_from" --library-path \
		"$cross:$packages/usr/$libs" --list "$1" 2>/dev/null
}
