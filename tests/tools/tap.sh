# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
#
# TAP for shell tests: source this, call check for every point, finish at the
# end.  $work is a fresh directory.  The tests run in the top directory.

cd "$(dirname "$0")/../.." || exit 1
tarena=${TARENA:-build/tarena}
work=$(mktemp -d)
trap 'clear_up; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
running=
disposition=
points=0
failures=0

# check NAME COMMAND...: the point passes when the command succeeds.
check() {
	name=$1
	shift
	points=$((points + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $points - $name"
	else
		failures=$((failures + 1))
		echo "not ok $points - $name"
		cat "$work/said" "$work/stderr" 2>/dev/null | head -n 60 |
			sed 's/^/# /'
	fi
	clear_up
}

finish() {
	echo "1..$points"
	[ "$failures" -eq 0 ]
	exit
}

# start ARGUMENTS...: tarena in the background, as the leader of a session and
# process group of its own, $pid, with Ctrl-C as effective as at a terminal
# (unless $disposition says otherwise).
start() {
	rm -f "$work/stdout" "$work/stderr"
	env "${disposition:---default-signal=INT}" setsid "$tarena" "$@" \
		>"$work/stdout" 2>"$work/stderr" </dev/null &
	pid=$!
	running=$pid
	# Not before it leads a group can it be signalled as one.
	soon leads_a_group_or_is_gone
}

leads_a_group_or_is_gone() {
	kill -s 0 -- "-$pid" || ! kill -s 0 "$pid"
} 2>/dev/null

# stop: waits for what start began; $status is its exit code.
stop() {
	status=0
	wait "$pid" || status=$?
	running=
}

# clear_up: ends what a point that failed half-way has left running.
clear_up() {
	[ -n "$running" ] || return 0
	kill -s KILL -- "-$running" 2>/dev/null
	stop
}

# run ARGUMENTS...: both.
run() {
	start "$@"
	stop
}

# soon COMMAND...: succeeds when the command does within ten seconds.
soon() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || return 1
		sleep 0.05
	done
}

group_is_empty() {
	! kill -s 0 -- "-$pid" 2>/dev/null
}

# busy READERS [ENGINE]: an arena that is used all the time, whose last reader is
# stuck; $handle.  idle ends it.
busy() {
	rm -f "$work/feed"
	mkfifo "$work/feed"
	build/tests/busy_arena "${2:-embedded}" "$1" 5 <"$work/feed" \
		>"$work/busy" 8>&- &
	busy_pid=$!
	exec 8>"$work/feed"
	soon grep -q '^busy$' "$work/busy"
	handle=$(head -n 1 "$work/busy")
}

idle() {
	exec 8>&-
	wait "$busy_pid"
}

# workers NUMBER: there are so many, and each has answered that it is ready.
workers() {
	# shellcheck disable=SC2046
	set -- "$1" $(cat "/proc/$pid/task/$pid/children")
	[ $# -eq $(($1 + 1)) ] || return 1
	shift
	for child; do
		grep -qx tarena-worker "/proc/$child/comm" || return 1
	done
} 2>/dev/null

# worker NUMBER: the process id of that worker, from 1.
worker() {
	tr ' ' '\n' <"/proc/$pid/task/$pid/children" | sed -n "$1p"
}
