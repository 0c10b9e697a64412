#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual: every function has a page and a prototype as in the header, every
# error is named, every option, field and figure too, and the pages are well-formed.

cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
points=0

# point NAME: passes when $work/wrong is empty
point() {
	points=$((points + 1))
	if [ -s "$work/wrong" ]; then
		sed 's/^/# /' "$work/wrong"
		printf 'not '
	fi
	echo "ok $points - $1"
	: >"$work/wrong"
}

names() {
	sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([a-z_0-9]*\).*/\1/p' "$@" | sort
}

# prototypes FILE...: of manual pages, as "type name(argument, ...)" without spaces
prototypes() {
	sed -nE '
		s/^\.Ft (.*)/\1/; t type
		s/^\.Fo (.*)/\1(/; t more
		s/^\.Fa "(.*)"$/\1,/; t more
		s/^\.Fc/)/; t end
		b
		:type
		h; b
		:more
		H; b
		:end
		H; g; s/[[:space:]]//g; s/,\)/)/; p' "$@" | sort
}

header_prototypes() {
	cc -E -P -Ilib/include lib/include/tensorarena.h | tr '\n' ' ' |
		tr ';{}' '\n' | sed -nE 's/[[:space:]]//g; s/^_Bool/bool/; /ta_[a-z_0-9]+\(.*\)$/p' |
		sort
}

# fields STRUCT: of the header
fields() {
	cc -E -P -Ilib/include lib/include/tensorarena.h | tr '\n' ' ' |
		grep -oE "struct $1 \\{[^}]*" | sed 's/.*{//' | tr ';' '\n' |
		sed -nE 's/\[.*//; s/.*[ *]([a-z_0-9]+)$/\1/p'
}

echo 1..9
sed -nE 's/^\t+(ta_[a-z_0-9]+);/\1/p' lib/libtensorarena.map | sort \
	>"$work/exported"
names man/*.3 | uniq >"$work/named"
diff "$work/exported" "$work/named" >"$work/wrong"
point 'every exported function has a page, and nothing else has'

names man/*.3 | uniq -d | grep -v '^ta_is_decline$' >"$work/wrong"
point 'no function has two pages'

header_prototypes >"$work/header"
prototypes man/*.3 | uniq >"$work/manual"
diff "$work/header" "$work/manual" >"$work/wrong"
point 'prototypes are those of the header'

# Of the structures that a caller fills in or reads, and the manual describes.
for place in ta_options:ta_create ta_part:ta_put ta_tensor:ta_tensor_nbytes \
	ta_view:ta_next; do
	sed -nE 's/^\.[A-Za-z ]*Va //p' "man/${place#*:}.3" | tr -s ', ' '\n' \
		>"$work/explained"
	[ "$(fields "${place%:*}")" ] || echo "no field of ${place%:*}"
	for field in $(fields "${place%:*}"); do
		[ "$field" = reserved ] || grep -qx "$field" "$work/explained" ||
			echo "${place#*:}(3) lacks $field"
	done
done >"$work/wrong"
point 'every field of what a caller fills in or reads is explained'

# The sections' errors: of the library in one page, of the module in another.
grep -ohE '\bE[A-Z0-9]{3,}\b' lib/include/tensorarena.h lib/error.c |
	grep -vxE 'EPOLL[A-Z]*|END' | sort -u >"$work/errors"
sed -n 's/^\.It Bq Er \(E[A-Z0-9]*\)$/\1/p' man/ta_strerror.3 | sort -u |
	comm -23 "$work/errors" - >"$work/wrong"
point 'every error of the library is explained'

sed -nE '/^ \* Errors /,/^ \*\//s/^ \*   (E[A-Z0-9]+) .*/\1/p' \
	uapi/tensorarena.h | sort -u >"$work/errors"
[ -s "$work/errors" ] || echo 'no errors in the uAPI header' >"$work/wrong"
sed -n 's/^\.It Bq Er \(E[A-Z0-9]*\)$/\1/p' man/tensorarena.4 | sort -u |
	diff "$work/errors" - >>"$work/wrong"
point 'every error of the module is explained'

for command in bench broadcast doctor metrics stat top; do
	build/tarena "$command" --help
done | grep -oE '^  --[a-z-]+' | tr -d ' -' | sort -u >"$work/options"
sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' man/tarena.1 | tr -d - | sort -u |
	{ cat; echo help; } | sort | diff "$work/options" - >"$work/wrong"
point 'every option of the command is explained'

for symbol in $(sed -nE 's/^(TRACE_EVENT\(|DEFINE_EVENT\(.*, )(ta_[a-z_]+),$/\2/p' \
	module/trace.h) $(sed -nE 's/^module_param\(([a-z_]+),.*/\1/p' module/*.c); do
	grep -qw "$symbol" man/tensorarena.4 ||
		echo "tensorarena(4) lacks $symbol"
done >"$work/wrong"
point 'every tracepoint and module parameter is named'

for page in man/*; do
	mandoc -Tlint -W warning "$page"
	MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z \
		"$page" >/dev/null
	grep -oE '^\.Xr ta[a-z_]* [1-8]' "$page" | while read -r _ name section; do
		[ -e "man/$name.$section" ] || names "man/"*".$section" |
			grep -qx "$name" || echo "$page: no $name($section)"
	done
done >"$work/wrong" 2>&1
point 'pages are well-formed and refer to pages that are there'
