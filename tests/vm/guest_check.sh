# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Test points of scripts in a virtual machine, on descriptor 3, which is its second
# serial port; tests/vm/report.sh numbers them.

check() {
	name=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		echo "ok - $name" >&3
	else
		sed 's/^/# /' /tmp/said >&3
		echo "not ok - $name" >&3
	fi
}

# show TEXT-FILE: for people
show() {
	sed 's/^/# /' "$1" >&3
}
