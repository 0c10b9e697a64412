#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena broadcast --gpu and tarena doctor, with the stand-in for CUDA in the
# place of the real one, and without any.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}
standin=$PWD/build/tests/standin
head -c 3000000 /dev/urandom >"$work/blob"

# standin_run ARGUMENTS...: run, with the stand-in.
standin_run() {
	LD_LIBRARY_PATH=$standin
	export LD_LIBRARY_PATH
	run "$@"
	unset LD_LIBRARY_PATH
}

workers_are_spread() {
	standin_run broadcast "$work/blob" --engine "$engine" --json --gpu \
		--readers 4 --repeat 3
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	soon group_is_empty || return 1
	jq -e '.verified == 4 and .h2d_gbps > 0 and .pin_ms > 0 and
		.slot_free_ms >= 0 and
		all(.rounds[]; .slot_free_ms >= 0) and
		([.per_reader[].gpu] | sort) == [0, 0, 1, 1] and
		all(.per_reader[]; .h2d_gbps > 0 and .pin_ms > 0)' \
		<"$work/stdout"
}
check 'workers are spread over the GPUs and verify what is there' \
	workers_are_spread

text_says_gpus() {
	standin_run broadcast "$work/blob" --engine "$engine" --gpu
	cat "$work/stdout"
	[ "$status" -eq 0 ] &&
		grep -q '^GPUs: .* GB/s from the slot' "$work/stdout" &&
		grep -q 'from what its GPU has' "$work/stdout"
}
check 'the text says so' text_says_gpus

many_tensors_go_there() {
	build/tests/make-safetensors a:BF16:16:64x100 b:F32:32:1000x300 \
		c:U8:8:0 d:U8:8: >"$work/model.safetensors"
	standin_run broadcast "$work/model.safetensors" --engine "$engine" \
		--json --gpu --readers 3 --slots 1
	cat "$work/stdout" "$work/stderr"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	jq -e '.verified == 4 and all(.tensors[]; .verified) and
		([.per_reader[].gpu] | sort) == [0, 0, 1] and
		all(.per_reader[]; .verified_tensors == 12)' <"$work/stdout"
}
check 'all tensors of a safetensors file go there, through one slot' \
	many_tensors_go_there

wrong_bytes_are_noticed() {
	STANDIN_WRONG_BYTES=1
	export STANDIN_WRONG_BYTES
	standin_run broadcast "$work/blob" --engine "$engine" --gpu \
		--readers 1 --repeat 1
	unset STANDIN_WRONG_BYTES
	cat "$work/stderr"
	[ "$status" -eq 1 ] && grep -q 'got other bytes' "$work/stderr"
}
check 'a GPU that gets other bytes is noticed' wrong_bytes_are_noticed

# The real runtime may be installed, with a GPU or without; this hides it.
no_gpu() {
	CUDA_VISIBLE_DEVICES=
	export CUDA_VISIBLE_DEVICES
	run broadcast "$work/blob" --engine "$engine" --gpu --readers 2
	cat "$work/stderr"
	[ "$status" -eq 1 ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] &&
		grep -q 'worker [01] cannot attach: .*\(CUDA\|GPU\)' \
			"$work/stderr" && soon group_is_empty
}
check 'without a GPU it says so and leaves nobody behind' no_gpu

doctor() {
	run doctor
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] &&
		grep -q 'module' "$work/stdout" &&
		grep -q 'CUDA' "$work/stdout" &&
		! grep -qvE '^(ok|note|bad|do)  ' "$work/stdout"
}
check 'the doctor says in plain words what works here' doctor

doctor_sees_gpus() {
	standin_run doctor
	cat "$work/stdout"
	[ "$status" -eq 0 ] &&
		grep -q '^ok .*Stand-in GPU.*read-only' "$work/stdout"
}
check 'the doctor sees GPUs and whether they register read-only memory' \
	doctor_sees_gpus

doctor_takes_nothing() {
	run doctor something
	[ "$status" -eq 2 ] && [ -s "$work/stderr" ]
}
check 'the doctor takes no arguments' doctor_takes_nothing

finish
