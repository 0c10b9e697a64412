# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# TAP of which one part is made here and another in virtual machines.  $work is a
# directory; to be sourced.

points=0
failed=0

# check NAME COMMAND...: one test point
check() {
	local name=$1
	shift
	points=$((points + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $points - $name"
	else
		tail -n 40 "$work/said" | sed 's/^/# /'
		echo "not ok $points - $name"
		failed=1
	fi
}

# report DIR WHERE COUNT: the points that DIR/tap has from a virtual machine; what
# went wrong there may be in DIR/log
report() {
	local line count=0

	touch "$1/tap"
	while read -r line; do
		line=${line%$'\r'}
		case $line in
		'ok '* | 'not ok '*)
			count=$((count + 1))
			points=$((points + 1))
			[ "${line#not }" = "$line" ] || failed=1
			echo "$line" | sed "s/ok - \(.*\)/ok $points - \1, $2/"
			;;
		*) echo "# ${line#\# }" ;;
		esac
	done <"$1/tap"
	[ "$count" -eq "$3" ] || {
		sed 's/^/# /' "$1/log"
		failed=1
		while [ "$count" -lt "$3" ]; do
			count=$((count + 1))
			points=$((points + 1))
			echo "not ok $points - a test that was to run $2"
		done
	}
}

finish() {
	exit "$failed"
}
