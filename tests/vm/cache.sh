# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# What the scripts that keep downloaded things share.  To be sourced; the
# sourcing script sets `me`.

cache=${TENSORARENA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tensorarena}
top=$(cd "$(dirname "$0")/../.." && pwd)

die() {
	echo "${me:?}: $*" >&2
	exit 1
}

say() {
	echo "${me:?}: $*" >&2
}

# apt's own configuration, or what suite.sh puts in its place.
apt_conf=

apt_get() {
	apt-get ${apt_conf:+-c "$apt_conf"} "$@"
}

apt_cache() {
	apt-cache ${apt_conf:+-c "$apt_conf"} "$@"
}

update_lists() {
	if [ -n "$apt_conf" ]; then
		apt_get -qq update >&2
	else
		"$top/tools/install-deps" --update >&2
	fi
}

# Names in the Depends of package records that match an extended regular
# expression.
depends() {
	sed -n 's/^Depends: //p' | tr ',' '\n' | sed 's/^ *//; s/[ (|].*//' |
		grep -Ex "$1" || die "no dependency like $1 among the packages"
}

# package_records PACKAGE...: what apt knows of them.  The package lists are
# fetched when it does not know them all.
package_records() {
	known=$(apt_cache show --no-all-versions "$@" 2>/dev/null || true)
	if [ "$(echo "$known" | grep -c '^Package: ')" -ne $# ]; then
		update_lists
		known=$(apt_cache show --no-all-versions "$@") ||
			die "apt does not know $*"
	fi
	echo "$known"
}

# download DIR PACKAGE...: the .deb files, into DIR
download() {
	(
		cd "$1"
		shift
		if [ "$(id -u)" -eq 0 ]; then
			set -- -o APT::Sandbox::User=root "$@"
		fi
		apt_get -qq download "$@"
	)
}

# One fetch at a time; a second one waits and then finds everything there.
lock_cache() {
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
}
