# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Packages that this machine's apt does not give: of a Debian suite that it does
# not use, or of another architecture.  To be sourced after cache.sh; to be called
# with the cache locked.

# Programs that the kernel's build system calls, of packages that no dependency
# names because every Debian has them.
essential='base-files bash coreutils dash diffutils findutils gawk grep
	perl-base sed'

# The sources of Debian's that this machine's apt uses, in whatever form it is
# told so: label, address, suite, component.
sources() {
	apt-get indextargets --format \
		'$(ORIGIN)|$(LABEL) $(REPO_URI) $(CODENAME) $(COMPONENT)' \
		'Created-By: Packages' | sed -n 's/^Debian|//p' | sort -u
}

# The same; there are some.
known_sources() {
	if [ -z "$(sources)" ]; then
		update_lists
	fi
	sources | grep . || die "apt's sources have no archive of Debian's"
}

# make_state DIR: an apt that knows nothing that is installed, and of sources
# those in DIR/sources.list only
make_state() {
	mkdir -p "$1/lists/partial" "$1/archives/partial"
	: >"$1/status"
	cat >"$1/apt.conf" <<-END
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

signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'

# make_suite_state DIR SUITE: of the suite and the one it extends
make_suite_state() {
	make_state "$1"
	echo "APT::Default-Release \"$2\";" >>"$1/apt.conf"
	uri=$(known_sources | sed -n 's/^Debian \([^ ]*\) .*/\1/p' | head -n 1)
	for name in "${2%-backports}" "$2"; do
		echo "deb $signed $uri $name main"
	done | sort -u >"$1/sources.list"
}

# make_architecture_state DIR ARCHITECTURE: of this machine's own sources, for
# that architecture and, asked for by PACKAGE:amd64, for this machine's
make_architecture_state() {
	make_state "$1"
	cat >>"$1/apt.conf" <<-END
		APT::Architecture "$2";
		APT::Architectures { "$2"; "$(dpkg --print-architecture)"; };
	END
	known_sources | sed "s/^[^ ]*/deb $(echo "$signed" |
		sed 's,/,\\/,g')/" >"$1/sources.list"
}

# use_state NAME MAKE: apt_get and apt_cache are of what MAKE DIR NAME makes from
# now on, as it is today.
use_state() {
	state=$cache/apt/$1
	fetched=$state/fetched
	if [ -n "$(find "$fetched" -mtime -1 2>/dev/null)" ]; then
		apt_conf=$state/apt.conf
		return
	fi
	"$2" "$state" "$1"
	apt_conf=$state/apt.conf
	if update_lists; then
		touch "$fetched"
	else
		[ -e "$fetched" ] || die "no package lists of $1"
		say "going by the package lists of $(date -r "$fetched" +%F)"
	fi
}

use_suite() {
	use_state "$1" make_suite_state
}

use_architecture() {
	use_state "$1" make_architecture_state
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
