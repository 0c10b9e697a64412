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
		grep -q "^tarena: the tensorarena module is not loaded; " \
			"$work/stderr"
}
check 'it says when the module is not loaded' not_loaded

mkdir "$work/class"

no_arenas() {
	run stat
	[ "$status" -eq 0 ] && grep -q 'there are no arenas' "$work/stdout" ||
		return 1
	run stat --json
	[ "$status" -eq 0 ] && jq -e '. == {arenas: [], module: {}}' <"$work/stdout"
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
	reclaimed_dead_readers=9 owner=vllm seats='0 2' seat_pids='17 0' \
	slot_extents='1 0 0 0 0 0 0 0'
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
		.[0] == {arena: "arena9", engine: "device", slots: 2} and
		.[1].arena == "arena10" and .[1].puts == 5 and
		.[1].owner == "vllm" and
		.[1].seats == [0, 2] and .[1].seat_pids == [17, 0] and
		.[1].slot_extents == [1, 0, 0, 0, 0, 0, 0, 0] and
		(.[1] | has("uevent") or has("power") | not))' <"$work/stdout"
}
check 'the JSON has every attribute' json

totals() {
	mkdir "$work/class/tensorarena"
	echo 240:0 >"$work/class/tensorarena/dev"
	echo 3 >"$work/class/tensorarena/arenas"
	run stat --json
	rm -r "$work/class/tensorarena"
	jq -e '.module == {arenas: 3}' <"$work/stdout"
}
check 'the JSON has the totals of the module' totals

watches() {
	start stat --json --watch=1
	soon two_lines || return 1
	kill -s INT -- "-$pid"
	stop
	[ "$status" -eq 130 ] &&
		jq -es 'length >= 2 and all(.[]; .arenas | length == 2)' \
			<"$work/stdout"
}
two_lines() {
	[ "$(wc -l <"$work/stdout")" -ge 2 ]
}
check 'it looks again until Ctrl-C' watches

wrong_usage() {
	run stat --watch=0
	[ "$status" -eq 2 ] && grep -q 'seconds' "$work/stderr" || return 1
	run stat --handle nonsense
	[ "$status" -eq 1 ] && grep -q 'is no handle' "$work/stderr" || return 1
	run stat arena9
	[ "$status" -eq 2 ]
}
check 'wrong arguments are explained' wrong_usage

one_handle() {
	run stat --json --handle "$handle"
	cat "$work/stdout"
	jq -e '.module == null and (.arenas | length == 1) and
		(.arenas[0] | .engine == "embedded" and .readers == 3 and
		.slots == 8 and .slot_bytes == 4194304 and .puts > 0 and
		.seats == [0, 1, 2] and
		([.seat_pending[] | select(. > 0)] | length) >= 1 and
		(.seat_oldest_ns | max) > 0 and
		(.seat_pids | all(. > 1)))' <"$work/stdout" || return 1
	run stat --handle "$handle"
	[ "$(wc -l <"$work/stdout")" -eq 2 ] &&
		grep -q '^arena[0-9]* *8 *4194304 ' "$work/stdout"
}

handle_in_a_file() {
	echo "$handle" >"$work/handle"
	run stat --json --handle "@$work/handle"
	jq -e '.arenas[0].engine == "embedded"' <"$work/stdout" || return
	"$tarena" stat --json --handle @- <"$work/handle" >"$work/stdout"
	jq -e '.arenas[0].engine == "embedded"' <"$work/stdout" || return
	run stat --handle "@$work/none"
	[ "$status" -eq 2 ] && grep -q 'cannot open' "$work/stderr" || return
	: >"$work/handle"
	run stat --handle "@$work/handle"
	[ "$status" -eq 2 ] && grep -q 'no handle in' "$work/stderr"
}

device_handle() {
	run stat --json --handle \
		tensorarena1:device:9:00000000000000000000000000000000 --handle \
		tensorarena1:device:8:00000000000000000000000000000000
	jq -e '.arenas == [{arena: "arena9", engine: "device", slots: 2},
		{arena: "arena8", engine: "device", error: "gone"}]' \
		<"$work/stdout"
}

gone() {
	run stat --handle "$handle"
	[ "$status" -eq 0 ] && cat "$work/stdout" &&
		grep -qi 'arena[0-9]*  .*writer' "$work/stdout"
}

busy 3
check 'an embedded arena is shown by its handle' one_handle
check 'a handle may come from a file, where nobody sees it' handle_in_a_file
idle
check 'an arena of the module is found by its handle, or said to be gone' \
	device_handle
check 'an embedded arena that is gone is said to be' gone

not_a_directory() {
	: >"$work/plain"
	TENSORARENA_SYSFS=$work/plain run stat
	[ "$status" -eq 1 ] && grep -q 'Not a directory' "$work/stderr"
}
check 'what is no directory is an error' not_a_directory

finish
