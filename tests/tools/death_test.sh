#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena broadcast when somebody dies: a worker, all of them, the engine
# process; and when it is interrupted.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

engine=${TENSORARENA_TEST_ENGINE:-embedded}
head -c 3000000 /dev/urandom >"$work/file"

# More rounds than anybody waits for.
begin() {
	start broadcast "$work/file" --engine "$engine" --repeat 30000 "$@"
	soon rounds_are_running
}

# rounds_are_running: the tenth round is over.
rounds_are_running() {
	grep -qs '^   10  put' "$work/stdout"
}

more_rounds() {
	[ "$(wc -l <"$work/stdout")" -gt "$1" ]
}

# A round in which one of four is missing.
rounds_go_on_without() {
	tail -n 3 "$work/stdout" | grep -q ' 3/4 '
}

a_dead_worker() {
	begin || return 1
	victim=$(worker 2)
	kill -KILL "$victim"
	soon rounds_go_on_without || return 1
	grep -q "^tarena: worker 1 (pid $victim) died: Killed$" "$work/stderr" ||
		return 1
	more=$(($(wc -l <"$work/stdout") + 100))
	soon more_rounds "$more" || return 1
	kill -TERM "$pid"
	stop
	[ "$(wc -l <"$work/stderr")" -eq 1 ] && soon group_is_empty
}
check 'the others go on when a worker is killed' a_dead_worker

# Kills a worker some time before the last round, and lets it finish.
a_dead_worker_in_the_report() {
	start broadcast "$work/file" --engine "$engine" --repeat 3000 --json
	soon workers 4 || return 1
	victim=$(worker 1)
	kill -KILL "$victim"
	stop
	[ "$status" -eq 1 ] || return 1
	jq -e --argjson victim "$victim" '.readers == 4 and .verified == 3 and
		.per_reader[0].pid == $victim and
		(.per_reader[0] | (.verified or .alive) | not) and
		all(.per_reader[1:][]; .verified and .alive)' <"$work/stdout" ||
		return 1
	grep -q 'not every worker saw its bytes' "$work/stderr" &&
		soon group_is_empty
}

check 'the report shows who died' a_dead_worker_in_the_report

# With one slot every later put needs what the dead one held.
a_dead_worker_with_the_only_slot() {
	begin --slots 1 --readers 2 || return 1
	kill -KILL "$(worker 1)"
	more=$(($(wc -l <"$work/stdout") + 100))
	soon more_rounds "$more" || return 1
	kill -TERM "$pid"
	stop
	soon group_is_empty
}
check 'the only slot comes back from a killed worker' \
	a_dead_worker_with_the_only_slot

all_dead() {
	begin --readers 2 || return 1
	first=$(worker 1)
	second=$(worker 2)
	kill -KILL "$first" "$second"
	stop
	[ "$status" -eq 1 ] || return 1
	tail -n 1 "$work/stderr" |
		grep -q "^tarena: $work/file: .*\(no worker is left\|reader\)" &&
		soon group_is_empty
}
check 'it ends when every worker is dead' all_dead

# names: of the abstract sockets that the engine process listens on.
names() {
	find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' |
		tr -dc '0-9\n' | while read -r inode; do
		awk -v inode="$inode" '$7 == inode && $8 ~ /^@/ { print $8 }' \
			/proc/net/unix
	done
}

# gone NAMES: nobody listens there any more.
gone() {
	for socket in $1; do
		! grep -qF " $socket" /proc/net/unix || return 1
	done
}

# interrupted SIGNAL STATUS: while rounds are running, from the terminal.
interrupted() {
	begin || return 1
	listening=$(names)
	[ -n "$listening" ] || [ "$engine" = device ] || return 1
	kill -s "$1" -- "-$pid" || return 1
	stop
	[ "$status" -eq "$2" ] && [ ! -s "$work/stderr" ] || return 1
	soon group_is_empty && soon gone "$listening"
}
check 'Ctrl-C ends everything' interrupted INT 130
check 'SIGTERM ends everything' interrupted TERM 143
check 'a terminal that hangs up ends everything' interrupted HUP 129

engine_killed() {
	begin || return 1
	listening=$(names)
	kill -KILL "$pid"
	stop
	soon group_is_empty && soon gone "$listening"
}
check 'the workers die with the engine process' engine_killed

interrupted_while_decoding() {
	build/tests/make-jpeg 12000 12000 >"$work/large.jpg"
	start broadcast "$work/large.jpg" --engine "$engine" \
		--max-pixels 1000000
	soon workers 4 || return 1
	sleep 0.2
	kill -s INT -- "-$pid"
	stop
	[ "$status" -eq 130 ] && [ ! -s "$work/stderr" ] &&
		! grep -q '^    1 ' "$work/stdout" && soon group_is_empty
}
check 'Ctrl-C ends a decoding' interrupted_while_decoding

# As under nohup, or in the background of a script.
ignored_signals_stay_ignored() {
	disposition=--ignore-signal=INT
	start broadcast "$work/file" --engine "$engine" --repeat 300
	disposition=
	soon rounds_are_running || return 1
	kill -s INT -- "-$pid"
	stop
	[ "$status" -eq 0 ] && grep -q '^4 of 4' "$work/stdout"
}
check 'a signal that was ignored stays ignored' ignored_signals_stay_ignored

a_stopped_worker() {
	begin || return 1
	kill -STOP "$(worker 3)"
	kill -INT "$pid"
	stop
	[ "$status" -eq 130 ] && soon group_is_empty
}
check 'a worker that is stopped does not hold up the end' a_stopped_worker

finish
