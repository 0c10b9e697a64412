#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Commands in the documents that can run here do.  Those are the fenced blocks with
# the info string "sh run"; other blocks of sh are listed.

cd "$(dirname "$0")/../.." || exit 1
PATH=$PWD/build:$PATH
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t documents < <(ls ./*.md docs/*.md)

# Each block goes into a file named for its document and line.
awk -v work="$work" '
	/^ *```/ {
		if (inside) {
			inside = 0
			close(file)
		} else {
			inside = 1
			info = $0
			sub(/^ *```/, "", info)
			name = FILENAME
			gsub(/^\.\/|\//, "_", name)
			kind = info == "sh run" ? "run" : info == "sh" ? "listed" : "other"
			file = sprintf("%s/%s.%s.%04d", work, kind, name, FNR)
			printf "" >file
		}
		next
	}
	inside { print >file }
	END { exit inside }' "${documents[@]}" || {
	echo '1..1'
	echo 'not ok 1 - every block of every document ends'
	exit 0
}

shopt -s nullglob
run=("$work"/run.*)
echo "1..$((${#run[@]} + 1))"
points=0
for block in "${run[@]}"; do
	points=$((points + 1))
	name=${block##*/run.}
	if ! timeout 120 sh -euc "$(cat "$block")" >"$work/said" 2>&1; then
		sed 's/^/# /' "$block" "$work/said"
		printf 'not '
	fi
	echo "ok $points - the commands of $name"
done
for block in "$work"/listed.*; do
	echo "# not run: ${block##*/listed.}: $(head -n 1 "$block")..."
done
[ "$points" -ge 4 ] || printf 'not '
echo "ok $((points + 1)) - there are commands that can run"
