#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena stat, on directories that look like the module's class in sysfs.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

export TENSORARENA_SYSFS="$work/class"

not_loaded() {
	run stat
	[ "$status" -eq 1 ] && [ ! -s "$work/stdout" ] &&
		grep -q "^tarena: the tensorarena module is not loaded: there \
is no $work/class$" "$work/stderr"
}
check 'it says when the module is not loaded' not_loaded

mkdir "$work/class"

no_arenas() {
	run stat
	[ "$status" -eq 0 ] && grep -q 'there are no arenas' "$work/stdout" ||
		return 1
	run stat --json
	[ "$status" -eq 0 ] && jq -e '. == {arenas: []}' <"$work/stdout"
}
check 'it says when there are no arenas' no_arenas

# arena NUMBER NAME=VALUE...: as in sysfs, a class is links to devices.
arena() {
	dir=$work/devices/arena$1
	mkdir -p "$dir/power"
	ln -s "../devices/arena$1" "$work/class/arena$1"
	shift
	echo MAJOR=1 >"$dir/uevent"
	echo auto >"$dir/power/control"
	ln -s .. "$dir/subsystem"
	for pair; do
		echo "${pair#*=}" >"$dir/${pair%%=*}"
	done
}

arena 10 slots=8 slot_bytes=268435456 free=7 published=1 readers=4 \
	allocated_bytes=213909504 puts=5 put_bytes=1068419520 released=16 \
	declined_no_slot=1 declined_oversize=2 declined_no_memory=3 \
	reclaimed_dead_readers=9 owner=vllm
arena 9 slots=2
mkdir "$work/class/arena" "$work/class/arenax" "$work/class/other"

table() {
	run stat
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	[ "$(wc -l <"$work/stdout")" -eq 3 ] || return 1
	[ "$(sed -n 2p "$work/stdout" | tr -s ' ')" = \
		'arena9 2 - - - - - - - - - - - -' ] || return 1
	[ "$(sed -n 3p "$work/stdout" | tr -s ' ')" = 'arena10 8 268435456 7 1 4 213909504 5 1068419520 16 1 2 3 9' ] ||
		return 1
	# All lines are of one width: the columns stand below each other.
	[ "$(awk '{ print length() }' "$work/stdout" | sort -u | wc -l)" -eq 1 ]
}
check 'the table has a row for every arena, in order' table

json() {
	run stat --json
	cat "$work/stdout"
	[ "$status" -eq 0 ] || return 1
	jq -es 'length == 1 and (.[0].arenas | length == 2 and
		.[0] == {arena: "arena9", slots: 2} and
		.[1].arena == "arena10" and .[1].puts == 5 and
		.[1].owner == "vllm" and
		(.[1] | has("uevent") or has("power") | not))' <"$work/stdout"
}
check 'the JSON has every attribute' json

not_a_directory() {
	: >"$work/plain"
	TENSORARENA_SYSFS=$work/plain run stat
	[ "$status" -eq 1 ] && grep -q 'Not a directory' "$work/stderr"
}
check 'what is no directory is an error' not_a_directory

finish
