#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A target's corpus: inputs that together reach all that is known to be
# reachable.  It is kept as text, tests/fuzz/corpus/NAME, an input a line in
# base64.
#
#   corpus.sh seed NAME DIR	good inputs to begin with
#   corpus.sh unpack NAME DIR	the corpus as files
#   corpus.sh pack NAME DIR	the corpus from files, as few as will do

set -eu
cd "$(dirname "$0")/../.."
if [ $# -ne 3 ]; then
	sed -n '8,10s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
name=$2
dir=$3
mkdir -p "$dir"

npy() {
	printf '\223NUMPY\001\000\166\000%-117s\n' \
		"{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
	head -c "$3" /dev/zero
}

picture() {
	printf '\000'
	build/tests/make-jpeg "$@"
}

seed() {
	cookie=0123456789abcdef0123456789abcdef
	case $name in
	handle)
		printf 'tensorarena1:device:7:%s' $cookie >"$dir/device"
		printf 'tensorarena1:embedded:18446744073709551615:%s:@name' \
			$cookie >"$dir/abstract"
		printf 'tensorarena1:embedded:0:%s:/run/socket' \
			$cookie >"$dir/path"
		;;
	npy)
		npy '<f4' '2, 3' 24 >"$dir/f4"
		npy '|b1' '' 1 >"$dir/scalar"
		npy '<c16' '1,' 16 >"$dir/c16"
		;;
	jpeg)
		make -s build/tests/make-jpeg
		for form in baseline progressive grey cmyk arithmetic; do
			picture 20 17 $form >"$dir/$form"
		done
		;;
	esac
}

unpack() {
	n=0
	while read -r line; do
		case $line in
		'#'*) continue ;;
		esac
		n=$((n + 1))
		echo "$line" | base64 -d >"$dir/$n"
	done <"tests/fuzz/corpus/$name"
}

pack() {
	few=$(mktemp -d)
	trap 'rm -rf "$few"' EXIT
	"build/fuzz/$name" -merge=1 -artifact_prefix="build/fuzz/broke-$name-" \
		"$few" "$dir" 2>/dev/null
	{
		echo '# SPDX-License-Identifier: MIT'
		for file in "$few"/*; do
			base64 -w 0 "$file"
			echo
		done | awk '{ print length($0), $0 }' | LC_ALL=C sort -n |
			cut -d ' ' -f 2
	} >"tests/fuzz/corpus/$name"
}

case $1 in
seed | unpack | pack) "$1" ;;
*) exit 2 ;;
esac
