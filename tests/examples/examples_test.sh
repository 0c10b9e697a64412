#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples do what they say, here and in the virtual machine.

cd "$(dirname "$0")/../.." || exit 1
engine=${TENSORARENA_TEST_ENGINE:-embedded}
# No such device: the examples take the engine that there is.
[ "$engine" = device ] || export TENSORARENA_DEVICE=/dev/null/none
export PYTHONPATH=build/python PYTHONDONTWRITEBYTECODE=1
said=$(mktemp)
trap 'rm -f "$said"' EXIT
points=0

# point TEXT COMMAND...
point() {
	text=$1
	shift
	points=$((points + 1))
	if ! "$@"; then
		sed 's/^/# /' "$said"
		printf 'not '
	fi
	echo "ok $points - $text"
}

# says COUNT PATTERN: so many lines are like this
says() {
	[ "$(grep -c "$2" "$said")" -eq "$1" ]
}

# example LANGUAGE COMMAND...
example() {
	language=$1
	shift
	"$@" >"$said" 2>&1
	point "$language: it ends in order" [ $? -eq 0 ]
	point "$language: it takes the engine that there is" \
		says 1 "^$engine engine, 4 workers"
	point "$language: three tensors go through slots" \
		says 3 '^request [0-9]: [0-9]* bytes through slot [0-3]$'
	point "$language: what no slot holds goes through the pipes" \
		says 1 '^request [0-9]: [0-9]* bytes through the pipes'
	point "$language: every worker finds every tensor intact" \
		says 16 '^worker [0-3]: request [0-3] is intact$'
}

echo 1..10
example C build/examples/engine_and_workers
example Python /usr/bin/python3 examples/engine_and_workers.py
