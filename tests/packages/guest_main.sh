#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In the virtual machine, as root, when the system is up: runs the tests that are
# to run this time, reports on the second serial port, and turns the machine off.

cd /root/tests || exit 1
stty -F /dev/ttyS1 raw -echo
exec 3>/dev/ttyS1

# shellcheck source=tests/vm/guest_check.sh
. ./guest_check.sh

as() {
	user=$1
	shift
	runuser -u "$user" -- "$@"
}

# documented COMMAND: the block of the documents that begins with it, as it stands
documented() {
	block=$(grep -l -m 1 "^$1" commands/root/*)
	cat "$block"
	(cd / && sh -euc "$(cat "/root/tests/$block")")
}

# shellcheck source=/dev/null
. "./guest_$(cat what).sh"
./poweroff 0 /dev/ttyS0 /dev/ttyS1
