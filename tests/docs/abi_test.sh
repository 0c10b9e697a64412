#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the module shows in sysfs is what docs/ABI describes, name by name, and the
# other way round.

cd "$(dirname "$0")/../.." || exit 1
document=docs/ABI/testing/sysfs-class-tensorarena
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -nE 's/^(static )?(DEVICE_ATTR_RO|TA_SEATS|TA_STAT|TA_FIGURE)\(([a-z_0-9]+).*\);$/\3/p' \
	module/sysfs_*.c | sort >"$work/shown"
sed -nE 's,^What:.*/([a-z_0-9]+)$,\1,p' "$document" | sort >"$work/described"

echo 1..3
[ "$(wc -l <"$work/shown")" -gt 30 ] || printf 'not '
echo 'ok 1 - attributes are found in the source'
diff "$work/shown" "$work/described" | sed 's/^/# /' >"$work/difference"
cat "$work/difference"
[ ! -s "$work/difference" ] || printf 'not '
echo 'ok 2 - every attribute is described, and no other'
! grep -vE '^(\.\. |(What|Date|KernelVersion|Contact|Description):	|		|$)' \
	docs/ABI/testing/* || printf 'not '
echo 'ok 3 - the descriptions have the form of Documentation/ABI'
