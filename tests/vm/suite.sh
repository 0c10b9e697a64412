# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Packages of a Debian suite that this machine does not use.  To be sourced after
# cache.sh; to be called with the cache locked.

# Programs that the kernel's build system calls, of packages that no dependency
# names because every Debian has them.
essential='base-files bash coreutils dash diffutils findutils gawk grep
	perl-base sed'

# The archive that this machine's apt uses, in whatever form it is told so.
archive() {
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian Debian //p' |
		head -n 1
}

# make_state DIR SUITE: an apt that knows the suite and the one it extends, no
# other, and nothing that is installed
make_state() {
	uri=$(archive)
	if [ -z "$uri" ]; then
		update_lists
		uri=$(archive)
	fi
	[ -n "$uri" ] || die "apt's sources have no archive of Debian's"
	mkdir -p "$1/lists/partial" "$1/archives/partial"
	: >"$1/status"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	for name in "${2%-backports}" "$2"; do
		echo "deb [signed-by=$keys] $uri $name main"
	done | sort -u >"$1/sources.list"
	cat >"$1/apt.conf" <<-END
		APT::Default-Release "$2";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
		Acquire::Languages "none";
		Dir::Cache "$1/";
		Dir::Cache::pkgcache "pkgcache.bin";
		Dir::Cache::srcpkgcache "srcpkgcache.bin";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Etc::sourcelist "$1/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::State "$1/";
		Dir::State::lists "$1/lists/";
		Dir::State::status "$1/status";
	END
}

# use_suite SUITE: apt_get and apt_cache are of that suite from now on, as it is
# today.
use_suite() {
	state=$cache/apt/$1
	fetched=$state/fetched
	if [ -n "$(find "$fetched" -mtime -1 2>/dev/null)" ]; then
		apt_conf=$state/apt.conf
		return
	fi
	make_state "$state" "$1"
	apt_conf=$state/apt.conf
	if update_lists; then
		touch "$fetched"
	else
		[ -e "$fetched" ] || die "no package lists of $1"
		say "going by the package lists of $(date -r "$fetched" +%F)"
	fi
}

# download_with_dependencies DIR PACKAGE...: all it takes for a root that can run
# what the packages have
download_with_dependencies() {
	debs=$1
	shift
	mkdir -p "$debs/partial"
	# shellcheck disable=SC2086
	apt_get -qq -y -o Dir::Cache::archives="$debs" --download-only \
		install $essential "$@" >&2
}

# finish_root DIR: what the packages' installation would have done
finish_root() {
	ln -s gawk "$1/usr/bin/awk"
	mkdir -p "$1/dev" "$1/proc" "$1/tmp"
}
