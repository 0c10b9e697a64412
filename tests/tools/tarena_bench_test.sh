#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena bench: what it measures and says, and that it leaves nobody behind.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}
standin=$PWD/build/tests/standin

# measured FILTER OPTIONS...: the report is one object of which FILTER is true,
# nothing is on stderr, and nobody is left.
measured() {
	filter=$1
	shift
	run bench --engine "$engine" --json "$@"
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	soon group_is_empty || return 1
	jq -es --arg engine "$engine" 'length == 1 and (.[0] |
		.engine == $engine and .processors > 0 and
		.put_us > 0 and .view_us > 0 and .release_us > 0 and
		all(.ways[]; .verified == .readers and .put_ms > 0 and
			.put_gbps > 0 and .all_verified_ms >= .put_ms and
			.memcpy_ms > 0 and .passes_ms > 0) and
		all(.ways | to_entries[];
			.value.way == (["arena", "socket"][.key % 2])) and
		('"$filter"'))' <"$work/stdout"
}

without_gpus() {
	measured '.bytes == 300001 and .rounds == 2 and
		[.ways[] | .readers] == [1, 1, 3, 3] and
		all(.ways[]; .gpu == false and .bound_ms > 0) and
		(.no_gpu | test("no NVIDIA driver"))' \
		--bytes 300001 --readers 3 --repeat 2
}
check 'one reader and several get it by an arena and by sockets' without_gpus

one_reader() {
	measured '[.ways[] | .readers] == [1, 1] and .rounds == 1' \
		--bytes 1 --readers 1 --repeat 1
}
check 'one reader is not measured twice, and one byte and round do' one_reader

with_gpus() {
	export LD_LIBRARY_PATH="$standin"
	measured '[.ways[] | [.readers, .gpu]] == [[1, false], [1, false],
			[2, false], [2, false], [2, true], [2, true]] and
		all(.ways[4:][]; .h2d_gbps > 0) and .ways[4].pin_ms > 0 and
		.ways[4].slot_free_ms >= 0 and (has("no_gpu") | not)' \
		--bytes 3000000 --readers 2 --repeat 3
	result=$?
	unset LD_LIBRARY_PATH
	return $result
}
check 'where there are GPUs it goes on to them, either way' with_gpus

in_text() {
	run bench --engine "$engine" --bytes 3000000 --readers 2
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] &&
		grep -q "^engine: $engine" "$work/stdout" &&
		grep -q '^4 KiB to one reader: put [0-9.]* us, view [0-9.]* us, ' \
			"$work/stdout" &&
		[ "$(grep -c '^arena  ' "$work/stdout")" -eq 2 ] &&
		[ "$(grep -c '^socket ' "$work/stdout")" -eq 2 ] &&
		grep -q 'memcpy alone [0-9.]* GB/s' "$work/stdout" &&
		grep -q '^With 2 readers all have verified it [0-9.]* times' \
			"$work/stdout" &&
		grep -q '^No copies to a GPU: no NVIDIA driver' "$work/stdout"
}
check 'the text says the same' in_text

# refused STATUS REASON OPTIONS...
refused() {
	expected=$1
	reason=$2
	shift 2
	run bench "$@"
	cat "$work/stdout" "$work/stderr"
	[ "$status" -eq "$expected" ] && [ ! -s "$work/stdout" ] &&
		[ "$(wc -l <"$work/stderr")" -eq 1 ] &&
		grep -q "$reason" "$work/stderr" && soon group_is_empty
}

wrong() {
	refused 2 "^tarena: --bytes cannot be '0'" --bytes 0 &&
		refused 2 "^tarena: --readers cannot be '65'" --readers 65 &&
		refused 2 "^tarena: --repeat cannot be '0'" --repeat 0 &&
		refused 2 "^tarena: --engine cannot be 'x'" --engine x &&
		refused 2 '^tarena: bench takes no arguments' file &&
		refused 2 "^tarena: unrecognized option '--slots'" --slots 2
}
check 'wrong options are refused' wrong

too_large() {
	refused 1 '^tarena: cannot create an arena: ' --json \
		--engine "$engine" --bytes 1099511627776
}
check 'a tensor larger than memory is refused, with the reason' too_large

interrupted() {
	start bench --engine "$engine" --readers 1 --repeat 1000
	# Of the arena and of the socket.
	soon workers 2 || return 1
	kill -INT "$pid"
	stop
	[ "$status" -eq 130 ] && soon group_is_empty
}
check 'Ctrl-C ends it and its workers' interrupted

a_worker_dies() {
	start bench --engine "$engine" --readers 1 --repeat 1000
	soon workers 2 || return 1
	kill -KILL "$(worker 2)"
	stop
	cat "$work/stderr"
	[ "$status" -eq 1 ] && soon group_is_empty &&
		grep -q '^tarena: worker [0-9] (pid [0-9]*) died: Killed$' \
			"$work/stderr" &&
		grep -q '^tarena: no worker is left$' "$work/stderr"
}
check 'with a reader that has died there is no result' a_worker_dies

finish
