#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena on bad files and bad command lines: one clear line, the right exit
# code, nobody left behind.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}

# refused FILE REASON OPTIONS...: names the file and the reason, in one line.
refused() {
	file=$1
	reason=$2
	shift 2
	run broadcast "$file" --engine "$engine" --json "$@"
	[ "$status" -eq 1 ] && [ ! -s "$work/stdout" ] || return 1
	[ "$(wc -l <"$work/stderr")" -eq 1 ] || return 1
	grep -qF "tarena: $file: " "$work/stderr" || return 1
	grep -q "$reason" "$work/stderr" || return 1
	soon group_is_empty
}

check 'a file that is not there' refused "$work/none" 'No such file'
check 'a directory' refused "$work" 'is a directory'
check 'a device' refused /dev/zero 'not a regular file'
mkfifo "$work/fifo"
check 'a pipe nobody writes to' refused "$work/fifo" 'not a regular file'
: >"$work/empty"
check 'an empty file' refused "$work/empty" 'is empty'
truncate -s 8T "$work/sparse"
check 'a file larger than memory' refused "$work/sparse" 'cannot create an arena'

npy() {
	printf '\223NUMPY\001\000\166\000%-117s\n' "$1"
	head -c "$2" /dev/zero
}

head="'fortran_order': False, 'shape':"
npy "{'descr': '<f4', $head (3, 4), }" 47 >"$work/short.npy"
check 'an NPY file with too little data' refused "$work/short.npy" \
	'promises 48 bytes of data, the file has 47'
npy "{'descr': '<f4', $head (3, 4), }" 49 >"$work/long.npy"
check 'an NPY file with too much data' refused "$work/long.npy" \
	'promises 48 bytes of data, the file has 49'
npy "{'descr': '<f4', $head (9999999999, 9999999999), }" 48 >"$work/huge.npy"
check 'an NPY file that claims more than there can be' \
	refused "$work/huge.npy" 'absurd size'
npy "{'descr': '<f4', $head (9999999999,), }" 48 >"$work/lie.npy"
check 'an NPY file that claims more than it has' refused "$work/lie.npy" \
	'promises 39999999996 bytes'
npy "{'descr': '|O', $head (3,), }" 48 >"$work/object.npy"
check 'an NPY file of objects' refused "$work/object.npy" 'Python objects'
npy "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }" 48 \
	>"$work/fortran.npy"
check 'an NPY file in Fortran order' refused "$work/fortran.npy" \
	'Fortran order'
head -c 40 "$work/short.npy" >"$work/cut.npy"
check 'an NPY file cut in its header' refused "$work/cut.npy" 'cut short'
echo text >"$work/text.npy"
check 'a text that is named .npy' refused "$work/text.npy" 'is named .npy'

build/tests/make-jpeg 500 400 >"$work/good"
size=$(wc -c <"$work/good")
for percent in 1 10 50 90 99; do
	head -c $((size * percent / 100)) "$work/good" >"$work/$percent.jpg"
	check "a JPEG cut short to $percent%" refused "$work/$percent.jpg" \
		'JPEG cannot be decoded'
done
head -c $((size - 2)) "$work/good" >"$work/noend.jpg"
check 'a JPEG without its end marker' refused "$work/noend.jpg" \
	'JPEG cannot be decoded'
echo text >"$work/text.jpg"
check 'a text that is named .jpg' refused "$work/text.jpg" \
	'is named as a JPEG'
# The frame header starts with FF C0, length, precision, height, width.
claim() { # FILE, then height and width as printf takes them
	at=$(LC_ALL=C grep -obUaP '\xff\xc0\x00\x11\x08' "$work/good" |
		head -n 1 | cut -d: -f1)
	cp "$work/good" "$1"
	# shellcheck disable=SC2059
	printf "$2" |
		dd of="$1" bs=1 seek=$((at + 5)) conv=notrunc 2>/dev/null
}
claim "$work/absurd.jpg" '\377\377\377\377'
check 'a JPEG that claims 65535 x 65535 pixels' refused "$work/absurd.jpg" \
	'JPEG'
claim "$work/bomb.jpg" '\047\020\116\040'
check 'a JPEG that claims 20000 x 10000 pixels in a few bytes' \
	refused "$work/bomb.jpg" 'bytes can hold'

one_line() {
	odd=$work/$(printf 'a\nb\033c')
	run broadcast "$odd"
	[ "$status" -eq 1 ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] &&
		grep -qF '/a?b?c: ' "$work/stderr"
}
check 'a name with control characters is still one line' one_line

unreadable() {
	cp "$work/good" "$work/secret"
	chmod 0 "$work/secret"
	# Still root, who owns the way to the command, but with no right to
	# what the mode of a file forbids.
	setpriv --bounding-set=-dac_override,-dac_read_search \
		"$tarena" broadcast "$work/secret" 2>"$work/stderr" && return 1
	grep -q "$work/secret: cannot be opened: Permission denied" \
		"$work/stderr"
}
if [ "$(id -u)" -eq 0 ]; then
	check 'a file without permission' unreadable
fi

wrong_usage() {
	run "$@"
	[ "$status" -eq 2 ] && [ ! -s "$work/stdout" ] && [ -s "$work/stderr" ]
}

file=$work/good
check 'no command' wrong_usage
check 'an unknown command' wrong_usage fly
check 'no file' wrong_usage broadcast
check 'two files' wrong_usage broadcast "$file" "$file"
check 'an unknown option' wrong_usage broadcast "$file" --fast
check 'an option without its value' wrong_usage broadcast "$file" --readers
check 'no readers' wrong_usage broadcast "$file" --readers 0
check 'too many readers' wrong_usage broadcast "$file" --readers 65
check 'a negative number' wrong_usage broadcast "$file" --repeat -1
check 'a number with a tail' wrong_usage broadcast "$file" --slots 2x
check 'an unknown engine' wrong_usage broadcast "$file" --engine steam
check 'an unknown dtype' wrong_usage broadcast "$file" --dtype f16
check 'a worker started by hand' wrong_usage worker
check 'stat with an argument' wrong_usage stat now
check 'stat with an unknown option' wrong_usage stat --fast

helps() {
	run "$@"
	[ "$status" -eq 0 ] && [ -s "$work/stdout" ] && [ ! -s "$work/stderr" ]
}
check '--help' helps --help
check '--version' helps --version
check 'broadcast --help' helps broadcast --help
check 'stat --help' helps stat --help

full() {
	"$tarena" --help >/dev/full 2>"$work/stderr" && return 1
	grep -q 'No space left' "$work/stderr"
}
check 'output that cannot be written is a failure' full

finish
