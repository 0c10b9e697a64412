#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena broadcast on good files: what arrives, and what is reported.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}

# good FILE FILTER OPTIONS...: the report is one object of which FILTER is
# true, nothing is on stderr and nobody is left.
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
			.verified == .readers and
			(.per_reader | length) == .readers and
			all(.per_reader[]; .verified and .alive and .ms >= 0) and
			.declined == 0 and .put_ms >= 0 and
			.all_verified_ms >= .put_ms and .memcpy_ms > 0 and
			.checksum_ms > 0 and .passes_ms > 0 and
			(.bound_ms - .memcpy_ms - .passes_ms | fabs) < 1e-5 and
			all(.rounds[]; .all_verified_ms >= .put_ms) and
			('"$filter"'))' <"$work/stdout"
}

bytes() {
	head -c "$1" /dev/urandom >"$work/$1"
	good "$work/$1" ".bytes == $1 and .dtype == \"u8\" and .shape == [$1] \
		and .readers == 4 and (.rounds | length) == 3 and \
		all(.rounds[]; .way == \"put\")"
}

for size in 1 4095 2097151 2097152 2097153; do
	check "a file of $size bytes arrives" bytes "$size"
done

check '64 readers see the same bytes' good "$work/4095" \
	'.readers == 64 and ([.per_reader[].seat] | unique | length) == 64' \
	--readers 64 --repeat 2
check 'a single reader, round and slot do' good "$work/4095" \
	'.readers == 1 and (.rounds | length) == 1' \
	--readers 1 --repeat 1 --slots 1
check 'a lone slot is reused round after round' good "$work/4095" \
	'(.rounds | length) == 200' --slots 1 --repeat 200

# npy HEADER BYTES: version 1.0, the header padded as numpy does.
npy() {
	printf '\223NUMPY\001\000\166\000%-117s\n' "$1"
	head -c "$2" /dev/urandom
}

npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5, 7), }" 420 \
	>"$work/array.npy"
check 'an NPY array keeps its dtype and shape' good "$work/array.npy" \
	'.bytes == 420 and .dtype == "f32" and .shape == [3, 5, 7]'
npy "{'descr': '|b1', 'fortran_order': False, 'shape': (), }" 1 \
	>"$work/scalar.npy"
check 'an NPY scalar has no dimensions' good "$work/scalar.npy" \
	'.bytes == 1 and .dtype == "bool" and .shape == []'
npy "{'descr': '<i8', 'fortran_order': False, 'shape': (4, 0), }" 0 \
	>"$work/none.npy"
check 'an NPY array without elements arrives as 0 bytes' \
	good "$work/none.npy" '.bytes == 0 and .shape == [4, 0]'

build/tests/make-jpeg 300 200 >"$work/picture"
check 'a JPEG becomes pixel_values, first right in the slot' \
	good "$work/picture" '.dtype == "bf16" and .shape == [308, 1176] and
		.bytes == 308 * 1176 * 2 and .grid_thw == [1, 14, 22] and
		[.rounds[].way] == ["loan", "put", "put"] and
		.rounds[0].produce_ms > 0 and .rounds[1].produce_ms == 0'
check 'a JPEG becomes f32 when asked to' good "$work/picture" \
	'.dtype == "f32" and .bytes == 308 * 1176 * 4' --dtype f32
check 'a JPEG is scaled down when asked to' good "$work/picture" \
	'.shape == [24, 1176] and .grid_thw == [1, 4, 6]' --max-pixels 8000

digest_of() {
	run broadcast "$1" --engine "$engine" --json --repeat 1
	jq -r '."XXH3-64"' <"$work/stdout"
}

digest_is_known() {
	printf abc >"$work/abc"
	[ "$(digest_of "$work/abc")" = 78af5f94892f3950 ]
}
check 'the digest is that of the file' digest_is_known

text_report() {
	run broadcast "$work/picture" --engine "$engine" --repeat 2
	cat "$work/stdout"
	[ "$status" -eq 0 ] && [ ! -s "$work/stderr" ] || return 1
	grep -q "^engine: $engine" "$work/stdout" &&
		grep -q '^tensor: bf16 \[308, 1176\], 724416 bytes' \
			"$work/stdout" &&
		grep -q '^    1  loan .* 4/4 ' "$work/stdout" &&
		grep -q '^    2  put .* 4/4 ' "$work/stdout" &&
		grep -q '^4 of 4 workers saw exactly these bytes' \
			"$work/stdout"
}
check 'the text says the same' text_report

odd_name() {
	odd=$work/$(printf 'a\377b\nc')
	printf x >"$odd"
	run broadcast "$odd" --engine "$engine" --json --repeat 1
	cat "$work/stdout"
	[ "$status" -eq 0 ] && jq -e '.file | endswith("a?b\nc")' \
		<"$work/stdout"
}
check 'a name that is not UTF-8 still gives valid JSON' odd_name

finish
