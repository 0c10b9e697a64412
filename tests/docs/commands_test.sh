#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Commands in the documents and in the manual: those that can run here do; of the
# others each says why not, and is in the list of such.

cd "$(dirname "$0")/../.." || exit 1
PATH=$PWD/build:$PATH
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! tests/docs/blocks "$work"; then
	echo '1..1'
	echo 'not ok 1 - every block of every document ends'
	exit 0
fi
shopt -s nullglob
run=("$work"/run/*)
wrong=("$work"/wrong/*)
echo "1..$((${#run[@]} + 3))"
points=0

# point STATUS NAME
point() {
	points=$((points + 1))
	[ "$1" -eq 0 ] || {
		sed 's/^/# /' "$work/said"
		printf 'not '
	}
	echo "ok $points - $2"
}

# What examples take for granted.
build/tests/make-jpeg 640 480 >"$work/photo.jpg"

for block in "${run[@]}"; do
	name=$(basename "$block" | tr '!' '/')
	dir=$PWD
	# A reader of the manual is not in the checkout.
	[[ $name != man/* ]] || dir=$work
	(cd "$dir" && timeout 120 sh -euc "$(cat "$block")") >"$work/said" 2>&1
	point $? "the commands of $name"
done

[ "${#run[@]}" -ge 8 ]
point $? 'there are commands that can run'
head -n 3 "${wrong[@]}" /dev/null >"$work/said"
[ "${#wrong[@]}" -eq 0 ]
point $? 'every other one says who runs it or why nobody does'
docs/list-commands | diff docs/commands.md - >"$work/said"
point $? 'those that are not run are listed; else: make docs'
