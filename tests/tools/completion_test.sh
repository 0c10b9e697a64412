#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Completion of the command line, as bash asks for it.

# check calls the functions.
# shellcheck disable=SC2317
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# complete_line WORD...: what bash offers for the last word, one a line
complete_line() {
	bash -c '
		. tools/completion/tarena
		compopt() { :; }
		tarena=$1
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_tarena "$tarena" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
		printf "%s\n" "${COMPREPLY[@]}"
	' bash "$tarena" "$@" | sort | tr '\n' ' '
}

# offers EXPECTED WORD...
offers() {
	expected=$1
	shift
	offered=$(complete_line "$@")
	[ "$offered" = "$expected " ] && return
	echo "offered: $offered"
	return 1
}

commands() {
	offers 'broadcast' br && offers 'stat' st && offers '--help' --h &&
		offers '--help --version bench broadcast doctor metrics stat top' ''
}
check 'commands are completed, and there is no other' commands

options() {
	offers '--bytes --engine --help --json --readers --repeat' bench -- &&
		offers '--handle --interval' top -- && offers '--json' stat --j &&
		offers '--handle --json --watch' stat --
}
check 'options are those that the command has' options

values() {
	offers 'auto device embedded' broadcast --engine '' &&
		offers 'embedded' bench --engine e &&
		offers 'bf16' broadcast --dtype b
}
check 'values are completed where they are few' values

files() {
	mkdir "$work/in"
	: >"$work/in/photo.jpg"
	offers "$work/in/photo.jpg" broadcast "$work/in/p"
}
check 'a file is completed where one is wanted' files

installed() {
	bash -c '. tools/completion/tarena; complete -p tarena' |
		grep -qx 'complete -F _tarena tarena'
}
check 'bash knows the completion' installed

finish
