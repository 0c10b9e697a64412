#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tarena top, in a terminal of its own (tmux's).

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# A server of our own, that knows nobody's configuration.
terminal() {
	tmux -S "$(cat "$work/socket")" -f /dev/null "$@"
}

# open_terminal COLUMNS ROWS COMMAND: a shell around it tells how it left the
# terminal: what it printed and whether it echoes.
open_terminal() {
	rm -f "$work/status" "$work/stty" "$work/before"
	# A new one each time: the last may not have ended yet.
	mktemp -u "$work/tmux.XXXXXX" >"$work/socket"
	terminal new-session -d -x "$1" -y "$2" "stty -a >$work/before; $3
		echo \$? >$work/status; stty -a >$work/stty; sleep 60"
}

close_terminal() {
	terminal kill-server 2>/dev/null
}

screen() {
	terminal capture-pane -p >"$work/screen"
	cat "$work/screen"
}

# shows PATTERN: whether it is on the screen
shows() {
	screen >/dev/null
	grep -q -- "$1" "$work/screen"
}

# Whoever draws the screen may be behind.
shows_no_more() {
	! shows "$1"
}

ended() {
	[ -s "$work/status" ] && [ -s "$work/stty" ]
}

as_it_was() {
	# But for its size.
	sed -i '/rows/d' "$work/before" "$work/stty"
	diff "$work/before" "$work/stty" && soon shows_no_more '^q quit'
}

busy 8
top="$tarena top --handle $handle"

everything() {
	open_terminal 80 24 "$top"
	soon shows 'worker-stuck .*[1-9] s  <--' && soon shows '[1-9][0-9]*M/s'
	good=$?
	screen
	[ "$good" -eq 0 ] || return
	shows '^tensorarena: 1 arena, .*/s in .* tensors/s, .* of memory' &&
		shows ' [1-8]/8 .*\[#[#+.]*\]$' &&
		[ "$(grep -c ' worker ' "$work/screen")" -eq 7 ] &&
		[ "$(wc -L <"$work/screen")" -le 79 ]
}
check 'at 80 columns there is room for all of it' everything

resized() {
	terminal resize-window -x 44 -y 8
	soon shows 'q quit  up/down scroll' || return
	screen
	[ "$(wc -L <"$work/screen")" -le 43 ] || return
	terminal resize-window -x 120 -y 40
	soon shows 'worker-stuck .*<--'
}
check 'it follows the size of the terminal' resized

scrolled() {
	terminal resize-window -x 80 -y 6
	soon shows 'scroll' || return
	terminal send-keys Down Down Down Down NPage
	soon shows_no_more '^tensorarena:' && soon shows 'worker' ||
		return
	terminal send-keys Home
	soon shows '^tensorarena:'
}
check 'what does not fit can be scrolled to' scrolled

quits() {
	terminal send-keys q
	soon ended && [ "$(cat "$work/status")" -eq 0 ] && as_it_was
}
check 'q quits, and the terminal is as it was' quits
close_terminal

# ended_by SIGNAL STATUS
ended_by() {
	open_terminal 80 24 "$top"
	soon shows 'worker' || return
	shell=$(terminal display-message -p '#{pane_pid}')
	kill -s "$1" "$(cat "/proc/$shell/task/$shell/children")" || return
	soon ended && cat "$work/status" &&
		[ "$(cat "$work/status")" -eq "$2" ] && as_it_was
	good=$?
	close_terminal
	return "$good"
}
check 'SIGTERM leaves the terminal as it was' ended_by TERM 143
check 'SIGHUP leaves the terminal as it was' ended_by HUP 129

control_c() {
	open_terminal 80 24 "$top"
	soon shows 'worker' || return
	terminal send-keys C-c
	# The shell is interrupted as well, as it should be.
	soon gone
}
gone() {
	! terminal list-sessions >/dev/null 2>&1 || ended
}
check 'Ctrl-C ends it' control_c
close_terminal

idle

arena_is_gone() {
	open_terminal 80 24 "$top"
	soon shows 'the writer is gone'
	good=$?
	close_terminal
	return "$good"
}
check 'an arena that is gone is said to be' arena_is_gone

no_module() {
	export TENSORARENA_SYSFS="$work/nothing"
	open_terminal 80 24 "$tarena top"
	soon shows 'The kernel module is not loaded'
	good=$?
	close_terminal
	return "$good"
}
check 'a module that is not loaded is said to be' no_module

refused() {
	run top
	[ "$status" -eq 1 ] && grep -q 'top needs a terminal' "$work/stderr" ||
		return
	run top --interval 0
	[ "$status" -eq 2 ] || return
	open_terminal 80 24 "TERM=nonsense $tarena top --handle $handle"
	soon shows "no screen on a terminal of type 'nonsense'"
	good=$?
	close_terminal
	return "$good"
}
check 'without a terminal it says what to do' refused

finish
