#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The drawing is that of its description, and links in the documents lead somewhere.

cd "$(dirname "$0")/../.." || exit 1

# labels FILE: what is written in it, of whatever version of graphviz
labels() {
	sed -n 's/.*<text [^>]*>\(.*\)<\/text>.*/\1/p' "$1" | sort
}

drawn=$(mktemp)
trap 'rm -f "$drawn" "$drawn".*' EXIT
echo 1..2
dot -Tsvg docs/architecture.dot >"$drawn" || exit
labels "$drawn" >"$drawn.new"
labels docs/architecture.svg | diff - "$drawn.new" | sed 's/^/# /' >"$drawn.diff"
cat "$drawn.diff"
[ -s "$drawn.new" ] && [ ! -s "$drawn.diff" ] || printf 'not '
echo 'ok 1 - the drawing says what its description says; else: make docs'

for document in ./*.md docs/*.md; do
	grep -oE '\]\([^)#:]+\)' "$document" | sed 's/^](//; s/)$//' |
		while read -r link; do
			[ -e "$(dirname "$document")/$link" ] ||
				echo "# $document: $link"
		done
done >"$drawn.links"
cat "$drawn.links"
[ ! -s "$drawn.links" ] || printf 'not '
echo 'ok 2 - links in the documents lead somewhere'
