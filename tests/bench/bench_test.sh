#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The benchmark programs, with tensors so small that it takes no time: that
# they deliver what they say, and leave nothing behind.  No figure is judged.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"

bench=build/bench
tarena=$bench/broadcast
engine=${TENSORARENA_TEST_ENGINE:-embedded}
standin=$PWD/build/tests/standin
record=$work/record

# The real runtime may be installed; this hides it.
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES

# left_behind: names of what a run keeps while it goes on
left_behind() {
	find /tmp /dev/shm -maxdepth 1 -name 'tensorarena-bench-*' 2>/dev/null
}

nothing_is_left() {
	[ -z "$(left_behind)" ] && soon group_is_empty
}

# present NAME: whether a contender took part.  There can only be one daemon on
# a machine, so another one is a reason for iceoryx to be absent.
present() {
	jq -e --arg name "$1" \
		'any(.series[]; .contender == $name)' "$record" >/dev/null ||
		{ [ "$1" = iceoryx ] && pgrep -x iox-roudi; }
}

every_contender() {
	run --engine "$engine" --sizes 64,1000 --readers 1,3 --rounds 4 \
		--seed 7 --json "$record"
	cat "$work/stderr"
	[ "$status" -eq 0 ] || return 1
	for who in arena socket pickle shm iceoryx memcpy 'best copy'; do
		present "$who" || {
			echo "no $who"
			jq .contenders "$record"
			return 1
		}
	done
	# Two sizes to two numbers of readers, all with every byte checked.
	jq -e '([.series[] | select(.mode == "pointer" and .readers > 0)] |
			length) == .broadcasts_checked and
		.seed == 7 and
		all(.series[]; (.put_ms | length) == 4 and
			(.readers == 0 or (.end_ms | length) == 4)) and
		all(.series[].put_ms[]; . >= 0) and
		all(.series[] | select(.readers > 0) | .end_ms[]; . > 0) and
		([.series[] | .mode] | unique) == ["pointer", "read"]' \
		"$record" && nothing_is_left
}
check 'every contender delivers the bytes it was given, and is recorded' \
	every_contender

machine() {
	jq -e '.machine | .cpu != "" and .cores > 0 and .cores_allowed > 0 and
		.memory_kib > 0 and .page_bytes > 0 and
		(.kernel | startswith("Linux")) and (.libzmq | length) > 0 and
		(.no_gpu | length) > 0' "$record"
}
check 'the record describes the machine' machine

same_seed() {
	for i in 1 2; do
		run --engine "$engine" --contenders arena,memcpy --sizes 64 \
			--readers 2 --rounds 3 --seed 5 --json "$work/$i"
		[ "$status" -eq 0 ] || return 1
		jq -c '[.seed, [.series[] | [.contender, .readers, .mode]]]' \
			"$work/$i" >"$work/$i.order"
	done
	cmp "$work/1.order" "$work/2.order"
}
check 'the same seed makes the same run' same_seed

own_numbers() {
	run --engine "$engine" --contenders 'arena:1+2,shm' --readers 3 \
		--sizes 64 --rounds 3 --modes read --json "$record"
	jq -e '[.series[] | [.contender, .readers, .mode]] ==
		[["arena", 1, "read"], ["arena", 2, "read"],
		["shm", 3, "read"]]' "$record"
}
check 'a contender can have numbers of readers of its own' own_numbers

to_gpus() {
	unset CUDA_VISIBLE_DEVICES
	LD_LIBRARY_PATH=$standin
	export LD_LIBRARY_PATH
	run --engine "$engine" --sizes 64,1000 --readers 1,3 --rounds 3 \
		--json "$record"
	unset LD_LIBRARY_PATH
	CUDA_VISIBLE_DEVICES=
	export CUDA_VISIBLE_DEVICES
	cat "$work/stderr"
	[ "$status" -eq 0 ] || return 1
	for who in arena socket pickle shm iceoryx pinned; do
		present "$who" || return 1
	done
	jq -e '.machine.gpu.count == 2 and
		([.series[] | select(.mode == "gpu" and .readers > 0 and
			.contender != "pinned")] | length) * 2 ==
			.broadcasts_checked and
		all(.series[] | select(.contender == "pinned"); .mode == "gpu")' \
		"$record" && nothing_is_left
}
check 'with a GPU the bytes are checked there, too' to_gpus

wrong_bytes() {
	unset CUDA_VISIBLE_DEVICES
	LD_LIBRARY_PATH=$standin
	STANDIN_WRONG_BYTES=1
	export LD_LIBRARY_PATH STANDIN_WRONG_BYTES
	run --engine "$engine" --contenders socket --sizes 64 --readers 1 \
		--rounds 3 --json "$work/none"
	unset LD_LIBRARY_PATH STANDIN_WRONG_BYTES
	CUDA_VISIBLE_DEVICES=
	export CUDA_VISIBLE_DEVICES
	cat "$work/stderr"
	[ "$status" -eq 1 ] && [ ! -e "$work/none" ] &&
		grep -q 'wrong bytes arrived' "$work/stderr" && nothing_is_left
}
check 'wrong bytes end the run without a record' wrong_bytes

no_gpu() {
	run --modes gpu --sizes 64 --json "$work/none"
	cat "$work/stderr"
	[ "$status" -eq 1 ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] &&
		[ ! -e "$work/none" ]
}
check 'asking for a GPU where there is none is an error' no_gpu

# all_started: each contender has a writer and two readers; iceoryx comes with its
# daemon, or is absent.
all_started() {
	daemons=$(pgrep -c -x -P "$pid" iox-roudi)
	[ "$(pgrep -c -x -P "$pid" broadcast)" -eq $((6 + 3 * daemons)) ]
}

# Many rounds: it will not be over before it is disturbed.
start_long() {
	start --engine "$engine" --contenders arena,iceoryx,shm --sizes 256 \
		--readers 2 --rounds 100000 --json "$work/none"
	soon all_started && sleep 0.3
}

dead_process() {
	start_long || return 1
	# One of the youngest: a reader of the last contender.
	kill -s KILL "$(pgrep -n -P "$pid")"
	stop
	cat "$work/stderr"
	[ "$status" -eq 1 ] && grep -q 'a process is gone' "$work/stderr" &&
		nothing_is_left
}
check 'a process that dies ends the run and leaves nothing' dead_process

interrupted() {
	start_long || return 1
	kill -s INT "$pid"
	stop
	cat "$work/stderr"
	[ "$status" -eq 1 ] && grep -q interrupted "$work/stderr" &&
		nothing_is_left
}
check 'so does Ctrl-C' interrupted

bad_options() {
	for bad in '--sizes 0' '--sizes 64,x' '--readers 65' '--rounds 0' \
		'--contenders nobody' '--contenders arena:0' '--modes fast' \
		'--engine none' '--nothing' 'FILE'; do
		# shellcheck disable=SC2086
		run $bad
		[ "$status" -eq 2 ] && [ -s "$work/stderr" ] || {
			echo "accepted: $bad"
			return 1
		}
	done
}
check 'what the command line cannot mean is refused' bad_options

cannot_write() {
	run --engine "$engine" --contenders memcpy --sizes 64 --rounds 3 \
		--json "$work/no/such/place"
	[ "$status" -eq 1 ] && grep -q 'cannot write' "$work/stderr"
}
check 'a record that cannot be written is an error' cannot_write

operations() {
	tarena=$bench/ops
	run --engine "$engine" --rounds 10 --first 1 \
		--json "$work/ops"
	cat "$work/stderr"
	[ "$status" -eq 0 ] || return 1
	jq -e --arg engine "$engine" '.engine == $engine and
		[.samples_ns_sorted[].readers] == [1, 2, 4, 8, 16, 32, 64] and
		all(.samples_ns_sorted[]; (.acquire | length) == 10 and
			(.publish | length) == 10 and
			(.release | length) == 10 * .readers and
			((.borrow + .next) | length) == 10 * .readers) and
		.idle_arena.writer_kib > 0 and
		(.first_use_200_mib.first_put_ms | length) == 1' "$work/ops"
	found=$?
	run --rounds many
	[ "$found" -eq 0 ] && [ "$status" -eq 2 ]
}
check 'the cost of operations is recorded for 1 to 64 readers' operations

reported() {
	tarena=$bench/broadcast
	run --engine "$engine" --sizes 64,1000 --readers 1,4,8 --rounds 3 \
		--contenders arena,socket,shm,memcpy,'best copy' \
		--json "$work/tensors"
	run --engine "$engine" --sizes 1 --readers 1 --rounds 20 \
		--modes pointer --contenders 'message,message beside arena' \
		--json "$work/messages"
	tests/bench/report --json "$work/bench.json" --plots "$work/plots" \
		"$work/tensors" "$work/messages" "$work/ops" || return 1
	for key in put_over_memcpy put_over_best_copy writer_n8_over_n1 \
		socket_over_arena_n1 socket_over_arena_n4 \
		socket_over_arena_n4_read message_beside_arena_n1 \
		idle_arena_writer_kib release_n64_p99_ns first_put_ms; do
		jq -e --arg key "$key" '.[$key] | type == "number"' \
			"$work/bench.json" >/dev/null || {
			echo "no $key"
			return 1
		}
	done
	jq -e '(.targets | length) > 0 and (.records | length) == 3 and
		.machine.cores > 0 and all(.medians[]; .put_ms.value > 0)' \
		"$work/bench.json" &&
		grep -q '<svg' "$work/plots/readers-read.svg"
}
check 'the report has the figures, the verdicts and the plots' reported

no_record() {
	echo '{}' >"$work/empty"
	! tests/bench/report "$work/empty" && ! tests/bench/report \
		"$work/not there"
}
check 'the report refuses what is no record' no_record

finish
