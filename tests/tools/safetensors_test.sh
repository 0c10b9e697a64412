#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena broadcast on safetensors files: every tensor arrives, or it is said which
# does not.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}
make=build/tests/make-safetensors
model=$work/model.safetensors
$make embed:BF16:16:3000x512 norm:F32:32:512 \
	'layers.0.w:F8_E4M3:8:1024x1500' scale:F16:16: gone:I64:64:0x7 \
	'bits:F4:4:33x2' 'wörter:U8:8:5' big:I32:32:1000x1000 >"$model"

# good FILE FILTER OPTIONS...: the report is one object of which FILTER is true.
good() {
	file=$1
	filter=$2
	shift 2
	run broadcast "$file" --engine "$engine" --json "$@"
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	soon group_is_empty || return 1
	jq -es --arg engine "$engine" --arg file "$file" 'length == 1 and
		(.[0] | .engine == $engine and .file == $file and
			.verified == (.tensors | length) and
			all(.tensors[]; .verified and .declined == null and
				.load_ms >= 0) and
			all(.per_reader[]; .verified and .alive) and
			(.readers as $n | (.per_reader | length) == $n) and
			(.tensors as $t | all(.rounds[];
				.tensors == ($t | length) and
				.verified == ($t | length) and
				.bytes == ([$t[].bytes] | add) and
				.all_verified_ms >= .load_ms)) and
			('"$filter"'))' <"$work/stdout"
}

check 'every tensor arrives, with its name, dtype and shape' good "$model" \
	'[.tensors[] | [.name, .dtype, .shape, .bytes]] == [
		["embed", "bf16", [3000, 512], 3072000],
		["norm", "f32", [512], 2048],
		["layers.0.w", "f8_e4m3fn", [1024, 1500], 1536000],
		["scale", "f16", [], 2],
		["gone", "i64", [0, 7], 0],
		["bits", "f4_e2m1fn", [33, 2], 33],
		["wörter", "u8", [5], 5],
		["big", "i32", [1000, 1000], 4000000]] and
		.readers == 4 and (.rounds | length) == 3'
check 'a lone slot is reused for every tensor' good "$model" \
	'.slot_memory_bytes <= 4194304' \
	--slots 1 --repeat 5
check 'as many slots as tensors will do, too' good "$model" \
	'all(.rounds[]; .declined == 0)' --slots 24 --repeat 1
check '64 readers see every tensor' good "$model" \
	'.readers == 64 and all(.per_reader[]; .verified_tensors == 16)' \
	--readers 64 --repeat 2
cp "$model" "$work/model"
check 'a file is known without its name' good "$work/model" \
	'(.tensors | length) == 8' --repeat 1 --readers 1

digests_are_of_the_file() {
	run broadcast "$model" --engine "$engine" --json --repeat 1
	jq -r '.tensors[] | select(.bytes > 0) |
		"\(.offset) \(.bytes) \(."XXH3-64")"' \
		<"$work/stdout" >"$work/tensors"
	[ "$(wc -l <"$work/tensors")" -eq 7 ] || return 1
	while read -r offset bytes digest; do
		tail -c +$((offset + 1)) "$model" | head -c "$bytes" >"$work/one"
		"$tarena" broadcast "$work/one" --engine "$engine" --json \
			--repeat 1 --readers 1 >"$work/report" || return 1
		jq -e --arg digest "$digest" '."XXH3-64" == $digest' \
			<"$work/report" || return 1
	done <"$work/tensors"
}
check 'the digests are those of the bytes in the file' digests_are_of_the_file

# Hundreds of tensors, more than any socket holds answers.
many=$(seq -f 't%.0f:U8:8:300' 700)
# shellcheck disable=SC2086
$make $many >"$work/many.safetensors"
check 'many small tensors' good "$work/many.safetensors" \
	'(.tensors | length) == 700 and .tensors[699].name == "t700"' \
	--repeat 2 --slots 200

too_large() {
	run broadcast "$model" --engine "$engine" --json --slot-bytes 3500000
	cat "$work/stdout" "$work/stderr"
	[ "$status" -eq 1 ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] &&
		grep -q 'declined 1 of 8 tensors: the tensor is larger' \
			"$work/stderr" || return 1
	jq -e '.verified == 7 and all(.rounds[]; .tensors == 7) and
		(.tensors[7] | .name == "big" and .sent == 0 and
			(.verified | not) and
			.declined == "the tensor is larger than a slot") and
		all(.tensors[:7][]; .verified)' <"$work/stdout"
}
check 'a tensor larger than a slot is declined, the others arrive' too_large

text_report() {
	run broadcast "$model" --engine "$engine" --repeat 2 --slot-bytes 3500000
	cat "$work/stdout"
	[ "$status" -eq 1 ] &&
		grep -q 'a safetensors file of 8 tensors' "$work/stdout" &&
		grep -q ' 4/4 .*bf16 *embed \[3000, 512\]$' "$work/stdout" &&
		grep -q 'declined .*big \[1000, 1000\]: the tensor is larger' \
			"$work/stdout" &&
		grep -q '^ *2 *7 *7 ' "$work/stdout" &&
		grep -q '^7 of 8 tensors were seen exactly by all 4' \
			"$work/stdout"
}
check 'the text says the same' text_report

# refused FILE REASON
refused() {
	run broadcast "$1" --engine "$engine" --json
	cat "$work/stderr"
	[ "$status" -eq 1 ] && [ ! -s "$work/stdout" ] || return 1
	[ "$(wc -l <"$work/stderr")" -eq 1 ] || return 1
	grep -qF "tarena: $1: " "$work/stderr" || return 1
	grep -q "$2" "$work/stderr"
}

echo text >"$work/text.safetensors"
check 'a text that is named .safetensors' refused "$work/text.safetensors" \
	'cut short'
head -c 100 "$model" >"$work/cut.safetensors"
check 'a file cut in its header' refused "$work/cut.safetensors" \
	'longer than the file'
head -c -1 "$model" >"$work/short.safetensors"
check 'a file that lacks its last byte' refused "$work/short.safetensors" \
	"'big' ends at"
{ cat "$model" && echo; } >"$work/long.safetensors"
check 'a file with a byte too much' refused "$work/long.safetensors" \
	'1 bytes belong to no tensor'
printf '\377\377\377\377\377\377\377\377{}' >"$work/huge.safetensors"
check 'a header of absurd length' refused "$work/huge.safetensors" \
	'at most 100000000'
printf '\002\0\0\0\0\0\0\0{}' >"$work/none.safetensors"
check 'a file without tensors' refused "$work/none.safetensors" \
	'without tensors'

# While it is being streamed, the file gets shorter.
shrinks() {
	cp "$model" "$work/shrinks.safetensors"
	start broadcast "$work/shrinks.safetensors" --engine "$engine" \
		--repeat 1000000
	soon grep -q '^ *3 ' "$work/stdout" || return 1
	truncate -s -1000000 "$work/shrinks.safetensors"
	stop
	cat "$work/stderr"
	[ "$status" -eq 1 ] &&
		grep -q "tensor 'big': the file ends before" "$work/stderr" &&
		soon group_is_empty
}
check 'a file that becomes shorter ends the broadcast' shrinks

loses_a_worker() {
	start broadcast "$model" --engine "$engine" --repeat 1000 --slots 1
	soon grep -q '^ *3 ' "$work/stdout" || return 1
	kill -s KILL "$(worker 2)"
	stop
	cat "$work/stdout" "$work/stderr"
	[ "$status" -eq 1 ] && grep -q 'died: Killed' "$work/stderr" &&
		grep -q 'not every worker saw' "$work/stderr" &&
		grep -q '^ *1000 *8 *0 ' "$work/stdout" && soon group_is_empty
}
check 'a worker that dies costs no slot' loses_a_worker

interrupted() {
	start broadcast "$model" --engine "$engine" --repeat 1000000
	soon grep -q '^ *2 ' "$work/stdout" || return 1
	kill -s INT -- "-$pid"
	stop
	[ "$status" -eq 130 ] && soon group_is_empty
}
check 'Ctrl-C ends it at once' interrupted

finish
